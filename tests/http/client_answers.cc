// The client's handling of responses.
#include <chrono>
#include <string>

#include "http/client_harness.h"
#include "spate/http/compression.h"
#include "spate/http/url.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::HttpError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ClientAnswers : public HttpClientTest {
 protected:
  Outcome outcome_;
  Hearer listener_;
};

TEST_F(ClientAnswers, GetReceivesResponse) {
  const http::Call call = fetch(outcome_);
  EXPECT_TRUE(call.is_open());
  EXPECT_TRUE(peers.empty());  // Nothing is done inside the call.
  turns();
  EXPECT_EQ(peer().heard(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_THAT(opened, ElementsAre("a.example:80"));
  peer().answer("HTTP/1.1 201 Made\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello");
  turns();
  ASSERT_TRUE(outcome_.is_good());
  EXPECT_FALSE(call.is_open());
  const http::Response& response = **outcome_.result;
  EXPECT_EQ(response.status(), http::Status::created);
  EXPECT_EQ(response.reason(), "Made");
  EXPECT_EQ(response.version(), http::Version::http_1_1);
  EXPECT_EQ(response["x-a"], "1");
  EXPECT_EQ(response.text(), "hello");
  EXPECT_EQ(response.url().to_string(), kUrl);
  EXPECT_EQ(outcome_.times, 1);
}

TEST_F(ClientAnswers, ResponseMayBeKeptAndMoved) {
  ask_and_answer(outcome_, kOk);
  http::Response kept = std::move(**outcome_.result);
  client_ = {};
  EXPECT_EQ(kept.text(), "ok");
}

TEST_F(ClientAnswers, ResponsesMayBeSplitAnywhere) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n"
      "X-Sum: 7\r\n\r\n";
  const http::Call call = fetch(outcome_);
  turns();
  for (const char c : answer) {
    peer().answer(std::string_view(&c, 1));
    turns(3);
  }
  EXPECT_EQ(outcome_.text(), "abcde");
  EXPECT_EQ((*outcome_.result)->trailers()["X-Sum"], "7");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientAnswers, HandlerIsCalledInOrder) {
  const http::Call call = client_.send(kUrl, listener_);
  turns();
  peer().answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body"));
  peer().answer("0\r\nX-Sum: 7\r\n\r\n");
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body", "end", "closed"));
  EXPECT_EQ(listener_.body, "abc");
  EXPECT_EQ(listener_.trailers, "7");
  EXPECT_FALSE(listener_.error);
}

TEST_F(ClientAnswers, EndOfBodyIsNotReportedWithoutBody) {
  const http::Call call = client_.send(kUrl, listener_);
  turns();
  peer().answer("HTTP/1.1 204 No Content\r\n\r\n");
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("204", "closed"));
}

TEST_F(ClientAnswers, InformationalResponsesAreSkipped) {
  std::string many;
  for (int i = 0; i < 32; ++i) many += "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  ask_and_answer(outcome_, many + std::string(kOk));
  EXPECT_EQ(outcome_.status(), 200);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientAnswers, InformationalResponsesAreReported) {
  const http::Call call = client_.send(kUrl, listener_, {.deadline = {}});
  turns();
  peer().answer("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("103"));
  EXPECT_EQ(listener_.link, "</a>");
}

TEST_F(ClientAnswers, CallMayBeCancelledOnInformationalResponse) {
  http::Call call = client_.send(kUrl, listener_, {.deadline = {}});
  listener_.on_told = [&](const std::string&) { call.cancel(); };
  turns();
  peer().answer("HTTP/1.1 103 Early Hints\r\n\r\n" + std::string(kOk));
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("103"));
}

TEST_F(ClientAnswers, ContentLengthIsReported) {
  Outcome with, without;
  ask_and_answer(with, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
                 {.method = http::Method::head});
  EXPECT_EQ((*with.result)->content_length(), 12u);
  const http::Call call = fetch(without);
  turns();
  peer().answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  turns();
  EXPECT_FALSE((*without.result)->content_length());
}

TEST_F(ClientAnswers, FailsAfterTooManyInformationalResponses) {
  std::string many;
  for (int i = 0; i < 33; ++i) many += "HTTP/1.1 103 Early Hints\r\n\r\n";
  ask_and_answer(outcome_, many + std::string(kOk));
  EXPECT_EQ(outcome_.error(), HttpError::malformed_response);
}

TEST_F(ClientAnswers, UnsolicitedUpgradeIsError) {
  ask_and_answer(outcome_, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  EXPECT_EQ(outcome_.error(), HttpError::malformed_response);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientAnswers, HeadResponseHasNoBodyDespiteItsLength) {
  ask_and_answer(outcome_, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                 {.method = http::Method::head});
  EXPECT_EQ(outcome_.status(), 200);
  EXPECT_EQ(outcome_.text(), "");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientAnswers, NotModifiedHasNoBody) {
  ask_and_answer(outcome_, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(outcome_.status(), 304);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientAnswers, BodyWithoutLengthExtendsToEof) {
  const http::Call call = fetch(outcome_);
  turns();
  peer().answer("HTTP/1.1 200 OK\r\n\r\nall of");
  turns();
  EXPECT_FALSE(outcome_.is_there());
  peer().answer(" it");
  peer().stream().end();
  turns();
  EXPECT_EQ(outcome_.text(), "all of it");
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientAnswers, ResetIsErrorDuringBodyWithoutLength) {
  const http::Call call = fetch(outcome_);
  turns();
  peer().answer("HTTP/1.1 200 OK\r\n\r\nall of");
  turns();
  peer().stream().abort();
  turns();
  EXPECT_EQ(outcome_.error(), std::errc::connection_reset);
}

TEST_F(ClientAnswers, TruncatedBodyIsError) {
  for (const std::string_view answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"}) {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    peers.back()->answer(answer);
    peers.back()->stream().end();
    turns();
    EXPECT_EQ(outcome.error(), HttpError::response_truncated) << answer;
    EXPECT_EQ(client_.metrics().connections, 0u);
  }
}

TEST_F(ClientAnswers, MissingResponseIsReportedAsReset) {
  const http::Call call = fetch(outcome_);
  turns();
  peer().stream().end();
  turns();
  EXPECT_EQ(outcome_.error(), std::errc::connection_reset);
}

TEST_F(ClientAnswers, MalformedOrAmbiguousResponseIsError) {
  for (const std::string_view answer :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 200 OK\nA: b\n\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    Outcome outcome;
    ask_and_answer(outcome, answer);
    EXPECT_EQ(outcome.error(), HttpError::malformed_response) << answer;
    EXPECT_EQ(client_.metrics().connections, 0u);
  }
}

TEST_F(ClientAnswers, TooLongHeaderSectionIsError) {
  make_client({.max_head = 100});
  ask_and_answer(outcome_, "HTTP/1.1 200 OK\r\nX: " + std::string(100, 'x'));
  EXPECT_EQ(outcome_.error(), HttpError::malformed_response);
}

TEST_F(ClientAnswers, UnsolicitedDataAfterResponseClosesConnection) {
  ask_and_answer(outcome_, std::string(kOk) + "HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(outcome_.text(), "ok");
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientAnswers, BodyLengthIsLimited) {
  ask_and_answer(outcome_, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour", {.max_body = 4});
  EXPECT_EQ(outcome_.text(), "four");
  Outcome longer;
  const http::Call call = fetch(longer, {.max_body = 4});
  turns();
  peer().answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfiv\r\n2\r\ne!\r\n");
  turns();
  EXPECT_EQ(longer.error(), HttpError::body_too_long);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientAnswers, FetchHasDefaultBodyLimit) {
  const http::Call call = fetch(outcome_);
  turns();
  const std::string mebibyte(1 << 20, 'x');
  peer().answer("HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n");
  for (int i = 0; i < 16; ++i) {
    peer().answer(mebibyte);
    turns();
  }
  EXPECT_FALSE(outcome_.is_there());
  peer().answer("x");
  turns();
  EXPECT_EQ(outcome_.error(), HttpError::body_too_long);
}

TEST_F(ClientAnswers, PausedBodyIsNotDelivered) {
  http::Call call = client_.send(kUrl, listener_);
  listener_.on_told = [&](const std::string& what) {
    if (what == "body") call.pause();
  };
  turns();
  peer().answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n");
  peer().answer("0\r\n\r\n");
  turns();
  EXPECT_EQ(listener_.body, "abc");
  call.resume();
  EXPECT_EQ(listener_.body, "abc");  // Never from inside a call.
  turns();
  EXPECT_EQ(listener_.body, "abcdef");
  call.resume();
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body", "body", "end", "closed"));
}

TEST_F(ClientAnswers, EndIsNotReportedWhilePaused) {
  const std::pair<std::string, std::string> answers[] = {
      {std::string(kOk), "body"}, {"HTTP/1.1 204 No Content\r\n\r\n", "204"}};
  http::Call call;
  for (const auto& [answer, last] : answers) {
    SCOPED_TRACE(answer);
    listener_.told.clear();
    listener_.on_told = [&](const std::string& what) {
      if (what == last) call.pause();
    };
    call = client_.send(kUrl, listener_);
    turns();
    peer().answer(answer);
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
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientAnswers, CompleteResponseIsNotLostWithConnection) {
  http::Call call =
      client_.send(kUrl, listener_, {.method = http::Method::post, .upload = http::kUnknownSize});
  listener_.on_told = [&](const std::string& what) {
    if (what == "body") call.pause();
  };
  turns();
  peer().answer(kOk);
  turns();
  peer().stream().abort();
  call.write("that nobody takes");
  turns();
  EXPECT_EQ(listener_.told.back(), "body");
  call.resume();
  turns();
  EXPECT_EQ(listener_.told.back(), "closed");
  EXPECT_FALSE(listener_.error) << listener_.error.message();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

// Unsolicited bytes after a response are not the response to the next call.
TEST_F(ClientAnswers, CompleteResponseReleasesConnection) {
  for (const bool is_followed : {false, true}) {
    const std::size_t index = peers.size();
    make_client({.max_per_origin = 1});
    Outcome outcome;
    http::Call call = client_.send(kUrl, listener_);
    const http::Call waiting = fetch(outcome);
    listener_.on_told = [&](const std::string& what) {
      if (what == "body") call.pause();
    };
    turns();
    peer(index).answer(std::string(kOk) + std::string(is_followed ? kOk : ""));
    turns();
    call.cancel();
    turns();
    EXPECT_EQ(peers.size(), index + (is_followed ? 2u : 1u));
    EXPECT_FALSE(outcome.is_there());
    peers.back()->answer(kOk);
    turns();
    EXPECT_EQ(outcome.text(), "ok");
  }
}

TEST_F(ClientAnswers, CallMayBePausedBeforeItHasConnection) {
  http::Call call = client_.send(kUrl, listener_);
  call.pause();
  turns();
  peer().answer(kOk);
  turns();
  EXPECT_TRUE(listener_.told.empty());
  call.resume();
  turns();
  EXPECT_THAT(listener_.told, ElementsAre("200", "body", "end", "closed"));
}

// ---- decompression

std::string gzip(const std::string& text) {
  http::Compressor compressor = must(http::Compressor::make(http::Coding::gzip, 9));
  Buffer packed;
  EXPECT_TRUE(compressor.write(bytes_of(text), packed) && compressor.end(packed));
  return std::string(text_of(packed.flat(packed.size())));
}

std::string zipped_answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST_F(ClientAnswers, BodyIsDecompressedOnRequest) {
  const http::Call call = fetch(outcome_, {.decompress = true});
  turns();
  EXPECT_THAT(peer().heard(), HasSubstr("Accept-Encoding: gzip, deflate\r\n"));
  peer().answer(zipped_answer(gzip("hello, hello, hello")));
  turns();
  EXPECT_EQ(outcome_.text(), "hello, hello, hello");
  EXPECT_TRUE((*outcome_.result)->is_decompressed());
}

TEST_F(ClientAnswers, BodyIsNotDecompressedByDefault) {
  const std::string packed = gzip("hello");
  ask_and_answer(outcome_, zipped_answer(packed));
  EXPECT_EQ(outcome_.text(), packed);
  EXPECT_FALSE((*outcome_.result)->is_decompressed());
}

TEST_F(ClientAnswers, DecompressionBombIsStoppedDuringInflation) {
  const std::string bomb = gzip(std::string(64 << 20, '\0'));
  ASSERT_LT(bomb.size(), 100'000u);
  http::Call call = client_.send(kUrl, listener_, {.decompress = true, .max_body = 1 << 20});
  turns();
  peer().answer(zipped_answer(bomb));
  turns();
  EXPECT_EQ(listener_.error, HttpError::body_too_long);
  EXPECT_LE(listener_.body.size(), std::size_t{1} << 20);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientAnswers, InflationStopsWhileCallIsPaused) {
  http::Call call = client_.send(kUrl, listener_, {.decompress = true});
  listener_.on_told = [&](const std::string& what) {
    if (what == "body") call.pause();
  };
  turns();
  peer().answer(zipped_answer(gzip(std::string(1 << 20, '\0'))));
  turns();
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

TEST_F(ClientAnswers, MalformedOrTruncatedGzipBodyIsError) {
  const std::string packed = gzip("hello, hello, hello");
  for (const std::string& body :
       {std::string("hello"), packed.substr(0, packed.size() - 1), packed + "x"}) {
    Outcome outcome;
    ask_and_answer(outcome, zipped_answer(body), {.decompress = true});
    EXPECT_EQ(outcome.error(), HttpError::bad_encoding);
    EXPECT_EQ(client_.metrics().connections, 0u);
  }
}

TEST_F(ClientAnswers, SeveralCodingsAreErrorIfDecompressionIsEnabled) {
  for (const char* codings : {"gzip, deflate", "deflate, gzip", "gzip, br", "br, gzip",
                              "gzip\r\nContent-Encoding: gzip"}) {
    const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Encoding: " +
                               std::string(codings) + "\r\n\r\nxy";
    Outcome outcome;
    ask_and_answer(outcome, answer, {.decompress = true});
    EXPECT_EQ(outcome.error(), HttpError::bad_encoding) << codings;
    Outcome plain;
    ask_and_answer(plain, answer);
    EXPECT_EQ(plain.text(), "xy") << codings;
    client_.close_idle();
  }
  const std::string packed = gzip("hello");
  ask_and_answer(outcome_,
                 "HTTP/1.1 200 OK\r\nContent-Encoding: identity, gzip\r\nContent-Length: " +
                     std::to_string(packed.size()) + "\r\n\r\n" + packed,
                 {.decompress = true});
  EXPECT_EQ(outcome_.text(), "hello");
}

TEST_F(ClientAnswers, ResponseMayHaveMoreThanHundredFields) {
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n";
  for (int i = 0; i < 1'000; ++i) answer += "X-" + std::to_string(i) + ": y\r\n";
  ask_and_answer(outcome_, answer + "\r\nok");
  ASSERT_EQ(outcome_.text(), "ok");
  EXPECT_EQ((*outcome_.result)->fields().size(), 1'001u);
  EXPECT_EQ((**outcome_.result)["X-999"], "y");
}

TEST_F(ClientAnswers, ChunkSizesMayBePadded) {
  ask_and_answer(outcome_,
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "5    \r\nhello\r\n6 ;a=b\r\n world\r\n0   \r\n\r\n");
  EXPECT_EQ(outcome_.text(), "hello world");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientAnswers, UnknownCodingIsLeftUndecoded) {
  ask_and_answer(outcome_, "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nxy",
                 {.decompress = true});
  EXPECT_EQ(outcome_.text(), "xy");
  EXPECT_FALSE((*outcome_.result)->is_decompressed());
}

}  // namespace
}  // namespace spate::testing
