// Each hook of HTTP destroys its owner, or the object above it. The access log is
// in access_log.cc, on_tls_failure in tests/tls/serve.cc. OpenStream and OnRead must not destroy.
#include <optional>
#include <string>
#include <tuple>

#include "http/gateway_harness.h"
#include "http/http2_harness.h"
#include "spate/http/events.h"

namespace spate::testing {
namespace {

using http::EventChannel;
using http::EventStream;
using http::Exchange;
using ::testing::StartsWith;
using namespace std::chrono_literals;

// A function that holds this lies on the heap: one that is destroyed while it runs is found.
std::string long_text() { return std::string(100, 't'); }

// ---- OnUnreached

enum class Destroys : std::uint8_t { gateway, server, both };
enum class Then : std::uint8_t { nothing, another };

void PrintTo(Destroys destroys, std::ostream* out) {
  constexpr const char* kNames[] = {"Gateway", "Server", "Both"};
  *out << kNames[static_cast<int>(destroys)];
}
void PrintTo(Then then, std::ostream* out) {
  *out << (then == Then::another ? "ThenAnother" : "ThenNothing");
}

using UnreachedRow = std::tuple<Destroys, Then, bool>;

class UnreachedDestroys : public GatewayTest, public ::testing::WithParamInterface<UnreachedRow> {};

TEST_P(UnreachedDestroys, NoFurtherCallFollows) {
  const auto [destroys, then, has_body] = GetParam();
  unreachable = {"up.example"};
  std::string told;
  int asked = 0;
  on_unreached = [&, text = long_text()](std::error_code error) -> std::string {
    if (destroys != Destroys::server) gateway_ = {};
    if (destroys != Destroys::gateway) server_ = {};
    told = text;
    ++asked;
    EXPECT_EQ(error, std::errc::connection_refused);
    return then == Then::another && asked == 1 ? "http://other.example" : "";
  };
  const auto client =
      ask(has_body ? "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi" : kGet);
  turns();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(told, long_text());
  if (destroys == Destroys::gateway) EXPECT_THAT(client->received, StartsWith("HTTP/1.1 503 "));
  if (destroys != Destroys::server) EXPECT_EQ(opened.size(), 1u);
}

std::string name_of_unreached(const ::testing::TestParamInfo<UnreachedRow>& info) {
  const auto [destroys, then, has_body] = info.param;
  return ::testing::PrintToString(destroys) + "_" + ::testing::PrintToString(then) +
         (has_body ? "_Body" : "");
}
INSTANTIATE_TEST_SUITE_P(
    EveryOwner, UnreachedDestroys,
    ::testing::Combine(::testing::Values(Destroys::gateway, Destroys::server, Destroys::both),
                       ::testing::Values(Then::nothing, Then::another), ::testing::Bool()),
    name_of_unreached);

// ---- EventStream's on_closed

enum class Ends : std::uint8_t { client_resets, client_ends, reads_too_slowly };
enum class Owner : std::uint8_t { handle, channel, server };

void PrintTo(Ends how, std::ostream* out) {
  constexpr const char* kEnds[] = {"ClientResets", "ClientEnds", "ReadsTooSlowly"};
  *out << kEnds[static_cast<int>(how)];
}
void PrintTo(Owner owner, std::ostream* out) {
  constexpr const char* kOwners[] = {"Handle", "Channel", "Server"};
  *out << kOwners[static_cast<int>(owner)];
}

using EventRow = std::tuple<bool, Ends, Owner>;

class EventEndDestroys : public Http2ServerTest, public ::testing::WithParamInterface<EventRow> {
 protected:
  bool is_http2() const { return std::get<0>(GetParam()); }
  Ends how() const { return std::get<1>(GetParam()); }
  Owner owner() const { return std::get<2>(GetParam()); }

  void open(Exchange exchange) {
    EventStream stream = EventStream::open(std::move(exchange), {.max_queued = 100'000});
    stream.set_on_closed([this, text = long_text()](std::error_code) {
      if (owner() == Owner::handle) stream_ = {};
      if (owner() == Owner::channel) channel_.reset();
      if (owner() == Owner::server) server_ = {};
      told_ = text;
      ++closed_;
    });
    if (owner() == Owner::channel) {
      EXPECT_TRUE(channel_->add(std::move(stream)));
    } else {
      stream_ = std::move(stream);
    }
  }
  void send(std::string_view text) {
    owner() == Owner::channel ? static_cast<void>(channel_->publish(text))
                              : static_cast<void>(stream_.send(text));
  }
  void subscribe() {
    if (is_http2()) {
      client2_ = connect2(Windows::by_hand);
      client2_->get("/");
    } else {
      client_ = connect();
      client_->send(kGet);
    }
    turns();
  }
  void end() {
    Stream& client = is_http2() ? client2_->stream() : client_->stream();
    if (how() == Ends::client_resets) client.abort();
    if (how() == Ends::client_ends) client.close();
    if (how() == Ends::reads_too_slowly) {
      client.pause();
      for (int i = 0; i < 100 && closed_ == 0; ++i) {
        send(std::string(40'000, 'x'));
        turns(3);
      }
    }
    turns();
  }

  std::unique_ptr<RawClient> client_;
  std::unique_ptr<Http2Client> client2_;
  EventStream stream_;
  std::optional<EventChannel> channel_{std::in_place};
  std::string told_;
  int closed_ = 0;
};

TEST_P(EventEndDestroys, NoFurtherCallFollows) {
  on_request = [this](Exchange exchange) { open(std::move(exchange)); };
  subscribe();
  end();
  EXPECT_EQ(closed_, 1);
  EXPECT_EQ(told_, long_text());
  if (owner() == Owner::channel && channel_) channel_->publish("x");
}

std::string name_of_event(const ::testing::TestParamInfo<EventRow>& info) {
  const auto [is_http2, how, owner] = info.param;
  return std::string(is_http2 ? "Http2_" : "Http1_") + ::testing::PrintToString(how) + "_" +
         ::testing::PrintToString(owner);
}
INSTANTIATE_TEST_SUITE_P(
    EveryEnd, EventEndDestroys,
    ::testing::Combine(::testing::Bool(),
                       ::testing::Values(Ends::client_resets, Ends::client_ends,
                                         Ends::reads_too_slowly),
                       ::testing::Values(Owner::handle, Owner::channel, Owner::server)),
    name_of_event);

// ---- the ends of a drain, and of a body

class DestroyingHooks : public Http2ServerTest {};

TEST_F(DestroyingHooks, DrainCompletionMayDestroyServer) {
  for (const bool is_idle : {true, false}) {
    serve2({});
    Exchange kept;
    on_request = [&](Exchange exchange) { kept = std::move(exchange); };
    const auto client = connect();
    if (!is_idle) client->send(kGet);
    turns();
    std::string told;
    int calls = 0;
    server_.drain(10s, [&, text = long_text()] {
      server_ = {};
      told = text;
      ++calls;
    });
    server_.drain(10s, [&] { ++calls; });
    pass(20s);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(told, long_text());
    EXPECT_TRUE(client->is_ended || client->is_closed);
  }
}

TEST_F(DestroyingHooks, BodyMayDestroyServer) {
  for (const bool is_http2 : {false, true}) {
    serve2({});
    std::string told;
    on_request = [&](Exchange exchange) {
      http::read_body(std::move(exchange), 100,
                      [&, text = long_text()](Exchange whole, Bytes body) {
                        server_ = {};
                        told = text + std::string(text_of(body));
                        EXPECT_FALSE(whole.respond("late"));
                      });
    };
    if (is_http2) {
      const auto client = connect2();
      client->post("/", "hi");
      turns();
    } else {
      talk("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    }
    EXPECT_EQ(told, long_text() + "hi");
  }
}

}  // namespace
}  // namespace spate::testing
