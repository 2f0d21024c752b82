// Servers of HTTP/2 that refuse, go away, are broken or hostile, and the client's reactions.
#include <string>
#include <vector>

#include "http/client_http2_harness.h"

namespace spate::testing {
namespace {

using http::HttpError;
using http::Method;
using ::testing::ElementsAre;

constexpr std::uint32_t kRefused = 7;

class ClientHttp2Peers : public Http2PeerTest {
 protected:
  http::Call post(Outcome& outcome) {
    return fetch(outcome, {.method = Method::post, .body = bytes_of("x")});
  }
  // Fetches with a new client from a new server, which responds with `answer`.
  http::Call fetch_answered(const std::string& answer, Outcome& outcome,
                            http::ClientOptions options = {}) {
    const std::size_t index = peers.size();
    make_client2(std::move(options));
    http::Call call = fetch(outcome);
    turns();
    greet(peer(index));
    peer(index).answer(answer);
    turns();
    return call;
  }
};

TEST_F(ClientHttp2Peers, ConnectionBeginsWithPreface) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  EXPECT_TRUE(peer().received.starts_with(kPreface));
  EXPECT_THAT(heard().streams, ElementsAre(1u));
  greet(peer());
  peer().answer(answer_of(1));
  turns();
  EXPECT_EQ(outcome.text(), "ok");
}

TEST_F(ClientHttp2Peers, PushPromiseIsRefused) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  greet(peer());
  peer().answer(frame(kPush, kEndHeaders, 1, number(2) + "\x82\x86\x84\x41\x01\x61"));
  turns();
  EXPECT_EQ(outcome.error(), HttpError::malformed_response);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp2Peers, NonHttp2ResponseIsMalformed) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer().answer(kOk);
  turns();
  EXPECT_EQ(outcome.error(), HttpError::malformed_response);
}

// ---- repeated requests

TEST_F(ClientHttp2Peers, RefusedStreamIsRetried) {
  Outcome outcome;
  const http::Call call = post(outcome);
  turns();
  greet(peer());
  peer().answer(reset_of(1, kRefused));
  turns();
  EXPECT_THAT(heard().streams, ElementsAre(1u, 3u));
  peer().answer(answer_of(3));
  turns();
  EXPECT_EQ(outcome.text(), "ok");
  EXPECT_EQ(client_.metrics().repeated, 1u);
}

TEST_F(ClientHttp2Peers, RefusedStreamIsRetriedFewTimesOnly) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  greet(peer());
  for (std::uint32_t id = 1; id < 40; id += 2) {
    peer().answer(reset_of(id, kRefused));
    turns();
    if (outcome.is_there()) break;
  }
  EXPECT_EQ(outcome.error(), std::errc::connection_reset);
  EXPECT_EQ(heard().streams.size(), 6u);
}

TEST_F(ClientHttp2Peers, StartedUploadIsNotRetried) {
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.method = Method::post, .upload = 10});
  call.write("abc");
  turns();
  greet(peer());
  EXPECT_EQ(heard().body, 3u);
  peer().answer(reset_of(1, kRefused));
  turns();
  EXPECT_EQ(hearer.error, std::errc::connection_reset);
  EXPECT_THAT(heard().streams, ElementsAre(1u));
}

TEST_F(ClientHttp2Peers, CallRejectedByGoawayIsRetriedElsewhere) {
  Outcome a, b;
  const http::Call first = post(a), second = post(b);
  turns();
  greet(peer());
  ASSERT_THAT(heard().streams, ElementsAre(1u, 3u));
  peer().answer(go_away(1));
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(heard(1).streams, ElementsAre(1u));
  greet(peer(1));
  peer(1).answer(answer_of(1, "second"));
  peer(0).answer(answer_of(1, "first"));
  turns();
  EXPECT_EQ(a.text(), "first");
  EXPECT_EQ(b.text(), "second");
  EXPECT_EQ(client_.metrics().connections, 1u);
}

TEST_F(ClientHttp2Peers, NoStreamIsOpenedAfterGoaway) {
  Outcome a, b;
  const http::Call first = fetch(a);
  turns();
  greet(peer());
  peer().answer(go_away(INT32_MAX));
  turns();
  const http::Call second = fetch(b);
  turns();
  EXPECT_EQ(peers.size(), 2u);
  EXPECT_THAT(heard().streams, ElementsAre(1u));
  peer().answer(answer_of(1));
  turns();
  EXPECT_EQ(a.text(), "ok");
}

// ---- an error in one response leaves the connection to others

TEST_F(ClientHttp2Peers, ResetEndsOneCall) {
  Outcome a, b;
  const http::Call first = fetch(a), second = fetch(b);
  turns();
  greet(peer());
  peer().answer(head_of(1) + frame(kData, 0, 1, "part") + reset_of(1, 2));
  peer().answer(answer_of(3));
  turns();
  EXPECT_EQ(a.error(), std::errc::connection_reset);
  EXPECT_EQ(b.text(), "ok");
  EXPECT_EQ(client_.metrics().connections, 1u);
}

TEST_F(ClientHttp2Peers, ContentLengthMismatchIsError) {
  const std::string head = std::string(kHead200) + field("content-length", "5");
  for (const std::string& body : {std::string("1234"), std::string("123456")}) {
    Outcome outcome;
    const http::Call call =
        fetch_answered(head_of(1, head) + frame(kData, kEndStream, 1, body), outcome);
    EXPECT_TRUE(outcome.error() == HttpError::response_truncated ||
                outcome.error() == HttpError::malformed_response)
        << body << outcome.error();
    EXPECT_EQ(client_.metrics().connections, 1u);
  }
}

TEST_F(ClientHttp2Peers, MalformedResponsesAreRefused) {
  const std::string long_value(120, 'v');
  std::string long_head(kHead200);
  for (int i = 0; i < 100; ++i) long_head += field("x-" + std::to_string(i), long_value);
  std::string informational;
  for (int i = 0; i < 40; ++i) informational += head_of(1, field(":status", "103"));
  const std::string bad[] = {
      head_of(1, field("x", "y")),          // Without a status.
      head_of(1, field(":status", "20")),   //
      head_of(1, field(":status", "101")),  //
      head_of(1, field(":status", "051")) + frame(kData, kEndStream, 1, "ok"),
      head_of(1, std::string(kHead200) + field("connection", "x")),  //
      head_of(1, std::string(kHead200) + field("X-Big", "y")),       // Names are small.
      head_of(1, long_head),                                         //
      informational,                                                 //
      frame(kHeaders, kEndHeaders | kEndStream, 1, field(":status", "103")),
      frame(kData, 0, 1, "before the head"),
      head_of(1) + head_of(1, field("x", "y")),  // Trailers that are not the end.
  };
  for (const std::string& each : bad) {
    SCOPED_TRACE(&each - bad);
    Outcome outcome;
    const http::Call call = fetch_answered(each, outcome, {.max_head = 8192});
    EXPECT_EQ(outcome.error(), HttpError::malformed_response) << outcome.error();
  }
}

TEST_F(ClientHttp2Peers, ResponsesMayHaveMoreThanHundredFields) {
  std::string fields;
  for (int i = 0; i < 300; ++i) fields += field("x", "y");
  const std::string answer = head_of(1, std::string(kHead200) + fields) +
                             frame(kHeaders, kEndHeaders | kEndStream, 1, fields);
  Outcome outcome;
  const http::Call call = fetch_answered(answer, outcome, {.max_head = 8192});
  ASSERT_EQ(outcome.status(), 200);
  EXPECT_EQ((*outcome.result)->fields().size(), 300u);
  EXPECT_EQ((*outcome.result)->trailers().size(), 300u);
}

std::string status_field(std::string_view code) { return field(":status", code); }
std::string length_field(std::string_view size) { return field("content-length", size); }

const std::string kOkHead(kHead200);
const std::string kFiveBytes = frame(kData, kEndStream, 1, "12345");
const std::string kNoBody = frame(kData, kEndStream, 1);

const struct {
  std::string answer;
  int status;  // 0: it is malformed.
} kResponses[] = {
    {head_of(1, status_field("600")) + kFiveBytes, 600},
    {head_of(1, status_field("999")) + kFiveBytes, 999},
    {head_of(1, status_field("000")) + kFiveBytes, 0},
    {head_of(1, status_field("099")) + kNoBody, 0},
    {head_of(1, status_field("")) + kFiveBytes, 0},
    {head_of(1, status_field("0200")) + kFiveBytes, 0},
    {head_of(1, status_field("2x0")) + kFiveBytes, 0},
    {head_of(1, kOkHead + kOkHead) + kFiveBytes, 0},
    {head_of(1, field("x", "y") + kOkHead) + kFiveBytes, 0},
    {head_of(1, kOkHead + field(":path", "/")) + kFiveBytes, 0},
    {head_of(1, status_field("199")) + head_of(1) + kFiveBytes, 200},
    {head_of(1, status_field("101")) + head_of(1) + kFiveBytes, 0},
    {head_of(1, status_field("100")) + kFiveBytes, 0},
    {head_of(1, status_field("100") + length_field("0")) + head_of(1) + kFiveBytes, 0},
    {head_of(1) + head_of(1) + kFiveBytes, 0},
    {head_of(1) + head_of(1, status_field("103")) + kFiveBytes, 0},
    {head_of(1) + frame(kHeaders, kEndHeaders | kEndStream, 1, kOkHead), 0},
    {head_of(1, kOkHead + length_field("5")) + kFiveBytes, 200},
    {head_of(1, kOkHead + length_field("0")) + kFiveBytes, 0},
    {head_of(1, kOkHead + length_field("")) + kFiveBytes, 0},
    {head_of(1, kOkHead + length_field("+5")) + kFiveBytes, 0},
    {head_of(1, kOkHead + length_field("5, 5")) + kFiveBytes, 0},
    {head_of(1, kOkHead + length_field("5") + length_field("5")) + kFiveBytes, 0},
    {head_of(1, kOkHead + length_field("9223372036854775808")) + kFiveBytes, 0},
    {head_of(1, status_field("204")) + kNoBody, 204},
    {head_of(1, status_field("204")) + kFiveBytes, 0},
    {head_of(1, status_field("204") + length_field("0")) + kNoBody, 204},
    {head_of(1, status_field("204") + length_field("5")) + kFiveBytes, 0},
    {head_of(1, status_field("205")) + kFiveBytes, 205},
    {head_of(1, status_field("304") + length_field("5")) + kNoBody, 304},
    {head_of(1, status_field("304") + length_field("5")) + kFiveBytes, 0},
    {head_of(1, kOkHead + field("x", "")) + kFiveBytes, 200},
    {head_of(1, kOkHead + field("x", " y")) + kFiveBytes, 0},
    {head_of(1, kOkHead + field("x", "a\nb")) + kFiveBytes, 0},
    {head_of(1, kOkHead + field("x y", "z")) + kFiveBytes, 0},
    {head_of(1, kOkHead + field("", "z")) + kFiveBytes, 0},
    {head_of(1, kOkHead + field("transfer-encoding", "chunked")) + kFiveBytes, 0},
    {head_of(1, kOkHead + field("upgrade", "x")) + kFiveBytes, 0},
    {head_of(1, kOkHead + field("keep-alive", "x")) + kFiveBytes, 0},
    // Frames after the end of the stream are ignored.
    {head_of(1) + kFiveBytes + kFiveBytes, 200},
    {head_of(1) + kFiveBytes + head_of(1), 200},
    {head_of(1) + kFiveBytes + reset_of(1, 0), 200},
    {head_of(1) + kFiveBytes + reset_of(1, 8), 200},
};

TEST_F(ClientHttp2Peers, ResponsesAreParsedUnambiguously) {
  for (const auto& each : kResponses) {
    SCOPED_TRACE(&each - kResponses);
    Outcome outcome;
    const http::Call call = fetch_answered(each.answer, outcome);
    ASSERT_TRUE(outcome.is_there());
    if (each.status == 0)
      EXPECT_EQ(outcome.error(), HttpError::malformed_response);
    else
      EXPECT_EQ(outcome.status(), each.status);
    EXPECT_EQ(client_.metrics().connections, 1u);
  }
}

TEST_F(ClientHttp2Peers, HeaderOnlyFieldsAreDroppedFromTrailers) {
  const std::string none[] = {field("content-length", "2"), field("set-cookie", "a=b"),
                              field("content-encoding", "gzip"), ""};
  for (const std::string& each : none) {
    Outcome outcome;
    const http::Call call =
        fetch_answered(head_of(1) + frame(kData, 0, 1, "ok") +
                           frame(kHeaders, kEndHeaders | kEndStream, 1, each + field("x", "y")),
                       outcome);
    ASSERT_TRUE(outcome.is_good());
    EXPECT_EQ((*outcome.result)->trailers().size(), 1u);
    EXPECT_EQ((*outcome.result)->trailers()["x"], "y");
  }
}

TEST_F(ClientHttp2Peers, ForbiddenBodyIsRefused) {
  Outcome outcome;
  const http::Call call = fetch(outcome, {.method = Method::head});
  turns();
  greet(peer());
  peer().answer(answer_of(1));
  turns();
  EXPECT_EQ(outcome.error(), HttpError::malformed_response);
}

// ---- floods

TEST_F(ClientHttp2Peers, FloodsCloseConnection) {
  const std::string useless[] = {frame(kPing, 0, 0, "01234567"), frame(kSettings, 0, 0),
                                 frame(kWindow, 0, 0, number(1)), frame(kData, 0, 1)};
  for (const std::string& each : useless) {
    SCOPED_TRACE(static_cast<int>(each[3]));
    const std::size_t index = peers.size();
    make_client2();
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    greet(peer(index));
    peer(index).answer(head_of(1));
    turns();
    int borne = 0;
    for (; borne < 3000 && !outcome.is_there(); ++borne) {
      peer(index).answer(each);
      turns(2);
    }
    EXPECT_GE(borne, 950);
    EXPECT_LE(borne, 1050);
    EXPECT_EQ(outcome.error(), HttpError::malformed_response);
    EXPECT_EQ(heard(index).last_goaway, 11);
    EXPECT_EQ(client_.metrics().connections, 0u);
  }
}

TEST_F(ClientHttp2Peers, IdleConnectionRespondsToPings) {
  begin2();
  EXPECT_EQ(client_.metrics().idle, 1u);
  peer().answer(frame(kPing, 0, 0, "01234567"));
  turns();
  EXPECT_EQ(heard().count[kPing], 1);
  EXPECT_EQ(client_.metrics().idle, 1u);
  peer().stream().end();
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp2Peers, DestroyedClientSendsGoaway) {
  begin2();
  client_ = {};
  turns();
  EXPECT_EQ(heard().last_goaway, 0);
  EXPECT_TRUE(peer().is_ended || peer().is_closed);
}

}  // namespace
}  // namespace spate::testing
