// Shared by the tests of datagrams: a handler that records its callbacks, and sockets on loopback.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/loop.h"
#include "spate/net/datagram.h"
#include "streams/harness.h"

namespace spate::testing {

// A copy of a packet, for use after its callback has returned.
struct Seen {
  Address peer;
  Address local;
  Ecn ecn;
  bool truncated;
};

class Collector final : public DatagramHandler {
 public:
  void on_packets(std::span<const Packet> packets) override {
    ++batches;
    for (const Packet& packet : packets) {
      texts.emplace_back(text_of(packet.bytes));
      all.push_back({packet.peer, packet.local, packet.ecn, packet.truncated});
    }
    if (look) look(packets);
    if (then) then();
  }
  void on_error(std::error_code why) override {
    ++errors;
    error = why;
    if (then) then();
  }
  void on_writable() override {
    ++writable;
    if (when_writable) when_writable();
  }

  std::function<void(std::span<const Packet>)> look;
  std::function<void()> then;
  std::function<void()> when_writable;
  std::vector<std::string> texts;
  std::vector<Seen> all;
  std::error_code error;
  int batches = 0;
  int errors = 0;
  int writable = 0;
};

class DatagramTest : public ::testing::Test {
 protected:
  explicit DatagramTest(std::string_view backend = "auto")
      : owned_(*Loop::create({.backend = backend})) {}
  Datagram open(const DatagramOptions& options = {}) {
    return open_at(Address::loopback_ipv4(0), options);
  }
  // For IPv4 and IPv6.
  Datagram open_dual(const DatagramOptions& options = {}) {
    return open_at(Address::any_ipv6(0), options);
  }
  Datagram open_at(const Address& local, const DatagramOptions& options = {}) {
    Result<Datagram> opened = Datagram::create(loop_, local, options);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? std::move(*opened) : Datagram();
  }
  // Returns a name in the abstract namespace that no other test uses.
  static Address own_name(const std::string& name) {
    return *Address::abstract("spate " + name + std::to_string(::getpid()) +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  std::unique_ptr<Loop> owned_;
  Loop& loop_ = *owned_;
  Collector log_;
};

}  // namespace spate::testing
