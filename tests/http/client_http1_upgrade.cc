// A client of HTTP/1.1 whose server switches to another protocol.
#include <string>

#include "http/client_harness.h"

namespace spate::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kSwitched =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: Echo\r\n\r\n";

// Keeps the bytes that arrive after the upgrade.
class Talk final : public StreamHandler {
 public:
  std::size_t on_data(Bytes bytes) override {
    received.append(text_of(bytes));
    return bytes.size();
  }
  void on_closed(std::error_code) override {}
  std::string received;
};

class ClientHttp1Upgrade : public HttpClientTest {
 protected:
  http::Call ask() { return client_.send(kUrl, hearer_, {.upgrade = "echo"}); }
  Hearer hearer_;
};

TEST_F(ClientHttp1Upgrade, SendsUpgradeFields) {
  const http::Call call = ask();
  turns();
  EXPECT_THAT(peer().heard(), HasSubstr("\r\nConnection: upgrade\r\nUpgrade: echo\r\n"));
}

TEST_F(ClientHttp1Upgrade, HandsOverConnectionWithBufferedInput) {
  const http::Call call = ask();
  turns();
  peer().heard();
  peer().answer(std::string(kSwitched) + "hello");
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upgraded Echo"));
  EXPECT_FALSE(call.is_open());
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_EQ(client_.metrics().calls, 0u);
  Talk talk;
  hearer_.stream.start(talk);
  turns();
  EXPECT_EQ(talk.received, "hello");
  hearer_.stream.write("you");
  turns();
  EXPECT_EQ(peer().heard(), "you");
}

TEST_F(ClientHttp1Upgrade, AllowsStartingStreamInOnUpgraded) {
  Talk talk;
  hearer_.on_told = [&](const std::string&) { hearer_.stream.start(talk); };
  const http::Call call = ask();
  turns();
  peer().answer(std::string(kSwitched) + "hello");
  turns();
  peer().answer(", you");
  turns();
  EXPECT_EQ(talk.received, "hello, you");
}

TEST_F(ClientHttp1Upgrade, ClosesConnectionThatIsNotTaken) {
  hearer_.on_told = [&](const std::string&) { hearer_.stream = {}; };
  const http::Call call = ask();
  turns();
  peer().answer(kSwitched);
  turns();
  EXPECT_TRUE(peer().is_ended || peer().is_closed);
}

TEST_F(ClientHttp1Upgrade, AllowsDestructionInOnUpgraded) {
  http::Call call = ask();
  hearer_.on_told = [&](const std::string&) {
    call = {};
    client_ = {};
  };
  turns();
  peer().answer(std::string(kSwitched) + "hello");
  turns();
  EXPECT_TRUE(hearer_.stream.is_open());
}

TEST_F(ClientHttp1Upgrade, PausedCallHandsOverReadingStream) {
  http::Call call = ask();
  call.pause();
  turns();
  peer().answer(kSwitched);
  turns();
  EXPECT_THAT(hearer_.told, ::testing::IsEmpty());
  call.resume();
  turns();
  ASSERT_THAT(hearer_.told, ElementsAre("upgraded Echo"));
  EXPECT_FALSE(hearer_.stream.is_paused());
}

TEST_F(ClientHttp1Upgrade, ToAnotherProtocolIsMalformed) {
  for (const std::string fields : {"", "Connection: upgrade\r\n", "Upgrade: echo\r\n",
                                   "Connection: upgrade\r\nUpgrade: other\r\n",
                                   "Connection: upgrade\r\nUpgrade: echo, other\r\n"}) {
    Hearer hearer;
    const http::Call call = client_.send(kUrl, hearer, {.upgrade = "echo"});
    turns();
    peers.back()->answer("HTTP/1.1 101 Switching Protocols\r\n" + fields + "\r\n");
    turns();
    EXPECT_EQ(hearer.error, http::HttpError::malformed_response) << fields;
  }
}

TEST_F(ClientHttp1Upgrade, UnsolicitedIsMalformed) {
  Outcome outcome;
  ask_and_answer(outcome, kSwitched);
  EXPECT_EQ(outcome.error(), http::HttpError::malformed_response);
}

}  // namespace
}  // namespace spate::testing
