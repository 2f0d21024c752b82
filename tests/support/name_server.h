// A name server on loopback, over UDP and TCP, which runs on the test's own loop and answers as
// configured.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spate/io.h"
#include "spate/net/address.h"
#include "spate/timer.h"
#include "tests/support/descriptors.h"

namespace spate::testing {

// The reply to queries for a name.
struct NameEntry {
  std::vector<std::string> ipv6{};
  std::vector<std::string> ipv4{};
  std::string alias{};  // The name has the addresses of this one.
  int code = 0;         // 2 for a failure, 3 for no such host, 5 for a refusal.
  int ipv4_code = 0;    // Instead, for IPv4 alone.
  int ipv6_code = 0;
  unsigned ttl = 0;  // Seconds.
  Nanos ipv6_delay{0};
  Nanos ipv4_delay{0};
  bool is_silent = false;
  bool is_long = false;      // Cut over UDP.
  bool hangs_up = false;     // Over TCP.
  bool resets = false;       // Resets TCP connections.
  bool is_nonsense = false;  // Announces a missing record.
  bool is_forged = false;    // Replies to other queries and from elsewhere come first.
};

class NameServer {
 public:
  // Listens at a port that the kernel chooses, the same for both.
  explicit NameServer(Loop& loop, const Address& address = Address::loopback_ipv4(0))
      : loop_(loop) {
    while (!bind_both(address)) close_both();
    udp_.set(sockets_[0], Events::read);
    tcp_.set(sockets_[1], Events::read);
    udp_.start();
    tcp_.start();
  }
  ~NameServer() {
    udp_.stop();
    tcp_.stop();
    close_both();
  }

  // Other names do not exist. In lower case, without a dot at the end.
  std::map<std::string, NameEntry> names;
  // Corrupts replies sent over UDP.
  std::function<void(std::string&)> mangle;

  Address address() const { return address_; }
  int udp_questions = 0;
  int tcp_questions = 0;
  int ipv6_questions = 0;

 private:
  using Text = std::string;

  static constexpr std::uint16_t kA = 1;
  static constexpr std::uint16_t kAaaa = 28;
  static constexpr std::uint16_t kCname = 5;

  // A reply that is delayed, or in transit over TCP: both keep their state until it is sent.
  struct Delayed {
    Delayed(Loop& loop, Delegate<Timer> callback) : timer(loop, callback) {}
    Timer timer;
    int fd = -1;
    Address peer;
    Text answer;
  };
  struct Guest {
    Guest(Loop& loop, int socket, Delegate<Io> callback)
        : fd(socket), io(loop, socket, Events::read, callback) {
      io.start();
    }
    ~Guest() {
      io.stop_before_close();
      ::close(fd);
    }
    int fd;
    Io io;
    Text received;
  };

  bool bind_both(const Address& wanted) {
    const int family = wanted.family() == Address::Family::ipv6 ? AF_INET6 : AF_INET;
    sockets_[0] = nonblocking(open_socket(family, SOCK_DGRAM));
    sockets_[1] = nonblocking(open_socket(family, SOCK_STREAM));
    if (!bind(sockets_[0], wanted)) return false;
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    ::getsockname(sockets_[0], reinterpret_cast<sockaddr*>(&bound), &size);
    address_ = *Address::from_system(&bound, size);
    return bind(sockets_[1], address_) && ::listen(sockets_[1], 8) == 0;
  }
  static bool bind(int fd, const Address& address) {
    return ::bind(fd, static_cast<const sockaddr*>(address.data()),
                  static_cast<socklen_t>(address.size())) == 0;
  }
  void close_both() {
    for (const int fd : sockets_) ::close(fd);
  }

  void on_packet() {
    char packet[2048];
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const ssize_t length = ::recvfrom(sockets_[0], packet, sizeof(packet), 0,
                                      reinterpret_cast<sockaddr*>(&peer), &size);
    if (length < 12) return;
    ++udp_questions;
    answer({packet, static_cast<std::size_t>(length)}, sockets_[0],
           *Address::from_system(&peer, size));
  }

  void on_guest() {
    const int fd = ::accept(sockets_[1], nullptr, nullptr);
    if (fd < 0) return;
    guests_.emplace_back(loop_, nonblocking(closing_on_exec(fd)),
                         spate::bind<&NameServer::on_guest_data>(this));
  }
  void on_guest_data(Io& io) {
    for (auto guest = guests_.begin(); guest != guests_.end(); ++guest) {
      if (&guest->io != &io) continue;
      char piece[512];
      const ssize_t length = ::recv(guest->fd, piece, sizeof(piece), 0);
      if (length <= 0) return static_cast<void>(guests_.erase(guest));
      guest->received.append(piece, static_cast<std::size_t>(length));
      return answer_all(*guest);
    }
  }
  void answer_all(Guest& guest) {
    Text& received = guest.received;
    while (received.size() >= 2) {
      const std::size_t size = 2 + number_at(received, 0);
      if (received.size() < size) return;
      ++tcp_questions;
      const Text question = received.substr(2, size - 2);
      received.erase(0, size);
      answer(question, guest.fd, Address());
    }
  }

  static std::uint16_t number_at(std::string_view text, std::size_t at) {
    return static_cast<std::uint16_t>(static_cast<unsigned char>(text[at]) << 8 |
                                      static_cast<unsigned char>(text[at + 1]));
  }
  static Text number(unsigned value) {
    return {static_cast<char>(value >> 8), static_cast<char>(value & 255)};
  }

  // Returns the name in the query. Sets `at` to the position of its type.
  static Text name_in(std::string_view question, std::size_t& at) {
    Text name;
    for (at = 12; question[at] != 0; at += static_cast<unsigned char>(question[at]) + 1u) {
      if (!name.empty()) name += '.';
      name += question.substr(at + 1, static_cast<unsigned char>(question[at]));
    }
    ++at;
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return name;
  }
  static Text labels(std::string_view name) {
    Text text;
    while (!name.empty()) {
      const std::string_view label = name.substr(0, name.find('.'));
      name.remove_prefix(std::min(name.size(), label.size() + 1));
      text += static_cast<char>(label.size());
      text += label;
    }
    return text + '\0';
  }
  static Text record(const Text& name, std::uint16_t type, const Text& data, unsigned ttl) {
    return name + number(type) + number(1) + number(ttl >> 16) + number(ttl & 0xffff) +
           number(static_cast<unsigned>(data.size())) + data;
  }
  static Text bytes_of(const std::string& address, std::uint16_t type) {
    const Address parsed = *Address::ip(address, 0);
    const char* system = static_cast<const char*>(parsed.data());
    return type == kA ? Text(system + 4, 4) : Text(system + 8, 16);
  }

  void answer(std::string_view question, int fd, const Address& peer) {
    std::size_t at = 0;
    const Text name = name_in(question, at);
    const std::uint16_t type = number_at(question, at);
    const bool over_tcp = peer.family() == Address::Family::none;
    if (type == kAaaa) ++ipv6_questions;
    const auto found = names.find(name);
    const NameEntry entry = found == names.end() ? NameEntry{.code = 3} : found->second;
    if (entry.is_silent) return;
    if (over_tcp && entry.hangs_up) return static_cast<void>(::shutdown(fd, SHUT_RDWR));
    if (over_tcp && entry.resets) return reset(fd);
    Text text = answer_to(question.substr(0, at + 4), entry, entry.is_long && !over_tcp);
    if (entry.is_forged) forge(text, fd, peer);
    if (mangle && !over_tcp) mangle(text);
    reply(over_tcp ? number(static_cast<unsigned>(text.size())) + text : text, fd, peer,
          type == kAaaa ? entry.ipv6_delay : entry.ipv4_delay);
  }

  static void reset(int fd) {
    const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
    ::connect(fd, &nobody, sizeof(nobody));
  }

  Text answer_to(std::string_view question, const NameEntry& entry, bool is_cut) {
    const std::uint16_t type = number_at(question, question.size() - 4);
    unsigned count = 0;
    const Text records = is_cut ? Text() : records_of(entry, Text("\xc0\x0c", 2), type, count);
    if (entry.is_nonsense) ++count;
    const int own_code = type == kAaaa ? entry.ipv6_code : entry.ipv4_code;
    const auto code = static_cast<unsigned>(own_code != 0 ? own_code : entry.code);
    const unsigned flags = 0x8180u | code | (is_cut ? 0x200u : 0);
    return Text(question.substr(0, 2)) + number(flags) + number(1) + number(count) + number(0) +
           number(0) + Text(question.substr(12)) + records;
  }

  // Sends an empty packet; a reply with another ID, which says that the host does not exist; one
  // that names another host; and one from another address.
  void forge(Text text, int fd, const Address& peer) {
    text[3] = static_cast<char>(text[3] | 3);
    send({}, fd, peer);
    ++text[1];
    send(text, fd, peer);
    --text[1];
    ++text[13];
    send(text, fd, peer);
    --text[13];
    const int stranger = open_socket(AF_INET, SOCK_DGRAM);
    send(text, stranger, peer);
    ::close(stranger);
  }

  Text records_of(const NameEntry& entry, const Text& name, std::uint16_t type, unsigned& count) {
    Text records;
    if (!entry.alias.empty()) {
      const Text target = labels(entry.alias);
      ++count;
      return record(name, kCname, target, entry.ttl) +
             records_of(names[entry.alias], target, type, count);
    }
    for (const std::string& address : type == kA      ? entry.ipv4
                                      : type == kAaaa ? entry.ipv6
                                                      : std::vector<std::string>()) {
      records += record(name, type, bytes_of(address, type), entry.ttl);
      ++count;
    }
    return records;
  }

  void reply(const Text& text, int fd, const Address& peer, Nanos delay) {
    if (delay == Nanos{0}) return send(text, fd, peer);
    delayed_.emplace_back(loop_, spate::bind<&NameServer::on_delay>(this));
    delayed_.back().fd = fd;
    delayed_.back().peer = peer;
    delayed_.back().answer = text;
    delayed_.back().timer.start(delay);
  }
  void on_delay(Timer& timer) {
    for (auto one = delayed_.begin(); one != delayed_.end(); ++one) {
      if (&one->timer != &timer) continue;
      send(one->answer, one->fd, one->peer);
      delayed_.erase(one);
      return;
    }
  }
  static void send(const Text& text, int fd, const Address& peer) {
    const bool has_peer = peer.family() != Address::Family::none;
    ::sendto(fd, text.data(), text.size(), MSG_NOSIGNAL,
             has_peer ? static_cast<const sockaddr*>(peer.data()) : nullptr,
             has_peer ? static_cast<socklen_t>(peer.size()) : 0);
  }

  Loop& loop_;
  int sockets_[2] = {-1, -1};
  Address address_;
  Io udp_{loop_, spate::bind<&NameServer::on_packet>(this)};
  Io tcp_{loop_, spate::bind<&NameServer::on_guest>(this)};
  std::list<Guest> guests_;
  std::list<Delayed> delayed_;
};

}  // namespace spate::testing
