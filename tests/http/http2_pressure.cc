// HTTP/2: a client that does not read its responses costs a bounded amount of memory and files, and
// an early response reaches a client that still sends its body.
#include <fcntl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/http2_harness.h"
#include "spate/http/files.h"
#include "support/own_tree.h"
#include "support/pool_work.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;

constexpr std::size_t kMebibyte = 1024 * 1024;

class Http2Pressure : public Http2ServerTest {
 protected:
  static constexpr std::uint32_t kStreams = 4;  // So 1 MiB and 4 files may wait.

  Http2Pressure() { serve2({}, {.max_streams = kStreams}); }

  std::unique_ptr<Http2Client> connect_unread() {
    return connect2(Windows::as_they_come, {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0}});
  }
  void open_windows(Http2Client& client) {
    const nghttp2_settings_entry wide{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 65'535};
    nghttp2_submit_settings(client.session(), 0, &wide, 1);
    client.flush();
    turns(300);
  }
};

TEST_F(Http2Pressure, HoldsRequestsWhileTooMuchIsQueued) {
  std::vector<std::string> started;
  on_request = [&](Exchange exchange) {
    started.emplace_back(exchange.request().path());
    exchange.respond(std::string(kMebibyte + 1, 'x'));
  };
  const auto client = connect_unread();
  std::vector<std::int32_t> ids;
  for (const char* path : {"/1", "/2", "/3", "/4"}) ids.push_back(client->get(path));
  turns();
  EXPECT_THAT(started, ::testing::ElementsAre("/1"));
  EXPECT_EQ(server_.metrics().requests, 1u);
  open_windows(*client);
  EXPECT_THAT(started, ::testing::ElementsAre("/1", "/2", "/3", "/4"));
  for (const std::int32_t id : ids) {
    EXPECT_TRUE(client->answers[id].is_ended);
    EXPECT_EQ(client->answers[id].body.size(), kMebibyte + 1);
  }
  EXPECT_EQ(server_.metrics().exchanges, 0u);
}

// Also if there is room when a later one arrives.
TEST_F(Http2Pressure, StartsHeldRequestsInTheirOrder) {
  std::vector<std::string> started;
  on_request = [&](Exchange exchange) {
    started.emplace_back(exchange.request().path());
    exchange.respond(std::string(kMebibyte + 1, 'x'));
  };
  const auto client = connect_unread();
  const std::int32_t first = client->get("/1");
  client->get("/2");
  turns();
  client->reset(first);
  client->get("/3");
  turns();
  EXPECT_THAT(started, ::testing::ElementsAre("/1", "/2"));
  open_windows(*client);
  EXPECT_THAT(started, ::testing::ElementsAre("/1", "/2", "/3"));
}

// Each of its streams may have a full queue.
TEST_F(Http2Pressure, StartsRequestsAlongsideStreamsThatStopWhenFull) {
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) {
    exchange.begin(Status::ok);
    while (!exchange.is_full()) exchange.write(std::string(1024, 'x'));
    kept.push_back(std::move(exchange));
  };
  const auto client = connect_unread();
  for (std::uint32_t i = 0; i < kStreams; ++i) client->get("/");
  turns();
  EXPECT_EQ(kept.size(), kStreams);
}

TEST_F(Http2Pressure, CountsOnlyQueuedBytes) {
  on_request = [](Exchange exchange) { exchange.respond(std::string(kMebibyte + 1, 'x')); };
  const auto client = connect_unread();
  for (int i = 0; i < 10; ++i) {
    const std::int32_t id = client->get("/");
    turns();
    EXPECT_EQ(server_.metrics().requests, static_cast<std::uint64_t>(i) + 1);
    client->reset(id);
    turns();
  }
}

TEST_F(Http2Pressure, KeepsBodyOfHeldRequest) {
  on_request = [](Exchange exchange) {
    if (exchange.request().path() == "/long")
      return void(exchange.respond(std::string(kMebibyte + 1, 'x')));
    const bool has_body = exchange.request().has_body();
    http::read_body(std::move(exchange), 1000, [has_body](Exchange whole, Bytes body) {
      whole.respond((has_body ? "body " : "none ") + std::string(text_of(body)));
    });
  };
  const auto client = connect_unread();
  client->get("/long");
  const std::int32_t whole = client->post("/", "whole");
  const std::int32_t part = client->open_post("/");
  client->write(part, "half", false);
  const std::int32_t none = client->get("/");
  turns();
  EXPECT_EQ(server_.metrics().requests, 1u);
  open_windows(*client);
  client->write(part, " and half", true);
  turns();
  EXPECT_EQ(client->answers[whole].body, "body whole");
  EXPECT_EQ(client->answers[part].body, "body half and half");
  EXPECT_EQ(client->answers[none].body, "none ");
}

// Responds with the trailers of a request.
class TrailersEcho final : public http::ExchangeHandler {
 public:
  explicit TrailersEcho(Exchange exchange) : exchange_(std::move(exchange)) {
    exchange_.start(*this);
  }
  void on_body_end(const http::FieldsView& trailers) override {
    exchange_.respond(trailers["checksum"]);
  }
  void on_closed(std::error_code) override {}

 private:
  Exchange exchange_;
};

TEST_F(Http2Pressure, KeepsTrailersOfHeldRequest) {
  std::unique_ptr<TrailersEcho> echo;
  on_request = [&](Exchange exchange) {
    if (exchange.request().path() == "/long")
      return void(exchange.respond(std::string(kMebibyte + 1, 'x')));
    echo = std::make_unique<TrailersEcho>(std::move(exchange));
  };
  const auto client = connect_unread();
  client->get("/long");
  const std::int32_t id = client->open_post("/");
  client->write(id, "body", true, {{"checksum", "seven"}});
  turns();
  ASSERT_EQ(echo, nullptr);
  open_windows(*client);
  EXPECT_EQ(client->answers[id].body, "seven");
}

TEST_F(Http2Pressure, DropsHeldRequestThatIsReset) {
  on_request = [](Exchange exchange) { exchange.respond(std::string(kMebibyte + 1, 'x')); };
  int logged = 0;
  http::ServerOptions options;
  options.log = [&](const http::AccessRecord&) { ++logged; };
  serve2(std::move(options), {.max_streams = kStreams});
  const auto client = connect_unread();
  client->get("/");
  const std::int32_t first = client->get("/");
  const std::int32_t second = client->get("/");
  const std::int32_t third = client->get("/");
  turns();
  client->reset(third);
  client->reset(first);
  turns();
  open_windows(*client);
  EXPECT_TRUE(client->answers[second].is_ended);
  EXPECT_EQ(server_.metrics().requests, 2u);
  EXPECT_EQ(logged, 2);
}

TEST_F(Http2Pressure, ServesHeldRequestsOfHalfClosedClient) {
  on_request = [](Exchange exchange) { exchange.respond(std::string(2 * kMebibyte, 'x')); };
  constexpr auto kWide = static_cast<std::int32_t>(8 * kMebibyte);
  const auto client = connect2(Windows::as_they_come,
                               {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, std::uint32_t{kWide}}});
  nghttp2_session_set_local_window_size(client->session(), NGHTTP2_FLAG_NONE, 0, kWide);
  client->stream().pause();
  client->get("/");
  const std::int32_t held = client->get("/");
  client->flush();
  turns();
  EXPECT_EQ(server_.metrics().requests, 1u);
  client->stream().end();
  turns();
  client->stream().resume();
  turns(300);
  EXPECT_TRUE(client->answers[held].is_ended);
}

TEST_F(Http2Pressure, EndsWhenServerIsDestroyed) {
  on_request = [](Exchange exchange) { exchange.respond(std::string(kMebibyte + 1, 'x')); };
  const auto client = connect_unread();
  client->get("/");
  client->get("/");
  turns();
  server_ = {};
  turns();
  EXPECT_TRUE(client->is_ended || client->is_closed);
}

// ---- files

class Http2Files : public Http2Pressure {
 protected:
  Http2Files() {
    tree_.write("long", std::string(200'000, 'x'));
    files_ = must(http::Files::open(tree_.root()));
    on_request = [this](Exchange exchange) { files_->serve(std::move(exchange)); };
  }

  OwnTree tree_;
  std::optional<http::Files> files_;
};

TEST_F(Http2Files, UseOneDescriptorPerResponse) {
  std::string ranges = "bytes=0-9999";
  for (int i = 1; i < 16; ++i)
    ranges += "," + std::to_string(i * 12'000) + "-" + std::to_string(i * 12'000 + 9'999);
  const auto client = connect_unread();
  const std::size_t before = open_fds().size();
  std::vector<std::int32_t> ids;
  for (std::uint32_t i = 0; i < kStreams; ++i)
    ids.push_back(client->get("/long", {{"range", ranges}}));
  finish_in_pool(loop_, [this] { turns(); });
  EXPECT_LE(open_fds().size(), before + kStreams);
  open_windows(*client);
  finish_in_pool(loop_, [this] { turns(); });
  for (const std::int32_t id : ids) {
    EXPECT_EQ(client->answers[id].status, 206);
    EXPECT_TRUE(client->answers[id].is_ended);
    EXPECT_GT(client->answers[id].body.size(), 160'000u);
  }
  EXPECT_EQ(open_fds().size(), before);
}

TEST_F(Http2Files, HoldRequestsWhileTooManyAreOpen) {
  on_request = [this](Exchange exchange) {
    exchange.begin(Status::ok);
    for (std::uint32_t i = 0; i < kStreams; ++i) {
      const int file = ::open(tree_.at("long").c_str(), O_RDONLY | O_CLOEXEC);
      ASSERT_FALSE(exchange.send_file(file, 0, 1000));
    }
    exchange.end();
  };
  const auto client = connect_unread();
  const std::size_t before = open_fds().size();
  client->get("/");
  const std::int32_t last = client->get("/");
  turns();
  EXPECT_EQ(server_.metrics().requests, 1u);
  EXPECT_LE(open_fds().size(), before + 1 + kStreams);
  open_windows(*client);
  EXPECT_EQ(client->answers[last].body.size(), 4000u);
}

// ---- early responses

TEST_F(Http2Pressure, LetsUploadUseItsWindowAfterResponse) {
  on_request = [](Exchange exchange) { exchange.respond(Status::unauthorized); };
  const auto client = connect2();
  const std::int32_t id = client->open_post("/");
  client->write(id, std::string(60'000, 'b'), false);
  turns();
  EXPECT_EQ(client->answers[id].status, 401);
  EXPECT_TRUE(client->answers[id].is_ended);
  EXPECT_FALSE(client->answers[id].is_closed);
  client->write(id, std::string(10'000, 'b'), true);
  turns();
  EXPECT_TRUE(client->answers[id].is_closed);
  EXPECT_EQ(client->answers[id].code, 0u);
}

// Whether the response comes with the head, or when the window has been used up.
TEST_F(Http2Pressure, AcceptsUploadBeyondWindowAfterResponse) {
  for (const bool is_late : {false, true}) {
    Exchange kept;
    on_request = [&](Exchange exchange) {
      if (!is_late) exchange.respond("early");
      kept = std::move(exchange);
    };
    const auto client = connect2();
    const std::int32_t id = client->post("/", std::string(1'000'000, 'b'));
    turns(100);
    if (is_late) {
      EXPECT_FALSE(client->answers[id].unsent.empty());
      kept.respond("early");
      turns(100);
    }
    EXPECT_EQ(client->answers[id].body, "early");
    EXPECT_FALSE(client->answers[id].fields.contains("content-length"));
    EXPECT_TRUE(client->answers[id].unsent.empty());
    EXPECT_TRUE(client->answers[id].is_closed);
    EXPECT_EQ(client->answers[id].code, 0u);
  }
}

// curl 7.88 waits for the next frame to see that its stream has closed.
TEST_F(Http2Pressure, SendsPingWhenUploadEndsAfterItsResponse) {
  for (const bool is_read : {false, true}) {
    std::unique_ptr<Kept> kept;
    on_request = [&](Exchange exchange) {
      exchange.respond("early");
      if (is_read) kept = std::make_unique<Kept>(std::move(exchange));
    };
    const auto client = connect2();
    const std::int32_t id = client->open_post("/");
    turns();
    EXPECT_TRUE(client->answers[id].is_ended);
    EXPECT_EQ(client->pings, 0);
    client->write(id, "the rest", true);
    turns();
    EXPECT_TRUE(client->answers[id].is_closed);
    EXPECT_EQ(client->pings, 1) << (is_read ? "read" : "ignored");
  }
}

TEST_F(Http2Pressure, SendsLengthAndNoPingAfterEndOfUpload) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) { kept = std::make_unique<Kept>(std::move(exchange)); };
  const auto client = connect2();
  const std::int32_t id = client->post("/", "body");
  turns();
  ASSERT_TRUE(kept->is_ended);
  kept->exchange.respond("late");
  turns();
  EXPECT_EQ(client->answers[id].fields["content-length"], "4");
  EXPECT_EQ(client->pings, 0);
}

TEST_F(Http2Pressure, AcceptsOnlyOneWindowUntilResponseIsSent) {
  on_request = [](Exchange exchange) {
    exchange.respond(Status::ok, std::string(100'000, 'r'), "text/plain");
  };
  const auto client = connect2(Windows::by_hand);
  const std::int32_t id = client->post("/", std::string(1'000'000, 'b'));
  turns(100);
  EXPECT_FALSE(client->answers[id].unsent.empty());
  EXPECT_FALSE(client->answers[id].is_ended);
  client->credit(id, 65'535);
  turns(100);
  EXPECT_TRUE(client->answers[id].is_ended);
  EXPECT_TRUE(client->answers[id].unsent.empty());
}

TEST_F(Http2Pressure, ResetsUploadSomeTimeAfterResponse) {
  on_request = [](Exchange exchange) { exchange.respond(Status::unauthorized); };
  const auto client = connect2();
  const std::int32_t id = client->open_post("/");
  client->write(id, std::string(1'000'000, 'b'), false);
  turns(100);
  EXPECT_EQ(client->answers[id].status, 401);
  EXPECT_FALSE(client->answers[id].is_closed);
  pass(kSecond);
  pass(kSecond);
  EXPECT_TRUE(client->answers[id].is_closed);
  EXPECT_EQ(client->answers[id].code, 0u);
}

TEST_F(Http2Pressure, EndsUploadWhenClientEnds) {
  on_request = [](Exchange exchange) { exchange.respond(Status::unauthorized); };
  const auto client = connect2();
  client->open_post("/");
  turns();
  client->stream().end();
  turns();
  EXPECT_TRUE(client->is_ended);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

}  // namespace
}  // namespace spate::testing
