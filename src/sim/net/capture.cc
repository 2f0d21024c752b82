#include "sim/net/capture.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>

#include "base/mix.h"

namespace spate::sim {

namespace {

constexpr std::uint32_t kMagic = 0xa1b23c4d;  // With nanoseconds.
constexpr std::uint32_t kRawIp = 101;
constexpr std::uint32_t kLongestRecord = 256 * 1024;
constexpr std::size_t kTcpHead = 20;
constexpr std::size_t kUdpHead = 8;
constexpr std::uint16_t kWindow = 65535;

enum Flag : std::uint8_t { fin = 1, syn = 2, rst = 4, psh = 8, ack = 16 };

std::uint8_t flags_of(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::syn:
      return syn;
    case SegmentKind::syn_ack:
      return syn | ack;
    case SegmentKind::window_update:
      return ack;
    case SegmentKind::data:
      return psh | ack;
    case SegmentKind::fin:
      return fin | ack;
    case SegmentKind::syn_rst:
    case SegmentKind::reset:
      return rst | ack;
  }
  return ack;
}

// Returns how many sequence numbers it occupies.
std::uint32_t length_of(const SegmentHeader& header) {
  const bool counts = (flags_of(header.kind) & (syn | fin)) != 0;
  return static_cast<std::uint32_t>(header.size) + (counts ? 1u : 0u);
}

// In network byte order.
void put(std::string& bytes, std::uint64_t value, int width) {
  for (int shift = 8 * (width - 1); shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> shift & 0xff);
}

// In the machine's byte order, as for the file's own numbers.
void put_own(std::string& bytes, std::uint32_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::uint32_t sum_of(std::string_view bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    sum += i % 2 == 0 ? static_cast<std::uint32_t>(byte << 8) : byte;
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

void put_checksum(std::string& bytes, std::size_t at, std::uint32_t sum) {
  const std::uint32_t field = ~sum & 0xffff;
  bytes[at] = static_cast<char>(field >> 8);
  bytes[at + 1] = static_cast<char>(field & 0xff);
}

std::string_view address_of(const Ip& ip) {
  const auto* begin = reinterpret_cast<const char*>(ip.bytes.data());
  return ip.is_v4() ? std::string_view(begin + 12, 4) : std::string_view(begin, 16);
}

std::string head_v4(const SocketAddress& from, const SocketAddress& to, std::uint8_t protocol,
                    std::size_t size, std::uint8_t traffic_class) {
  std::string head;
  put(head, 0x45, 1);
  put(head, traffic_class, 1);
  put(head, 20 + size, 2);
  put(head, 0, 4);  // Not fragmented.
  put(head, 64, 1);
  put(head, protocol, 1);
  put(head, 0, 2);
  head.append(address_of(from.ip)).append(address_of(to.ip));
  put_checksum(head, 10, sum_of(head));
  return head;
}

std::string head_v6(const SocketAddress& from, const SocketAddress& to, std::uint8_t protocol,
                    std::size_t size, std::uint8_t traffic_class) {
  std::string head;
  put(head, 6u << 28 | static_cast<std::uint32_t>(traffic_class << 20), 4);
  put(head, size, 2);
  put(head, protocol, 1);
  put(head, 64, 1);
  head.append(address_of(from.ip)).append(address_of(to.ip));
  return head;
}

// Adds the IP header, and the checksum at `at`.
std::string in_ip(const SocketAddress& from, const SocketAddress& to, std::uint8_t protocol,
                  std::string content, std::size_t at, std::uint8_t traffic_class) {
  std::string pseudo(address_of(from.ip));
  pseudo.append(address_of(to.ip));
  put(pseudo, protocol, 4);
  put(pseudo, content.size(), 4);
  put_checksum(content, at, sum_of(content, sum_of(pseudo)));
  const auto head = from.ip.is_v4() ? head_v4 : head_v6;
  return head(from, to, protocol, content.size(), traffic_class) + content;
}

}  // namespace

Result<std::unique_ptr<Capture>> Capture::open(const std::string& path) {
  File file(std::fopen(path.c_str(), "wbe"));
  if (file == nullptr) return std::unexpected(std::error_code(errno, std::system_category()));
  std::string head;
  put_own(head, kMagic);
  put_own(head, 2 | 4u << 16);  // Version 2.4, as two halves.
  for (const std::uint32_t value : {0u, 0u, kLongestRecord, kRawIp}) put_own(head, value);
  std::fwrite(head.data(), 1, head.size(), file.get());
  return std::unique_ptr<Capture>(new Capture(std::move(file)));
}

void Capture::write(Nanos wall, const std::string& packet) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::string record;
  put_own(record, static_cast<std::uint32_t>(wall.count() / kSecond));
  put_own(record, static_cast<std::uint32_t>(wall.count() % kSecond));
  put_own(record, static_cast<std::uint32_t>(packet.size()));
  put_own(record, static_cast<std::uint32_t>(packet.size()));
  record += packet;
  std::fwrite(record.data(), 1, record.size(), file_.get());
}

Capture::Numbers& Capture::numbers_of(std::uint64_t connection) {
  const auto first = [connection](std::uint64_t side) {
    return static_cast<std::uint32_t>(mix(connection << 1 | side));
  };
  const Numbers fresh{.sent = {first(0), first(1)}, .received = {first(1), first(0)}};
  return numbers_.try_emplace(connection, fresh).first->second;
}

void Capture::segment(Nanos wall, Connection& connection, Side from, const SegmentHeader& header) {
  Numbers& numbers = numbers_of(connection.id);
  const SocketAddress& source = connection.end(from).local();
  const SocketAddress& destination = connection.end(opposite(from)).local();
  const std::uint8_t flags = flags_of(header.kind);
  std::string content;
  put(content, source.port, 2);
  put(content, destination.port, 2);
  put(content, numbers.sent[number_of(from)], 4);
  put(content, (flags & ack) != 0 ? numbers.received[number_of(from)] : 0, 4);
  put(content, kTcpHead / 4 << 4, 1);
  put(content, flags, 1);
  put(content, kWindow, 2);
  put(content, 0, 4);
  content += header.bytes;
  numbers.sent[number_of(from)] += length_of(header);
  write(wall, in_ip(source, destination, IPPROTO_TCP, std::move(content), 16, 0));
}

void Capture::arrived(std::uint64_t connection, Side from, const SegmentHeader& header) {
  numbers_of(connection).received[number_of(opposite(from))] += length_of(header);
}

void Capture::packet(Nanos wall, const SocketAddress& from, const SocketAddress& to,
                     std::string_view bytes, std::uint8_t traffic_class) {
  std::string content;
  put(content, from.port, 2);
  put(content, to.port, 2);
  put(content, kUdpHead + bytes.size(), 2);
  put(content, 0, 2);
  content += bytes;
  write(wall, in_ip(from, to, IPPROTO_UDP, std::move(content), 6, traffic_class));
}

}  // namespace spate::sim
