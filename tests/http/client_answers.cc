// The client's handling of responses.
#include <string>
#include <vector>

#include "http/client_pair_harness.h"
#include "spate/http/compression.h"
#include "spate/http/url.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::HttpError;
using http::Method;
using http::Status;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ClientAnswers : public ClientProtocolTest {
 protected:
  // Sends a request with the listener.
  http::Call listen(http::CallOptions options = {}) {
    http::Call call = client_.send(kUrl, listener_, std::move(options));
    turns();
    return call;
  }
  Exchange& exchange() { return kept_.back()->exchange; }
  // Pauses `call` in each of these callbacks.
  void pause_in(http::Call& call, const std::string& callback) {
    listener_.on_told = [&call, callback](const std::string& event) {
      if (event == callback) call.pause();
    };
  }

  Outcome outcome_;
  Hearer listener_;
};

TEST_P(ClientAnswers, GetReceivesResponse) {
  const http::Call call = fetch(outcome_);
  EXPECT_TRUE(call.is_open());
  EXPECT_TRUE(opened.empty());  // Nothing is done inside the call.
  turns();
  EXPECT_EQ(asked(), "GET /\nhost: a.example\n\n");
  EXPECT_THAT(opened, ElementsAre("a.example:80"));
  answer(Status::created, "hello", fields_of({{"X-A", "1"}}));
  ASSERT_TRUE(outcome_.is_good());
  EXPECT_FALSE(call.is_open());
  const http::Response& response = **outcome_.result;
  EXPECT_EQ(response.status(), Status::created);
  EXPECT_EQ(response.version(), is_http2() ? http::Version::http_2 : http::Version::http_1_1);
  EXPECT_EQ(response["x-a"], "1");
  EXPECT_EQ(response.text(), "hello");
  EXPECT_EQ(response.url().to_string(), kUrl);
  EXPECT_EQ(outcome_.times, 1);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_P(ClientAnswers, ResponseMayBeKeptAndMoved) {
  ask_and_answer(outcome_);
  http::Response kept = std::move(**outcome_.result);
  client_ = {};
  EXPECT_EQ(kept.text(), "ok");
}

TEST_P(ClientAnswers, HandlerIsCalledInOrder) {
  const http::Call call = listen();
  exchange().begin(Status::ok);
  exchange().write("abc");
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body"));
  exchange().end(fields_of({{"X-Sum", "7"}}));
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body", "end", "closed"));
  EXPECT_EQ(listener_.body, "abc");
  EXPECT_EQ(listener_.trailers, "7");
  EXPECT_FALSE(listener_.error);
}

TEST_P(ClientAnswers, TrailersMayFollowEmptyBody) {
  const http::Call call = listen();
  exchange().begin(Status::ok);
  exchange().end(fields_of({{"X-Sum", "0"}}));
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "end", "closed"));
  EXPECT_EQ(listener_.trailers, "0");
}

TEST_P(ClientAnswers, FetchReturnsTrailers) {
  const http::Call call = fetch(outcome_);
  turns();
  exchange().begin(Status::ok);
  exchange().write("abc");
  exchange().end(fields_of({{"X-Sum", "7"}}));
  turns();
  EXPECT_EQ(outcome_.text(), "abc");
  EXPECT_EQ((*outcome_.result)->trailers()["X-Sum"], "7");
}

TEST_P(ClientAnswers, SomeResponsesHaveNoBody) {
  const std::pair<Method, Status> cases[] = {{Method::get, Status::no_content},
                                             {Method::get, Status::not_modified},
                                             {Method::head, Status::ok}};
  for (const auto& [method, status] : cases) {
    SCOPED_TRACE(http::code_of(status));
    Hearer hearer;
    const http::Call call = client_.send(kUrl, hearer, {.method = method});
    turns();
    method == Method::head ? exchange().respond("hello") : exchange().respond(status);
    turns();
    EXPECT_THAT(hearer.told, ElementsAre(std::to_string(http::code_of(status)), "closed"));
    EXPECT_FALSE(hearer.error);
    EXPECT_EQ(client_.metrics().idle, 1u);
  }
}

TEST_P(ClientAnswers, ContentLengthIsReported) {
  Outcome with, without;
  ask_and_answer(with, {.method = Method::head}, Status::ok, "twelve bytes");
  EXPECT_EQ((*with.result)->content_length(), 12u);
  const http::Call call = fetch(without);
  turns();
  exchange().begin(Status::ok);
  exchange().end();
  turns();
  EXPECT_FALSE((*without.result)->content_length());
}

TEST_P(ClientAnswers, ResponseMayHaveMoreThanHundredFields) {
  http::Fields fields;
  for (int i = 0; i < 1'000; ++i) fields.add("X-" + std::to_string(i), "y");
  ask_and_answer(outcome_, {}, Status::ok, "ok", fields);
  ASSERT_EQ(outcome_.text(), "ok");
  EXPECT_GE((*outcome_.result)->fields().size(), 1'001u);
  EXPECT_EQ((**outcome_.result)["X-999"], "y");
}

// ---- interim responses

TEST_P(ClientAnswers, InformationalResponsesAreSkipped) {
  const http::Call call = fetch(outcome_);
  turns();
  for (int i = 0; i < 32; ++i) exchange().inform(Status::early_hints);
  answer();
  EXPECT_EQ(outcome_.text(), "ok");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_P(ClientAnswers, FailsAfterTooManyInformationalResponses) {
  const http::Call call = fetch(outcome_);
  turns();
  for (int i = 0; i < 33; ++i) exchange().inform(Status::early_hints);
  answer();
  EXPECT_EQ(outcome_.error(), HttpError::malformed_response);
}

TEST_P(ClientAnswers, InformationalResponsesAreReported) {
  const http::Call call = listen();
  exchange().inform(Status::early_hints, fields_of({{"Link", "</a>"}}));
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("103"));
  EXPECT_EQ(listener_.link, "</a>");
  answer();
  EXPECT_THAT(listener_.told, ElementsAre("103", "200", "body", "end", "closed"));
}

TEST_P(ClientAnswers, CallMayBeCancelledOnInformationalResponse) {
  http::Call call = listen();
  listener_.on_told = [&](const std::string&) { call.cancel(); };
  exchange().inform(Status::early_hints);
  answer();
  EXPECT_THAT(listener_.told, ElementsAre("103"));
}

// ---- limits

TEST_P(ClientAnswers, BodyLengthIsLimited) {
  ask_and_answer(outcome_, {.max_body = 4}, Status::ok, "four");
  EXPECT_EQ(outcome_.text(), "four");
  Outcome longer;
  ask_and_answer(longer, {.max_body = 4}, Status::ok, "five!");
  EXPECT_EQ(longer.error(), HttpError::body_too_long);
  Outcome in_pieces;
  const http::Call call = fetch(in_pieces, {.max_body = 4});
  turns();
  exchange().begin(Status::ok);
  for (const std::string_view piece : {"fiv", "e!"}) {
    exchange().write(piece);
    turns();
  }
  EXPECT_EQ(in_pieces.error(), HttpError::body_too_long);
  EXPECT_TRUE(kept_.back()->is_closed);
}

TEST_P(ClientAnswers, FetchHasDefaultBodyLimit) {
  const http::Call call = fetch(outcome_);
  turns();
  exchange().begin(Status::ok, {}, (16u << 20) + 1);
  for (int i = 0; i < 16; ++i) {
    exchange().write(std::string(1 << 20, 'x'));
    turns(200);
  }
  EXPECT_FALSE(outcome_.is_there());
  exchange().write("x");
  turns();
  EXPECT_EQ(outcome_.error(), HttpError::body_too_long);
}

// ---- pausing

TEST_P(ClientAnswers, PausedBodyIsNotDelivered) {
  http::Call call = listen();
  pause_in(call, "body");
  exchange().begin(Status::ok);
  exchange().write("abc");
  turns();
  exchange().write("def");
  exchange().end();
  turns();
  EXPECT_EQ(listener_.body, "abc");
  call.resume();
  EXPECT_EQ(listener_.body, "abc");  // Never from inside a call.
  turns();
  EXPECT_EQ(listener_.body, "abcdef");
  EXPECT_THAT(listener_.told, ElementsAre("200", "body", "body"));
  call.resume();
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body", "body", "end", "closed"));
}

TEST_P(ClientAnswers, ServerStopsWritingWhileCallIsPaused) {
  constexpr std::size_t kSize = 10'000'000;
  http::Call call = listen();
  pause_in(call, "body");
  exchange().begin(Status::ok, {}, kSize);
  std::size_t written = 0;
  for (; written < kSize && !exchange().is_full(); written += 100'000) {
    exchange().write(std::string(100'000, 'x'));
    turns();
  }
  EXPECT_LT(written, kSize);
  turns();
  EXPECT_TRUE(exchange().is_full());
  EXPECT_EQ(kept_.back()->drained, 0);
  listener_.on_told = {};
  call.resume();
  turns(500);
  EXPECT_FALSE(exchange().is_full());
  for (; written < kSize; written += 100'000) exchange().write(std::string(100'000, 'x'));
  exchange().end();
  turns(3000);
  EXPECT_EQ(listener_.body, std::string(kSize, 'x'));
  EXPECT_EQ(listener_.told.back(), "closed");
  EXPECT_FALSE(listener_.error);
}

TEST_P(ClientAnswers, EndIsNotReportedWhilePaused) {
  const std::pair<Status, std::string> answers[] = {{Status::ok, "body"},
                                                    {Status::no_content, "204"}};
  http::Call call;
  for (const auto& [status, last] : answers) {
    SCOPED_TRACE(last);
    listener_.told.clear();
    pause_in(call, last);
    call = listen();
    status == Status::ok ? exchange().respond("ok") : exchange().respond(status);
    turns();
    EXPECT_EQ(listener_.told.back(), last);
    EXPECT_EQ(client_.metrics().idle, 0u);
    call.resume();
    EXPECT_EQ(listener_.told.back(), last);
    turns();
    EXPECT_EQ(listener_.told.back(), "closed");
    EXPECT_FALSE(listener_.error);
    EXPECT_EQ(client_.metrics().idle, 1u);
  }
  EXPECT_EQ(opened.size(), 1u);
}

TEST_P(ClientAnswers, CompleteResponseIsNotLostWithConnection) {
  http::Call call = listen({.method = Method::post, .upload = http::kUnknownSize});
  pause_in(call, "body");
  answer();
  server_ = {};
  call.write("nothing reads it");
  turns();
  EXPECT_EQ(listener_.told.back(), "body");
  call.resume();
  turns();
  EXPECT_EQ(listener_.told.back(), "closed");
  EXPECT_FALSE(listener_.error) << listener_.error.message();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_P(ClientAnswers, CallMayBePausedBeforeItHasConnection) {
  http::Call call = client_.send(kUrl, listener_);
  call.pause();
  turns();
  answer();
  EXPECT_THAT(listener_.told, Not(Contains("body")));
  EXPECT_THAT(listener_.told, Not(Contains("closed")));
  call.resume();
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body", "end", "closed"));
}

// ---- decompression

class ClientDecompression : public ClientAnswers {
 protected:
  static std::string gzip(const std::string& text) {
    http::Compressor compressor = must(http::Compressor::make(http::Coding::gzip, 9));
    Buffer packed;
    EXPECT_TRUE(compressor.write(bytes_of(text), packed) && compressor.end(packed));
    return std::string(text_of(packed.flat(packed.size())));
  }
  void answer_coded(std::string_view body, std::string_view coding = "gzip") {
    answer(Status::ok, body, fields_of({{"Content-Encoding", coding}}));
  }
  void ask_coded(Outcome& outcome, std::string_view body, std::string_view coding = "gzip") {
    const http::Call call = fetch(outcome, {.decompress = true});
    turns();
    answer_coded(body, coding);
  }
};

TEST_P(ClientDecompression, BodyIsDecompressedOnRequest) {
  ask_coded(outcome_, gzip("hello, hello, hello"));
  EXPECT_THAT(asked(), HasSubstr("accept-encoding: gzip, deflate\n"));
  EXPECT_EQ(outcome_.text(), "hello, hello, hello");
  EXPECT_TRUE((*outcome_.result)->is_decompressed());
}

TEST_P(ClientDecompression, BodyIsNotDecompressedByDefault) {
  const std::string packed = gzip("hello");
  const http::Call call = fetch(outcome_);
  turns();
  EXPECT_THAT(asked(), Not(HasSubstr("accept-encoding")));
  answer_coded(packed);
  EXPECT_EQ(outcome_.text(), packed);
  EXPECT_FALSE((*outcome_.result)->is_decompressed());
}

TEST_P(ClientDecompression, BombIsStoppedDuringInflation) {
  const std::string bomb = gzip(std::string(64 << 20, '\0'));
  ASSERT_LT(bomb.size(), 100'000u);
  const http::Call call = listen({.decompress = true, .max_body = 1 << 20});
  answer_coded(bomb);
  EXPECT_EQ(listener_.error, HttpError::body_too_long);
  EXPECT_LE(listener_.body.size(), std::size_t{1} << 20);
}

TEST_P(ClientDecompression, InflationStopsWhileCallIsPaused) {
  http::Call call = listen({.decompress = true});
  pause_in(call, "body");
  answer_coded(gzip(std::string(1 << 20, '\0')));
  const std::size_t first = listener_.body.size();
  EXPECT_GT(first, 0u);
  EXPECT_LE(first, 64u * 1024);
  call.resume();
  EXPECT_EQ(listener_.body.size(), first);
  turns();
  EXPECT_GT(listener_.body.size(), first);
  EXPECT_LE(listener_.body.size(), 2 * 64u * 1024);
  for (int i = 0; i < 100 && listener_.told.back() != "closed"; ++i) {
    call.resume();
    turns(3);
  }
  EXPECT_EQ(listener_.body, std::string(1 << 20, '\0'));
  EXPECT_EQ(listener_.told.back(), "closed");
  EXPECT_FALSE(listener_.error);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_P(ClientDecompression, MalformedOrTruncatedBodyIsError) {
  const std::string packed = gzip("hello, hello, hello");
  for (const std::string& body :
       {std::string("hello"), packed.substr(0, packed.size() - 1), packed + "x"}) {
    Outcome outcome;
    ask_coded(outcome, body);
    EXPECT_EQ(outcome.error(), HttpError::bad_encoding);
  }
}

TEST_P(ClientDecompression, SeveralCodingsAreErrorIfEnabled) {
  for (const char* codings : {"gzip, deflate", "deflate, gzip", "gzip, br", "br, gzip"}) {
    Outcome outcome, plain;
    ask_coded(outcome, "xy", codings);
    EXPECT_EQ(outcome.error(), HttpError::bad_encoding) << codings;
    const http::Call call = fetch(plain);
    turns();
    answer_coded("xy", codings);
    EXPECT_EQ(plain.text(), "xy") << codings;
  }
  const http::Call call = fetch(outcome_, {.decompress = true});
  turns();
  answer(Status::ok, "xy", fields_of({{"Content-Encoding", "gzip"}, {"Content-Encoding", "gzip"}}));
  EXPECT_EQ(outcome_.error(), HttpError::bad_encoding);
}

TEST_P(ClientDecompression, IdentityIsNoCoding) {
  ask_coded(outcome_, gzip("hello"), "identity, gzip");
  EXPECT_EQ(outcome_.text(), "hello");
}

TEST_P(ClientDecompression, UnknownCodingIsLeftUndecoded) {
  ask_coded(outcome_, "xy", "br");
  EXPECT_EQ(outcome_.text(), "xy");
  EXPECT_FALSE((*outcome_.result)->is_decompressed());
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientAnswers, kProtocols, name_of_protocol);
INSTANTIATE_TEST_SUITE_P(Protocols, ClientDecompression, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
