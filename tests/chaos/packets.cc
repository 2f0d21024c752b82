#include "chaos/packets.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "chaos/verdict.h"
#include "chaos/world.h"
#include "support/own_loopback.h"

namespace spate::chaos {

namespace {

constexpr std::size_t kMaxSockets = 4;
constexpr std::size_t kHead = 8;  // Sender, receiver, and the sender's packet number.

// Returns packet `number` from `sender` to `target`, `size` bytes long.
std::vector<std::byte> packet(unsigned sender, unsigned number, std::size_t size) {
  std::vector<std::byte> bytes(std::max(size, kHead));
  const std::uint32_t head[2] = {sender, number};
  std::memcpy(bytes.data(), head, sizeof(head));
  const Bytes rest = pattern(sender, number * 977u, bytes.size() - kHead);
  std::memcpy(bytes.data() + kHead, rest.data(), rest.size());
  return bytes;
}

}  // namespace

// One socket: the library's, or a bare one that sends only.
class Packets::Socket final : public DatagramHandler {
 public:
  Socket(Packets& packets, unsigned number) : packets_(packets), number_(number) {}
  ~Socket() {
    if (fd >= 0) ::close(fd);
  }

  void on_packets(std::span<const Packet> packets) override {
    begin("on_packets");
    check(!is_paused, "paused_reads_nothing", "packets %u: while paused", number_);
    check(!packets.empty(), "some_packets", "packets %u: none", number_);
    for (const Packet& one : packets) verify(one, true);
    packets_.world_.visit({.where = Where::packets});
    for (const Packet& one : packets) verify(one, false);
  }
  void on_error(std::error_code error) override {
    begin("on_error");
    packets_.world_.tell("  %s", error.message().c_str());
    check(packets_.world_.is_stormy() || error == std::errc::connection_refused, "right_error",
          "packets %u: %s", number_, error.message().c_str());
    packets_.world_.visit({.where = Where::packet_error});
  }
  void on_writable() override {
    begin("on_writable");
    check(was_refused, "writable_after_refusal", "packets %u: nothing was refused", number_);
    was_refused = false;
    packets_.world_.visit({.where = Where::writable});
  }

  unsigned number() const { return number_; }

  std::optional<Datagram> socket;
  int fd = -1;
  Address address;
  bool is_paused = false;
  bool is_started = false;
  bool was_refused = false;
  unsigned sent = 0;
  std::size_t max = 2048;                                    // Longer ones are cut.
  std::map<std::pair<unsigned, unsigned>, std::size_t> due;  // To it, with their sizes.

 private:
  void begin(const char* what) {
    packets_.world_.moved();
    packets_.world_.tell("[packets %u %s]", number_, what);
    check(socket.has_value(), "gone_hears_nothing", "packets %u: %s", number_, what);
  }
  void verify(const Packet& one, bool is_new) {
    std::uint32_t head[2] = {};
    check(one.bytes.size() >= kHead, "own_packets", "packets %u: %zu bytes", number_,
          one.bytes.size());
    std::memcpy(head, one.bytes.data(), std::min(one.bytes.size(), kHead));
    const auto found = due.find({head[0], head[1]});
    if (!is_new && found == due.end()) {
      return check(seen_size_[{head[0], head[1]}] >= one.bytes.size() && is_whole(one, head),
                   "packets_stay", "packets %u: they change while they are shown", number_);
    }
    check(found != due.end(), "own_packets",
          "packets %u: packet %u of %u, which is not for it, or comes twice", number_, head[1],
          head[0]);
    const std::size_t shown = std::min(found->second, max);
    check(one.bytes.size() == shown && one.truncated == (found->second > max), "own_packets",
          "packets %u: %zu bytes of %zu", number_, one.bytes.size(), found->second);
    check(is_whole(one, head), "own_packets", "packets %u: other bytes in packet %u of %u", number_,
          head[1], head[0]);
    const Socket* sender = packets_.sender(head[0]);
    check(sender != nullptr && sender->address == one.peer, "own_packets",
          "packets %u: the sender's address is wrong", number_);
    seen_size_[found->first] = found->second;
    due.erase(found);
  }
  static bool is_whole(const Packet& one, const std::uint32_t head[2]) {
    const std::vector<std::byte> whole = packet(head[0], head[1], one.bytes.size());
    return std::ranges::equal(whole, one.bytes);
  }

  Packets& packets_;
  const unsigned number_;
  std::map<std::pair<unsigned, unsigned>, std::size_t> seen_size_;
};

Packets::Packets(World& world) : world_(world) {}
Packets::~Packets() = default;

const Packets::Socket* Packets::sender(unsigned number) const {
  return number == 0 || number > sockets_.size() ? nullptr : sockets_[number - 1].get();
}

Packets::Socket* Packets::some_socket(std::size_t choice) {
  return sockets_.empty() ? nullptr : sockets_[choice % sockets_.size()].get();
}

void Packets::act(const Step& step, const Visit&) {
  if (step.op == Op::packets) return open(step);
  Socket* socket = some_socket(step.target);
  if (socket == nullptr) return;
  return step.op == Op::packets_send ? send(*socket, step) : change(*socket, step);
}

void Packets::open(const Step& step) {
  if (sockets_.size() == kMaxSockets) return;
  auto made = std::make_unique<Socket>(*this, static_cast<unsigned>(sockets_.size()) + 1);
  const Address any = testing::own_address(0);
  DatagramOptions options;
  if (step.a % 3 == 0) options.packet_size = made->max = 64;
  if (step.a % 4 != 3) {
    auto opened = Datagram::create(world_.loop(), any, options);
    check(opened.has_value() || world_.is_stormy(), "packets_open", "refused");
    if (!opened) return;
    made->address = opened->local_address();
    made->socket.emplace(std::move(*opened));
    made->socket->start(*made);
    made->is_started = true;
  } else {
    made->fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ::bind(made->fd, static_cast<const sockaddr*>(any.data()), static_cast<socklen_t>(any.size()));
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    ::getsockname(made->fd, reinterpret_cast<sockaddr*>(&bound), &size);
    made->address = *Address::from_system(&bound, size);
  }
  sockets_.push_back(std::move(made));
}

// Sends one packet, several at once, or one that is split.
void Packets::send(Socket& from, const Step& step) {
  static constexpr std::size_t kSizes[4] = {8, 64, 300, 3000};
  Socket* to = some_socket(step.b);
  if (to == nullptr || (!from.socket && from.fd < 0)) return;
  const std::size_t count = step.a % 4 == 0 ? 1 + step.a / 16 % 5 : 1;
  const std::size_t size = kSizes[(step.a >> 2) % 4];
  std::vector<std::vector<std::byte>> packets;
  for (std::size_t i = 0; i < count; ++i) {
    to->due[{from.number(), from.sent}] = size;
    packets.push_back(packet(from.number(), from.sent++, size));
  }
  const auto take_back = [&](std::size_t sent) {
    for (std::size_t i = sent; i < count; ++i)
      to->due.erase({from.number(), from.sent - static_cast<unsigned>(count - i)});
  };
  if (from.fd >= 0) {
    for (const auto& one : packets)
      ::sendto(from.fd, one.data(), one.size(), MSG_DONTWAIT,
               static_cast<const sockaddr*>(to->address.data()),
               static_cast<socklen_t>(to->address.size()));
    return;
  }
  std::error_code error;
  std::size_t sent = 0;
  if (count == 1) {
    error = from.socket->send(packets[0], to->address);
    sent = error ? 0 : 1;
  } else {
    std::vector<Outgoing> outgoing;
    for (const auto& one : packets) outgoing.push_back({one, &to->address});
    sent = from.socket->send(outgoing, &error);
  }
  world_.tell("  %zu packets from %u to %u: %zu sent %s", count, from.number(), to->number(), sent,
              error ? error.message().c_str() : "");
  const bool has_no_room =
      error == std::errc::resource_unavailable_try_again || error == std::errc::no_buffer_space;
  from.was_refused = from.was_refused || has_no_room;
  check(!error || has_no_room || world_.is_stormy() || error == std::errc::interrupted ||
            error == std::errc::connection_refused,
        "right_error", "send(): %s", error.message().c_str());
  take_back(sent);
}

void Packets::change(Socket& socket, const Step& step) {
  if (!socket.socket) return;
  switch (step.a % 6) {
    case 0:
    case 1:
      socket.socket->pause();
      socket.is_paused = true;
      return;
    case 2:
    case 3:
      socket.socket->resume();
      socket.is_paused = false;
      return;
    case 4:
      return socket.socket->start(socket), void(socket.is_paused = false);
    default:
      if (step.b % 3 != 0) return;
      Datagram last = std::move(*socket.socket);
      socket.socket.reset();
      socket.due.clear();
  }
}

void Packets::make_friendly() {
  for (const auto& socket : sockets_) {
    if (socket->socket) socket->socket->resume();
    socket->is_paused = false;
  }
}

// Loopback drops packets only when a buffer is full, and so few packets always fit.
void Packets::check_settled() {
  if (world_.is_stormy()) return;
  for (const auto& socket : sockets_) {
    check(!socket->socket || socket->due.empty(), "packets_arrive", "packets %u: %zu have not come",
          socket->number(), socket->due.size());
  }
}

void Packets::close() {
  for (const auto& socket : sockets_) socket->socket.reset();
  sockets_.clear();
}

}  // namespace spate::chaos
