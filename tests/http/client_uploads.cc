// The client's uploads, and bodies that wait for 100 Continue.
#include <chrono>
#include <string>

#include "http/client_pair_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::Exchange;
using http::Method;
using http::Status;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ClientUploads : public ClientProtocolTest {
 protected:
  http::Call upload(std::uint64_t size, http::CallOptions options = {}) {
    options.method = Method::post;
    options.upload = size;
    return client_.send(kUrl, hearer_, std::move(options));
  }
  // The server does not request bodies before keep_waiting().
  void let_wait() {
    on_request = [this](Exchange exchange) { waiting_ = std::move(exchange); };
  }
  void keep_waiting() {
    kept_.push_back(std::make_unique<Kept>(std::move(waiting_)));
    turns();
  }

  Exchange waiting_;
  Hearer hearer_;
};

TEST_P(ClientUploads, UploadOfKnownSizeIsSentWithContentLength) {
  http::Call call = upload(6);
  EXPECT_TRUE(call.write("abc"));  // Waits for the connection.
  turns();
  EXPECT_THAT(asked(), EndsWith("content-length: 6\n\nabc"));
  Buffer rest;
  rest.append("def");
  EXPECT_TRUE(call.write(std::move(rest)));
  EXPECT_TRUE(call.end());
  turns();
  EXPECT_EQ(kept_.back()->body, "abcdef");
  EXPECT_FALSE(call.end());
  answer();
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "200", "body", "end", "closed"));
  EXPECT_FALSE(hearer_.error);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_P(ClientUploads, UploadOfKnownSizeEndsAtItsSize) {
  http::Call call = upload(6);
  turns();
  EXPECT_TRUE(call.write("abc"));
  turns();
  EXPECT_FALSE(kept_.back()->is_ended);
  EXPECT_TRUE(call.write("def"));
  turns();
  EXPECT_TRUE(kept_.back()->is_ended);
  answer();
  EXPECT_EQ(hearer_.told.back(), "closed");
  EXPECT_FALSE(hearer_.error);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_P(ClientUploads, UploadOfUnknownSizeEndsWithEnd) {
  http::Call call = upload(http::kUnknownSize);
  turns();
  EXPECT_THAT(asked(), Not(HasSubstr("content-length")));
  EXPECT_TRUE(call.write("abc"));
  turns();
  EXPECT_EQ(kept_.back()->body, "abc");
  EXPECT_TRUE(call.write(""));
  turns();
  EXPECT_FALSE(kept_.back()->is_ended);
  EXPECT_TRUE(call.end());
  turns();
  EXPECT_TRUE(kept_.back()->is_ended);
  EXPECT_FALSE(call.write("more"));
  answer();
  EXPECT_FALSE(hearer_.error);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_P(ClientUploads, UploadOfUnknownSizeEndsWithTrailers) {
  http::Call call = upload(http::kUnknownSize);
  turns();
  EXPECT_TRUE(call.write("abc"));
  EXPECT_TRUE(call.end(fields_of({{"X-Sum", "6"}})));
  turns();
  EXPECT_EQ(kept_.back()->body, "abc");
  EXPECT_EQ(kept_.back()->trailer, "x-sum=6");
}

TEST_P(ClientUploads, UploadOfKnownSizeDropsTrailers) {
  http::Call call = upload(3);
  call.write("abc");
  EXPECT_TRUE(call.end(fields_of({{"X-Sum", "6"}})));
  turns();
  EXPECT_EQ(kept_.back()->body, "abc");
  EXPECT_TRUE(kept_.back()->is_ended);
  EXPECT_EQ(kept_.back()->trailer, "");
}

TEST_P(ClientUploads, BeyondDeclaredSizeAreRefused) {
  http::Call call = upload(3);
  EXPECT_FALSE(call.write("abcd"));
  Buffer buffer;
  buffer.append("abcd");
  EXPECT_FALSE(call.write(std::move(buffer)));
  EXPECT_EQ(buffer.size(), 4u);
  EXPECT_TRUE(call.write("abc"));
  EXPECT_FALSE(call.write("d"));
}

TEST_P(ClientUploads, ShorterThanDeclaredSizeFailCall) {
  http::Call call = upload(3);
  turns();
  EXPECT_TRUE(call.write("ab"));
  EXPECT_TRUE(call.end());
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
  turns();
  EXPECT_EQ(hearer_.error, std::errc::invalid_argument);
  EXPECT_TRUE(kept_.back()->is_closed);
  EXPECT_FALSE(kept_.back()->is_ended);
}

TEST_P(ClientUploads, WriteFailsWithoutUpload) {
  http::Call call = client_.send(kUrl, hearer_, {.body = bytes_of("x")});
  EXPECT_FALSE(call.write("y"));
  EXPECT_FALSE(call.end());
  http::Call none;
  EXPECT_FALSE(none.write("y"));
  EXPECT_FALSE(none.end());
  EXPECT_FALSE(none.is_full());
  EXPECT_FALSE(none.is_open());
  none.pause();
  none.resume();
}

TEST_P(ClientUploads, FullUploadReceivesOnDrained) {
  http::Call call = upload(http::kUnknownSize);
  const std::string piece(100'000, 'x');
  int written = 0;
  while (!call.is_full()) {
    ASSERT_TRUE(call.write(piece));
    ++written;
  }
  EXPECT_EQ(written, 3);  // More than 256 KiB.
  EXPECT_TRUE(hearer_.told.empty());
  turns();
  EXPECT_FALSE(call.is_full());
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "drained"));
}

TEST_P(ClientUploads, UploadFollowsReaderBackPressure) {
  http::Call call = upload(http::kUnknownSize);
  turns();
  kept_.back()->exchange.pause();
  for (int i = 0; i < 100 && !call.is_full(); ++i) {
    call.write(std::string(64 * 1024, 'x'));
    turns();
  }
  EXPECT_TRUE(call.is_full());
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
  kept_.back()->exchange.resume();
  turns(2000);
  EXPECT_FALSE(call.is_full());
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "drained"));
}

TEST_P(ClientUploads, EarlyResponseEndsUpload) {
  http::Call call = upload(10);
  call.write("abc");
  turns();
  answer(Status::content_too_large, "");
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "413", "closed"));
  EXPECT_FALSE(hearer_.error);
  EXPECT_FALSE(call.write("def"));
}

TEST_P(ClientUploads, BeginWhenConnected) {
  open_error = std::make_error_code(std::errc::connection_refused);
  http::Call call = upload(3);
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("closed"));
  EXPECT_FALSE(call.was_sent());
  open_error = {};
  hearer_.told.clear();
  call = upload(3);
  EXPECT_THAT(hearer_.told, IsEmpty());
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
  EXPECT_TRUE(call.was_sent());
}

// The server responds before the loop has called on_upload().
TEST_P(ClientUploads, BeginBeforeResponse) {
  on_request = [](Exchange exchange) { exchange.respond("ok"); };
  const http::Call call = upload(http::kUnknownSize);
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "200", "body", "end", "closed"));
}

// ---- Expect

TEST_P(ClientUploads, BodyWaitsFor100Continue) {
  let_wait();
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .expect_continue = 1s});
  turns();
  EXPECT_THAT(heads_.back(), HasSubstr("expect: 100-continue\n"));
  keep_waiting();
  EXPECT_EQ(kept_.back()->body, "body");
  answer();
  EXPECT_EQ(outcome.status(), 200);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_P(ClientUploads, BodyIsSentAfterContinueTimeout) {
  let_wait();
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .expect_continue = 1s});
  turns();
  pass(2s);
  keep_waiting();
  EXPECT_EQ(kept_.back()->body, "body");
  answer();
  EXPECT_EQ(outcome.status(), 200);
}

TEST_P(ClientUploads, RefusalIsResponseInPlaceOf100Continue) {
  let_wait();
  const http::Call call = upload(4, {.expect_continue = 1s});
  turns();
  waiting_.respond(Status::unauthorized);
  turns();
  pass(2s);
  EXPECT_THAT(hearer_.told, ElementsAre("401", "closed"));
  EXPECT_FALSE(hearer_.error);
}

TEST_P(ClientUploads, ExpectIsOmittedWithoutBody) {
  EXPECT_THAT(sent(kUrl, {.expect_continue = 1s}), Not(HasSubstr("expect")));
  EXPECT_THAT(sent(kUrl, {.method = Method::post, .upload = 0, .expect_continue = 1s}),
              Not(HasSubstr("expect")));
}

TEST_P(ClientUploads, BeginAfter100Continue) {
  let_wait();
  const http::Call first = upload(3, {.expect_continue = 1s});
  turns();
  EXPECT_THAT(hearer_.told, IsEmpty());
  keep_waiting();
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
  pass(2s);
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
}

TEST_P(ClientUploads, BeginAfterContinueTimeout) {
  let_wait();
  const http::Call call = upload(3, {.expect_continue = 1s});
  turns();
  pass(999ms);
  EXPECT_THAT(hearer_.told, IsEmpty());
  pass(1ms);
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientUploads, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
