// Two network namespaces connected by a wire, which this thread carries packet by packet: it delays
// packets, or drops them, as a test wants, and records the connection attempts.
//
// The thread that makes one is inside the near namespace until it is destroyed. Needs `ip`, the
// kernel's tun device, and root or user namespaces: why_not() returns the reason if one is missing.
#pragma once

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "spate/io.h"
#include "spate/net/address.h"
#include "spate/timer.h"
#include "sys/descriptor.h"
#include "tests/support/missing.h"

namespace spate::testing {

class SlowNetwork {
 public:
  // The treatment of packets of one family, each way.
  struct Way {
    Nanos delay{0};
    bool is_black_hole = false;
  };
  // The first packet of a connection, as it left the near end.
  struct Attempt {
    Nanos when;  // In loop time.
    std::string to;
    bool operator==(const Attempt&) const = default;
  };

  static constexpr std::string_view kFarIpv4 = "10.99.0.2";
  static constexpr std::string_view kFarIpv6 = "fd00:99::2";

  // Returns the reason why one cannot be made; empty if it can.
  static std::string why_not() {
    if (std::system("ip -V >/dev/null 2>&1") != 0) return "ip is not installed (package iproute2)";
    if (::access("/dev/net/tun", R_OK | W_OK) != 0)
      return "/dev/net/tun is missing: load the module tun";
    if (::geteuid() != 0 && !become_root()) return no_network_namespace();
    const sys::Descriptor here = current();
    if (::unshare(CLONE_NEWNET) != 0) return no_network_namespace();
    const sys::Descriptor tun = make_tun();
    const bool has_addresses = tun.is_open() && set_up("10.99.0.1/24", "fd00:99::1/64");
    enter(here);
    if (!tun.is_open()) return "a tun device is not permitted: run as root";
    return has_addresses ? "" : "IPv4 or IPv6 is missing: enable both in the kernel";
  }

  explicit SlowNetwork(Loop& loop) : loop_(loop), home_(current()) {
    ::unshare(CLONE_NEWNET);
    far_ = current();
    far_tun_ = make_tun();
    set_up("10.99.0.2/24", "fd00:99::2/64");
    ::unshare(CLONE_NEWNET);
    near_ = current();
    near_tun_ = make_tun();
    set_up("10.99.0.1/24", "fd00:99::1/64");
    near_io_.set(near_tun_.get(), Events::read);
    far_io_.set(far_tun_.get(), Events::read);
    near_io_.start();
    far_io_.start();
  }
  ~SlowNetwork() { enter(home_); }

  // Calls `function` inside the far namespace: sockets that it opens belong there.
  template <class Function>
  auto far(Function function) {
    enter(far_);
    auto result = function();
    enter(near_);
    return result;
  }

  Way ipv4;
  Way ipv6;
  std::vector<Attempt> attempts;

 private:
  static constexpr const char* kTun = "spate0";

  struct Packet {
    Packet(Loop& loop, Delegate<Timer> callback) : timer(loop, callback) {}
    Timer timer;
    int to = -1;
    std::string bytes;
  };

  static sys::Descriptor current() {
    return sys::Descriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }
  static void enter(const sys::Descriptor& space) { ::setns(space.get(), CLONE_NEWNET); }

  static sys::Descriptor make_tun() {
    sys::Descriptor tun(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ifreq request{};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    std::strncpy(request.ifr_name, kTun, sizeof(request.ifr_name) - 1);
    if (::ioctl(tun.get(), TUNSETIFF, &request) != 0) return sys::Descriptor();
    return tun;
  }
  // Enters a user namespace with a new network namespace, whose loopback is up for the tests that
  // follow. This cannot be undone.
  static bool become_root() {
    const std::string user = std::to_string(::geteuid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    std::ofstream("/proc/self/uid_map") << "0 " + user + " 1";
    return ::geteuid() == 0 && std::system("ip link set lo up") == 0;
  }
  static bool set_up(const std::string& ipv4, const std::string& ipv6) {
    const std::string device = kTun;
    const std::string commands = "ip link set lo up && ip link set " + device +
                                 " up && ip addr add " + ipv4 + " dev " + device +
                                 " && ip -6 addr add " + ipv6 + " nodad dev " + device;
    return std::system(commands.c_str()) == 0;
  }

  void from_near() { carry(near_tun_.get(), far_tun_.get()); }
  void from_far() { carry(far_tun_.get(), near_tun_.get()); }

  void carry(int from, int to) {
    char bytes[4096];
    ssize_t size = 0;
    while ((size = ::read(from, bytes, sizeof(bytes))) > 0) {
      const std::string_view packet(bytes, static_cast<std::size_t>(size));
      const bool is_ipv6 = (packet[0] >> 4) == 6;
      if (from == near_tun_.get()) note(packet, is_ipv6);
      const Way& way = is_ipv6 ? ipv6 : ipv4;
      if (way.is_black_hole) continue;
      packets_.emplace_back(loop_, spate::bind<&SlowNetwork::on_arrival>(this));
      packets_.back().to = to;
      packets_.back().bytes = packet;
      packets_.back().timer.start(way.delay);
    }
  }
  void on_arrival(Timer& timer) {
    for (auto packet = packets_.begin(); packet != packets_.end(); ++packet) {
      if (&packet->timer != &timer) continue;
      if (::write(packet->to, packet->bytes.data(), packet->bytes.size()) < 0) lost_ = true;
      packets_.erase(packet);
      return;
    }
  }

  // TCP's first packet has SYN and no ACK; a retransmission does not count again.
  void note(std::string_view packet, bool is_ipv6) {
    const std::size_t header =
        is_ipv6 ? 40 : (static_cast<unsigned char>(packet[0]) & 15u) * std::size_t{4};
    const char protocol = is_ipv6 ? packet[6] : packet[9];
    if (protocol != 6 || packet.size() < header + 20) return;
    if ((packet[header + 13] & 0x12) != 2) return;
    const std::string to = address_in(packet.substr(is_ipv6 ? 24 : 16), is_ipv6);
    for (const Attempt& attempt : attempts) {
      if (attempt.to == to) return;
    }
    attempts.push_back({loop_.now(), to});
  }
  static std::string address_in(std::string_view bytes, bool is_ipv6) {
    Address address = is_ipv6 ? Address::any_ipv6(0) : Address::any_ipv4(0);
    unsigned char system[112] = {};
    std::memcpy(system, address.data(), address.size());
    std::memcpy(system + (is_ipv6 ? 8 : 4), bytes.data(), is_ipv6 ? 16 : 4);
    return Address::from_system(system, address.size())->host();
  }

  Loop& loop_;
  sys::Descriptor home_;
  sys::Descriptor far_;
  sys::Descriptor near_;
  sys::Descriptor far_tun_;
  sys::Descriptor near_tun_;
  Io near_io_{loop_, spate::bind<&SlowNetwork::from_near>(this)};
  Io far_io_{loop_, spate::bind<&SlowNetwork::from_far>(this)};
  std::list<Packet> packets_;
  bool lost_ = false;
};

}  // namespace spate::testing
