// Gateway: the forwarding of bodies, and of responses before the response.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "http/gateway_harness.h"

namespace spate::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

// ---- bodies

TEST_F(GatewayTest, ForwardsBodyOfKnownSize) {
  const auto client = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
  EXPECT_THAT(up().received, HasSubstr("Content-Length: 10\r\n"));
  EXPECT_TRUE(up().received.ends_with("\r\n\r\nhello"));
  client->send("world");
  turns();
  EXPECT_TRUE(up().received.ends_with("helloworld"));
  up().answer(kOkTwo);
  turns();
  EXPECT_TRUE(client->received.ends_with("\r\n\r\nok"));
}

TEST_F(GatewayTest, ForwardsChunkedBodyAndItsTrailers) {
  const auto client =
      ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
          "3;x=y\r\nabc\r\n02\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n");
  EXPECT_THAT(up().received, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(up().received.ends_with("\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n"));
  up().answer(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n");
  turns();
  EXPECT_TRUE(client->received.ends_with("\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"));
}

TEST_F(GatewayTest, ForwardsPartsOfBodyAtOnce) {
  const auto client = ask(kGet);
  up().answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
  turns();
  EXPECT_TRUE(client->received.ends_with("\r\n\r\nab"));
  up().answer("cd");
  turns();
  EXPECT_TRUE(client->received.ends_with("\r\n\r\nabcd"));
}

TEST_F(GatewayTest, KeepsContentLengthOfResponseToHead) {
  const std::string got = got_for("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
                                  "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(got, HasSubstr("Content-Length: 1234\r\n"));
  EXPECT_TRUE(got.ends_with("\r\n\r\n"));
}

TEST_F(GatewayTest, FramesResponseForClient) {
  constexpr std::string_view kUntilEnd = "HTTP/1.0 200 OK\r\n\r\nuntil the end";
  EXPECT_TRUE(got_for(kUntilEnd).ends_with("\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n"));
  const std::string old =
      got_for("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
              "GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(old.ends_with("\r\n\r\nabc"));
}

TEST_F(GatewayTest, ReusesConnection) {
  const auto client = ask(kGet);
  up().answer(kOkTwo);
  turns();
  client->send(kGet);
  turns();
  up().answer(kOkTwo);
  turns();
  EXPECT_EQ(upstreams.size(), 1u);
  EXPECT_EQ(gateway_.metrics().forwarded, 2u);
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

TEST_F(GatewayTest, ReadsNoMoreThanClientAccepts) {
  const auto client = connect();
  client->stream().pause();
  client->send(kGet);
  turns();
  up().answer("HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n");
  for (int i = 0; i < 80; ++i) up().answer(std::string(100'000, 'x'));
  turns(200);
  EXPECT_GT(up().stream().queued(), 6'000'000u);
  client->stream().resume();
  turns(2000);
  EXPECT_EQ(up().stream().queued(), 0u);
  EXPECT_TRUE(client->received.ends_with(std::string(8'000'000, 'x')));
}

TEST_F(GatewayTest, ReadsNoMoreThanUpstreamAccepts) {
  on_upstream = [](Peer& peer) { peer.stream().pause(); };
  const auto client = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n");
  for (int i = 0; i < 80; ++i) client->send(std::string(100'000, 'x'));
  turns(200);
  EXPECT_GT(client->stream().queued(), 6'000'000u);
  up().on_request = nullptr;
  up().stream().resume();
  turns(2000);
  EXPECT_EQ(client->stream().queued(), 0u);
  EXPECT_TRUE(up().received.ends_with(std::string(8'000'000, 'x')));
}

TEST_F(GatewayTest, EndsAfterResponseBeforeEndOfBody) {
  const auto client = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\nabc");
  up().answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 413 "));
  EXPECT_TRUE(client->is_ended);
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

// ---- answers before the answer

constexpr std::string_view kExpecting =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";

TEST_F(GatewayTest, ForwardsExpect100Continue) {
  const auto client = ask(kExpecting);
  EXPECT_THAT(up().received, HasSubstr("\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(client->received, "");
  up().answer("HTTP/1.1 100 Continue\r\n\r\n");
  turns();
  EXPECT_EQ(client->received, "HTTP/1.1 100 Continue\r\n\r\n");
  client->send("hi");
  turns();
  EXPECT_TRUE(up().received.ends_with("\r\n\r\nhi"));
  up().answer(kOkTwo);
  turns();
  EXPECT_TRUE(client->received.ends_with("\r\n\r\nok"));
}

TEST_F(GatewayTest, DoesNotRequestBodyThatUpstreamRefuses) {
  const auto client = ask(kExpecting);
  up().answer("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 403 "));
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

TEST_F(GatewayTest, Sends100ContinueIfUpstreamDoesNot) {
  const auto client = ask(kExpecting);
  pass(1001ms);
  EXPECT_EQ(client->received, "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST_F(GatewayTest, ForwardsInterimResponses) {
  const auto client = ask(kGet);
  up().answer("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-M\r\nX-M: 1\r\n\r\n");
  turns();
  EXPECT_EQ(client->received, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
}

}  // namespace
}  // namespace spate::testing
