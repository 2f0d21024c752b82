// Shared by the tests of Listener.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <memory>

#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "streams/harness.h"

namespace spate::testing {

class Listening : public ::testing::Test {
 protected:
  struct Peer {
    Stream stream;
    Recorder log;
  };

  Listener::OnAccept collect() {
    return [this](Stream stream, const Address&) {
      accepted_.emplace_back();
      accepted_.back().stream = std::move(stream);
      accepted_.back().stream.start(accepted_.back().log);
    };
  }
  OnConnected keep() {
    return [this](Result<Stream> result) {
      ++results_;
      if (result) {
        connected_.push_back(std::move(*result));
      } else {
        error_ = result.error();
      }
    };
  }
  Listener listen(const ListenOptions& options = {},
                  const Address& address = Address::loopback_ipv4(0)) {
    Result<Listener> made = Listener::create(loop_, address, collect(), options);
    EXPECT_TRUE(made);
    return std::move(*made);
  }

  void expect_refusal(const Address& address) {
    error_ = {};
    const int before = results_;
    const Connecting connecting = connect(loop_, address, keep());
    run_until(loop_, [&] { return results_ > before; });
    EXPECT_EQ(error_, std::errc::connection_refused);
  }

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  std::list<Peer> accepted_;
  std::list<Stream> connected_;
  std::error_code error_;
  int results_ = 0;
};

}  // namespace spate::testing
