// Unix sockets, pairs and passed descriptors, within a host.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/relay.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

const Address kPath = must(Address::parse("unix:/run/echo.sock"));
const Address kAbstract = must(Address::parse("unix:@echo"));

class SimLocal : public ::testing::Test {
 protected:
  auto serve_at(Host& host, const Address& address, const ListenOptions& options = {}) {
    return host.run([&](Loop& loop) { return serve<Echo>(loop, address, {.listen = options}); });
  }
  std::error_code echo(Host& host, const Address& address) {
    EchoClient client("hello");
    host.run([&](Loop& loop) { client.start(loop, address); });
    EXPECT_EQ(world_.run_until([&] { return client.is_done() || client.error(); }, 1h),
              Outcome::done);
    EXPECT_EQ(client.has_all(), !client.error());
    return client.error();
  }

  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
};

TEST_F(SimLocal, ServerEchoesAtPathAndAtAbstractName) {
  for (const Address& address : {kPath, kAbstract}) {
    const auto server = must(serve_at(here_, address));
    EXPECT_EQ(server.address(), address);
    EXPECT_FALSE(echo(here_, address));
  }
}

TEST_F(SimLocal, LargeTransferWaitsForReader) {
  const auto server = must(serve_at(here_, kPath));
  EchoClient client(std::string(5'000'000, 'x'));
  here_.run([&](Loop& loop) { client.start(loop, kPath); });
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 1h), Outcome::done);
  EXPECT_TRUE(client.has_all());
  EXPECT_EQ(world_.now(), 0ns);  // Nothing is on its way.
}

TEST_F(SimLocal, ConnectToUnusedAddressFails) {
  EXPECT_EQ(echo(here_, kPath), std::errc::no_such_file_or_directory);
  EXPECT_EQ(echo(here_, kAbstract), std::errc::connection_refused);
}

TEST_F(SimLocal, NamesAreLocalToHost) {
  const auto server = must(serve_at(here_, kPath));
  EXPECT_EQ(echo(there_, kPath), std::errc::no_such_file_or_directory);
  EXPECT_TRUE(serve_at(there_, kPath));
}

TEST_F(SimLocal, AddressIsBoundOnce) {
  for (const Address& address : {kPath, kAbstract}) {
    const auto server = must(serve_at(here_, address));
    const auto twice = serve_at(here_, address);
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error(), std::errc::address_in_use);
  }
}

TEST_F(SimLocal, StalePathIsReplaced) {
  static_cast<void>(must(serve_at(here_, kPath)));
  EXPECT_EQ(echo(here_, kPath), std::errc::connection_refused);
  const auto kept = serve_at(here_, kPath, {.replace_path = false});
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error(), std::errc::address_in_use);
  const auto server = must(serve_at(here_, kPath));
  EXPECT_FALSE(echo(here_, kPath));
}

TEST_F(SimLocal, PathnameSurvivesCrashButAbstractNameDoesNot) {
  here_.boot([this](Loop&) {
    return std::pair(must(serve_at(here_, kPath)), must(serve_at(here_, kAbstract)));
  });
  here_.crash();
  here_.restart();
  EXPECT_FALSE(echo(here_, kPath));
  EXPECT_FALSE(echo(here_, kAbstract));
}

TEST_F(SimLocal, SystemFileIsNotReplaced) {
  const auto server = serve_at(here_, must(Address::path("/etc/passwd")));
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), std::errc::address_in_use);
  EXPECT_EQ(::access("/etc/passwd", F_OK), 0);
}

TEST_F(SimLocal, ConnectToFullBacklogFails) {
  Listener listener = here_.run([](Loop& loop) {
    return must(Listener::create(loop, kPath, [](Stream, const Address&) {}, {.backlog = 1}));
  });
  listener.pause();
  EchoClient clients[] = {EchoClient("one"), EchoClient("two"), EchoClient("three")};
  here_.run([&](Loop& loop) {
    for (EchoClient& client : clients) client.start(loop, kPath);
  });
  world_.run_for(1s);
  EXPECT_FALSE(clients[1].error());
  EXPECT_EQ(clients[2].error(), std::errc::resource_unavailable_try_again);
}

TEST_F(SimLocal, CloseWithUnreadInputIsReset) {
  auto [one, other] = here_.run([](Loop& loop) { return must(Stream::socket_pair(loop)); });
  std::optional<std::error_code> end;
  here_.run([&](Loop&) {
    one.start({});
    other.start({.on_closed = [&](std::error_code error) { end = error; }});
    other.write("never read");
    one.pause();
  });
  world_.run_for(1s);
  here_.run([&](Loop&) { one.abort(); });
  world_.run_for(1s);
  EXPECT_EQ(end, std::errc::connection_reset);
}

// ---- descriptors

class Taker final : public StreamHandler {
 public:
  std::size_t on_data(Bytes bytes) override {
    text += text_of(bytes);
    return bytes.size();
  }
  void on_descriptors(std::span<const int> arrived, bool some_lost) override {
    descriptors.insert(descriptors.end(), arrived.begin(), arrived.end());
    has_lost_some |= some_lost;
  }
  void on_closed(std::error_code error) override { end = error; }

  std::string text;
  std::vector<int> descriptors;  // Ours to close.
  bool has_lost_some = false;
  std::optional<std::error_code> end;
};

class SimPassing : public SimLocal {
 protected:
  SimPassing() {
    here_.run([&](Loop& loop) {
      std::tie(sender_, receiver_) = must(Stream::socket_pair(loop));
      receiver_.start(taker_);
      receiver_.set_receive_descriptors(true);
    });
  }
  std::error_code send(std::string_view text, const std::vector<int>& descriptors) {
    const auto result =
        here_.run([&](Loop&) { return sender_.send_descriptors(bytes_of(text), descriptors); });
    world_.run_for(1s);
    return result;
  }

  Taker taker_;
  Stream sender_;
  Stream receiver_;
};

TEST_F(SimPassing, PassedSocketIsSameSocket) {
  auto [mine, theirs] = here_.run([](Loop& loop) { return must(Stream::socket_pair(loop)); });
  EXPECT_FALSE(send("take it", {theirs.fd()}));
  here_.run([&](Loop&) { theirs = Stream(); });
  EXPECT_EQ(taker_.text, "take it");
  ASSERT_EQ(taker_.descriptors.size(), 1u);
  Taker second;
  here_.run([&](Loop& loop) {
    Stream again = must(Stream::adopt(loop, taker_.descriptors[0]));
    again.write("from there");
    mine.start(second);
    again.close();
  });
  world_.run_for(1s);
  EXPECT_EQ(second.text, "from there");
}

TEST_F(SimPassing, SystemFileMayBePassed) {
  const int file = ::open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(send("a file", {file}));
  ::close(file);
  ASSERT_EQ(taker_.descriptors.size(), 1u);
  char byte = 0;
  EXPECT_EQ(::read(taker_.descriptors[0], &byte, 1), 1);
  ::close(taker_.descriptors[0]);
}

TEST_F(SimPassing, DescriptorsBeyondLimitAreClosed) {
  auto [mine, theirs] = here_.run([](Loop& loop) { return must(Stream::socket_pair(loop)); });
  receiver_.pause();
  EXPECT_FALSE(send("two", {mine.fd(), theirs.fd()}));
  here_.limit_descriptors(here_.open_descriptors() + 1);
  here_.run([&](Loop&) { receiver_.resume(); });
  world_.run_for(1s);
  ASSERT_EQ(taker_.descriptors.size(), 1u);
  EXPECT_TRUE(taker_.has_lost_some);
  static_cast<void>(must(Stream::adopt(here_.loop(), taker_.descriptors[0])));
}

TEST_F(SimPassing, ClosedDescriptorsCannotBePassed) {
  const int closed =
      must(here_.run([](Loop& loop) { return Stream::socket_pair(loop); })).first.fd();
  EXPECT_EQ(send("none", {closed}), std::errc::bad_file_descriptor);
}

TEST_F(SimPassing, DescriptorsInFlightAreClosedWithTheirSocket) {
  const std::size_t before = here_.open_descriptors();
  auto [mine, theirs] = here_.run([](Loop& loop) { return must(Stream::socket_pair(loop)); });
  receiver_.pause();
  EXPECT_FALSE(send("unread", {theirs.fd()}));
  Taker second;
  here_.run([&](Loop&) {
    mine.start(second);
    theirs = Stream();
  });
  world_.run_for(1s);
  EXPECT_FALSE(second.end);  // It is on its way.
  here_.run([&](Loop&) { receiver_ = Stream(); });
  world_.run_for(1s);
  EXPECT_TRUE(second.end);
  mine = Stream();
  sender_ = Stream();
  EXPECT_LT(here_.open_descriptors(), before);
}

// Only the end of the World can close these.
TEST_F(SimPassing, SocketCyclesAreClosedWithWorld) {
  receiver_.pause();
  EXPECT_FALSE(send("itself", {receiver_.fd(), sender_.fd()}));
}

// ---- packets

TEST_F(SimLocal, PacketsArriveWholeAndInOrder) {
  const Address to = must(Address::parse("unix:@packets"));
  std::vector<std::string> texts;
  Datagram server = here_.run([&](Loop& loop) { return must(Datagram::create(loop, to)); });
  Datagram client = here_.run([&](Loop& loop) { return must(Datagram::create(loop, kPath)); });
  EXPECT_FALSE(server.start({.on_packets = [&](std::span<const Packet> packets) {
    for (const Packet& packet : packets) {
      EXPECT_EQ(packet.peer, kPath);
      texts.emplace_back(text_of(packet.bytes));
    }
  }}));
  EXPECT_FALSE(client.send(bytes_of("one"), to));
  EXPECT_FALSE(client.connect(to));
  EXPECT_FALSE(client.send(bytes_of("two")));
  world_.run_for(1s);
  EXPECT_EQ(texts, (std::vector<std::string>{"one", "two"}));
}

TEST_F(SimLocal, PacketsAreRefusedWithoutReceiverOrSpace) {
  const Address to = must(Address::parse("unix:@packets"));
  Datagram client = here_.run([&](Loop& loop) { return must(Datagram::create(loop, kAbstract)); });
  EXPECT_EQ(client.send(bytes_of("x"), to), std::errc::connection_refused);
  EXPECT_EQ(client.send(bytes_of("x"), kPath), std::errc::no_such_file_or_directory);
  Datagram server = here_.run([&](Loop& loop) { return must(Datagram::create(loop, to)); });
  std::error_code error;
  int sent = 0;
  while (sent < 100 && !(error = client.send(bytes_of("x"), to))) ++sent;
  EXPECT_EQ(sent, 11);
  EXPECT_EQ(error, std::errc::resource_unavailable_try_again);
}

TEST_F(SimLocal, RelayConnectsNetworkAndPath) {
  const auto server = must(serve_at(here_, kPath));
  std::vector<Connecting> connecting;
  std::vector<Relaying> relays;
  const auto join = [&](Stream outside, Result<Stream> inside) {
    relays.push_back(relay(std::move(outside), must(std::move(inside)), [](const RelayResult&) {}));
  };
  const auto door = here_.run([&](Loop& loop) {
    return must(
        Listener::create(loop, Address::any_ipv4(7000), [&](Stream outside, const Address&) {
          connecting.push_back(connect(
              loop, kPath, [&join, outside = std::move(outside)](Result<Stream> inside) mutable {
                join(std::move(outside), std::move(inside));
              }));
        }));
  });
  EchoClient client(std::string(300'000, 'x'));
  there_.run([&](Loop& loop) { client.start(loop, here_.address(7000)); });
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 1h), Outcome::done);
  EXPECT_TRUE(client.has_all());
}

}  // namespace
}  // namespace spate::testing
