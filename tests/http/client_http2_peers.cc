// Servers of HTTP/2 that refuse, go away, are broken or hostile, and the client's reactions.
#include <chrono>
#include <string>
#include <vector>

#include "http/client_http2_harness.h"
#include "spate/coro/or_return.h"
#include "spate/coro/time.h"
#include "spate/http/coro.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::HttpError;
using http::Method;
using ::testing::ElementsAre;

constexpr std::uint32_t kRefused = 7;

std::string go_away(std::uint32_t last, std::uint32_t code = 0) {
  return frame(kGoAway, 0, 0, number(last) + number(code));
}
std::string reset_of(std::uint32_t stream, std::uint32_t code) {
  return frame(kReset, 0, stream, number(code));
}

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
  // Makes a connection that has answered once.
  void begin2() {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    greet(peer());
    peer().answer(answer_of(1));
    turns();
    ASSERT_EQ(outcome.text(), "ok");
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

// ---- a server that stops answering

TEST_F(ClientHttp2Peers, CallAfterDeadlineInSilenceUsesNewConnection) {
  begin2();
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 1s});
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(a.error(), Error::deadline);
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_TRUE(peer().is_ended || peer().is_closed);
  const http::Call second = fetch(b);
  turns();
  ASSERT_EQ(peers.size(), 2u);
  greet(peer(1));
  peer(1).answer(answer_of(1));
  turns();
  EXPECT_EQ(b.text(), "ok");
}

TEST_F(ClientHttp2Peers, ActiveCallsOfSilentConnectionContinue) {
  begin2();
  Outcome late, patient, next;
  const http::Call first = fetch(late, {.deadline = 1s}), second = fetch(patient);
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(late.error(), Error::deadline);
  EXPECT_EQ(heard().last_reset, 8);
  const http::Call third = fetch(next);
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(client_.metrics().connections, 2u);
  peer().answer(answer_of(5, "after all"));
  turns();
  EXPECT_EQ(patient.text(), "after all");
  EXPECT_EQ(client_.metrics().connections, 1u);
  EXPECT_TRUE(peer().is_ended || peer().is_closed);
  EXPECT_FALSE(next.is_there());
}

TEST_F(ClientHttp2Peers, WaitingCallTakesSlotOfSilentConnection) {
  make_client2({.max_per_origin = 1}, {.max_streams = 1});
  begin2();
  Outcome late, waiting;
  const http::Call first = fetch(late, {.deadline = 1s}), second = fetch(waiting);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  clock_.advance(2s);
  turns();
  EXPECT_EQ(late.error(), Error::deadline);
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(heard(1).streams, ElementsAre(1u));
  EXPECT_EQ(client_.metrics().connections, 1u);
}

TEST_F(ClientHttp2Peers, AnyFrameShowsThatServerResponds) {
  begin2();
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 1s});
  turns();
  peer().answer(frame(kPing, 0, 0, "01234567"));
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(a.error(), Error::deadline);
  const http::Call second = fetch(b);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  EXPECT_THAT(heard().streams, ElementsAre(1u, 3u, 5u));
}

// The response may be late only because connecting took so long.
TEST_F(ClientHttp2Peers, SilentConnectionNewerThanCallIsKept) {
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 1s});
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_EQ(a.error(), Error::deadline);
  EXPECT_EQ(client_.metrics().connections, 1u);
  const http::Call second = fetch(b, {.deadline = 1s});
  turns();
  EXPECT_THAT(heard().streams, ElementsAre(1u, 3u));
  clock_.advance(2s);
  turns();
  EXPECT_EQ(b.error(), Error::deadline);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

// ---- calls that are cancelled on a silent connection

class ClientHttp2Silence : public ClientHttp2Peers {
 protected:
  ClientHttp2Silence() { begin2(); }

  // Starts a call and cancels it after `time`. Returns whether it was sent on the first connection.
  bool cancel_after(Nanos time) {
    const std::size_t before = heard().streams.size();
    Outcome outcome;
    http::Call call = fetch(outcome);
    turns();
    clock_.advance(time);
    turns();
    call.cancel();
    turns();
    return heard().streams.size() > before;
  }
  int pings() { return heard().count[kPing]; }
  void answer_pings() {
    peer().answer(frame(kPing, 1, 0, std::string(8, '\0')));
    turns();
  }
};

TEST_F(ClientHttp2Silence, EarlyCancelSendsNoPing) {
  EXPECT_TRUE(cancel_after(999ms));
  EXPECT_EQ(heard().last_reset, 8);
  EXPECT_EQ(pings(), 0);
  clock_.advance(10s);
  turns();
  EXPECT_TRUE(cancel_after(0s));
  EXPECT_EQ(pings(), 1);
}

TEST_F(ClientHttp2Silence, UnresponsiveServerGetsNoNewCalls) {
  EXPECT_TRUE(cancel_after(1s));
  EXPECT_EQ(pings(), 1);
  EXPECT_TRUE(cancel_after(999ms));  // It may still answer.
  EXPECT_TRUE(cancel_after(1ms));
  EXPECT_EQ(pings(), 1);
  EXPECT_FALSE(cancel_after(0s));
  EXPECT_EQ(peers.size(), 2u);
  EXPECT_EQ(client_.metrics().connections, 1u);
  EXPECT_TRUE(peer().is_ended || peer().is_closed);
}

TEST_F(ClientHttp2Silence, PingReplyKeepsConnection) {
  EXPECT_TRUE(cancel_after(2s));
  EXPECT_EQ(pings(), 1);
  answer_pings();
  clock_.advance(10s);
  turns();
  EXPECT_TRUE(cancel_after(2s));
  EXPECT_EQ(pings(), 2);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientHttp2Silence, AnyFrameKeepsConnection) {
  EXPECT_TRUE(cancel_after(2s));
  peer().answer(frame(kSettings, 0, 0));
  turns();
  clock_.advance(2s);
  turns();
  EXPECT_TRUE(cancel_after(0s));
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientHttp2Silence, ActiveCallsOfUnresponsiveServerContinue) {
  Outcome patient;
  const http::Call call = fetch(patient);
  EXPECT_TRUE(cancel_after(2s));
  clock_.advance(2s);
  turns();
  EXPECT_FALSE(cancel_after(0s));
  EXPECT_EQ(client_.metrics().connections, 2u);
  peer().answer(answer_of(3, "after all"));
  turns();
  EXPECT_EQ(patient.text(), "after all");
  EXPECT_EQ(client_.metrics().connections, 1u);
}

coro::Task<Result<std::string>> fetch_text(http::Client* client) {
  const http::Response page = co_await coro::or_return(coro::fetch(*client, "http://a.example/"));
  co_return std::string(page.text());
}
coro::Task<void> fetch_within(http::Client* client, Nanos time, std::vector<std::string>* told) {
  const Result<std::string> text = co_await coro::with_deadline(time, fetch_text(client));
  told->push_back(text ? *text : text.error() == Error::deadline ? "late" : "failed");
}

TEST_F(ClientHttp2Silence, CoroutineWithDeadlineLeavesSilentConnection) {
  std::vector<std::string> told;
  coro::Scope scope(loop_);
  for (int i = 0; i < 3; ++i) {
    scope.spawn(fetch_within(&client_, 2s, &told));
    turns();
    if (peers.size() == 2) {
      greet(peer(1));
      peer(1).answer(answer_of(1, "there"));
    }
    turns();
    clock_.advance(2s);
    turns();
  }
  EXPECT_THAT(told, ElementsAre("late", "late", "there"));
  EXPECT_EQ(client_.metrics().connections, 1u);
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

TEST_F(ClientHttp2Peers, ResponsesAreParsedUnambiguously) {
  const std::string head(kHead200);
  const auto status = [](std::string_view code) { return field(":status", code); };
  const auto length = [](std::string_view size) { return field("content-length", size); };
  const std::string body = frame(kData, kEndStream, 1, "12345"), end = frame(kData, kEndStream, 1);
  const struct {
    std::string answer;
    int status;  // 0: it is malformed.
  } cases[] = {
      {head_of(1, status("600")) + body, 600},
      {head_of(1, status("999")) + body, 999},
      {head_of(1, status("000")) + body, 0},
      {head_of(1, status("099")) + end, 0},
      {head_of(1, status("")) + body, 0},
      {head_of(1, status("0200")) + body, 0},
      {head_of(1, status("2x0")) + body, 0},
      {head_of(1, head + head) + body, 0},
      {head_of(1, field("x", "y") + head) + body, 0},
      {head_of(1, head + field(":path", "/")) + body, 0},
      {head_of(1, status("199")) + head_of(1) + body, 200},
      {head_of(1, status("101")) + head_of(1) + body, 0},
      {head_of(1, status("100")) + body, 0},
      {head_of(1, status("100") + length("0")) + head_of(1) + body, 0},
      {head_of(1) + head_of(1) + body, 0},
      {head_of(1) + head_of(1, status("103")) + body, 0},
      {head_of(1) + frame(kHeaders, kEndHeaders | kEndStream, 1, head), 0},
      {head_of(1, head + length("5")) + body, 200},
      {head_of(1, head + length("0")) + body, 0},
      {head_of(1, head + length("")) + body, 0},
      {head_of(1, head + length("+5")) + body, 0},
      {head_of(1, head + length("5, 5")) + body, 0},
      {head_of(1, head + length("5") + length("5")) + body, 0},
      {head_of(1, head + length("9223372036854775808")) + body, 0},
      {head_of(1, status("204")) + end, 204},
      {head_of(1, status("204")) + body, 0},
      {head_of(1, status("204") + length("0")) + end, 204},
      {head_of(1, status("204") + length("5")) + body, 0},
      {head_of(1, status("205")) + body, 205},
      {head_of(1, status("304") + length("5")) + end, 304},
      {head_of(1, status("304") + length("5")) + body, 0},
      {head_of(1, head + field("x", "")) + body, 200},
      {head_of(1, head + field("x", " y")) + body, 0},
      {head_of(1, head + field("x", "a\nb")) + body, 0},
      {head_of(1, head + field("x y", "z")) + body, 0},
      {head_of(1, head + field("", "z")) + body, 0},
      {head_of(1, head + field("transfer-encoding", "chunked")) + body, 0},
      {head_of(1, head + field("upgrade", "x")) + body, 0},
      {head_of(1, head + field("keep-alive", "x")) + body, 0},
      // Frames after the end of the stream are ignored.
      {head_of(1) + body + body, 200},
      {head_of(1) + body + head_of(1), 200},
      {head_of(1) + body + reset_of(1, 0), 200},
      {head_of(1) + body + reset_of(1, 8), 200},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(&each - cases);
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

// ---- windows

// A small frame is copied, a large one is moved: either may be the one that makes room.
TEST_F(ClientHttp2Peers, UploadIsDrainedBySmallFrames) {
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

TEST_F(ClientHttp2Peers, ZeroWindowHoldsBackBody) {
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

TEST_F(ClientHttp2Peers, CallWaitsForServerThatAllowsNoStreams) {
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

TEST_F(ClientHttp2Peers, EarlyResponseStopsUpload) {
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
