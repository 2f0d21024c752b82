// Uploads of a client over HTTP/2: windows, limits and answers of the server.
#include <chrono>
#include <string>

#include "http/client_http2_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Method;
using ::testing::ElementsAre;

class ClientHttp2Uploads : public Http2PeerTest {};

// A small frame is copied, a large one is moved: either may be the one that makes room.
TEST_F(ClientHttp2Uploads, UploadIsDrainedBySmallFrames) {
  constexpr std::size_t kWindowAtFirst = 65'535;
  constexpr std::size_t kLow = 65'536;
  constexpr std::uint32_t kMany = 200'000;
  Hearer hearer;
  http::Call call =
      client_.send(kUrl, hearer, {.method = Method::post, .upload = http::kUnknownSize});
  turns();
  greet(peer());
  EXPECT_TRUE(call.write(std::string(kWindowAtFirst + kMany + kLow + 1000, 'x')));
  turns();
  EXPECT_TRUE(call.is_full());
  const auto grant = [&](std::uint32_t size) {
    for (const std::uint32_t stream : {0u, 1u}) {
      peer().answer(frame(kWindow, 0, stream, number(size)));
    }
    turns();
  };
  grant(kMany);
  EXPECT_EQ(heard().body, kWindowAtFirst + kMany);
  EXPECT_TRUE(call.is_full());
  grant(1500);
  EXPECT_EQ(heard().body, kWindowAtFirst + kMany + 1500);
  EXPECT_FALSE(call.is_full());
  EXPECT_EQ(hearer.told.back(), "drained");
}

TEST_F(ClientHttp2Uploads, ZeroWindowHoldsBackBody) {
  const std::string body(100'000, 'x');
  Outcome outcome;
  const http::Call get = fetch(outcome);
  turns();
  greet(peer(), setting(4, 0));
  peer().answer(answer_of(1));
  turns();
  Outcome posted;
  const http::Call call = fetch(posted, {.method = Method::post, .body = bytes_of(body)});
  turns();
  EXPECT_EQ(heard().body, 0u);
  peer().answer(frame(kWindow, 0, 3, number(1000)));
  turns();
  EXPECT_EQ(heard().body, 1000u);
  peer().answer(frame(kWindow, 0, 3, number(1'000'000)));
  turns();
  EXPECT_EQ(heard().body, 65'535u);  // That of the connection.
  peer().answer(frame(kWindow, 0, 0, number(1'000'000)));
  turns();
  EXPECT_EQ(heard().body, body.size());
  peer().answer(answer_of(3, "thanks"));
  turns();
  EXPECT_EQ(posted.text(), "thanks");
}

TEST_F(ClientHttp2Uploads, CallWaitsForServerThatAllowsNoStreams) {
  make_client2({.max_per_origin = 1});
  Outcome first, outcome;
  const http::Call begun = fetch(first);
  turns();
  greet(peer(), setting(3, 0));
  peer().answer(answer_of(1));
  turns();
  EXPECT_EQ(first.text(), "ok");
  const http::Call call = fetch(outcome);
  turns(200);
  EXPECT_EQ(peers.size(), 1u);
  EXPECT_FALSE(outcome.is_there());
  peer().answer(setting(3, 1));
  turns();
  peer().answer(answer_of(3));
  turns();
  EXPECT_EQ(outcome.text(), "ok");
}

TEST_F(ClientHttp2Uploads, EarlyResponseStopsUpload) {
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.method = Method::post, .upload = 10});
  call.write("abc");
  turns();
  greet(peer());
  peer().answer(answer_of(1, "no"));
  turns();
  EXPECT_EQ(hearer.body, "no");
  EXPECT_EQ(hearer.told.back(), "closed");
  EXPECT_FALSE(hearer.error);
  EXPECT_EQ(heard().last_reset, 8);
  EXPECT_FALSE(call.write("d"));
}

// ---- Expect

const std::string kContinue = head_of(1, field(":status", "100"));

TEST_F(ClientHttp2Uploads, BodyWaitsFor100Continue) {
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .expect_continue = 1s});
  turns();
  greet(peer());
  pass(900ms);
  EXPECT_EQ(heard().body, 0u);
  peer().answer(kContinue);
  turns();
  EXPECT_EQ(heard().body, 4u);
  peer().answer(answer_of(1));
  turns();
  EXPECT_EQ(outcome.text(), "ok");
}

TEST_F(ClientHttp2Uploads, BodyIsSentAfterContinueTimeout) {
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .expect_continue = 1s});
  turns();
  greet(peer());
  pass(900ms);
  EXPECT_EQ(heard().body, 0u);
  pass(200ms);
  EXPECT_EQ(heard().body, 4u);
}

// The response is in the same bytes as the permission to send the body.
TEST_F(ClientHttp2Uploads, BeginAfter100ContinueBeforeResponse) {
  Hearer hearer;
  const http::Call call =
      client_.send(kUrl, hearer, {.method = Method::post, .upload = 3, .expect_continue = 1s});
  turns();
  greet(peer());
  peer().answer(kContinue + answer_of(1));
  turns();
  EXPECT_THAT(hearer.told, ElementsAre("upload", "200", "body", "end", "closed"));
}

}  // namespace
}  // namespace spate::testing
