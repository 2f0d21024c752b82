#include "http/codec/framing.h"

#include <gtest/gtest.h>

#include <string>

namespace spate::http {
namespace {

struct Framed {
  Framing framing;
  int refusal = 0;
};

Framed frame_asked(std::string_view fields, std::string_view line = "POST / HTTP/1.1") {
  const std::string text = std::string(line) + "\r\n" + std::string(fields) + "\r\n";
  RequestHead head;
  EXPECT_EQ(parse_request(bytes_of(text), 0, {}, head).state, Parsed::State::whole) << text;
  Framed framed;
  const Refusal refusal = frame_request(head, framed.framing);
  framed.refusal = refusal ? code_of(refusal.status) : 0;
  return framed;
}
Framed frame_1_0(std::string_view fields) { return frame_asked(fields, "POST / HTTP/1.0"); }

Framed frame_outgoing(std::string_view fields, int status = 200, Method asked = Method::get,
                      std::string_view version = "1.1") {
  const std::string text = "HTTP/" + std::string(version) + " " + std::to_string(status) +
                           " Reason\r\n" + std::string(fields) + "\r\n";
  ResponseHead head;
  EXPECT_EQ(parse_response(bytes_of(text), 0, {}, head).state, Parsed::State::whole) << text;
  Framed framed;
  const Refusal refusal = frame_response(head, asked, framed.framing);
  framed.refusal = refusal ? code_of(refusal.status) : 0;
  return framed;
}

constexpr std::string_view kChunked = "Transfer-Encoding: chunked\r\n";
constexpr std::string_view kFive = "Content-Length: 5\r\n";

TEST(RequestFraming, HasNoBodyUnlessOneIsAnnounced) {
  EXPECT_EQ(frame_asked("").framing.body, BodyKind::none);
  EXPECT_EQ(frame_asked("Content-Length: 0\r\n").framing.body, BodyKind::none);
  EXPECT_EQ(frame_asked(kFive).framing.body, BodyKind::sized);
  EXPECT_EQ(frame_asked(kFive).framing.size, 5u);
  EXPECT_EQ(frame_asked(kChunked).framing.body, BodyKind::chunked);
}

TEST(RequestFraming, RefusesLengthWithTransferCoding) {
  EXPECT_EQ(frame_asked(std::string(kChunked) + std::string(kFive)).refusal, 400);
  EXPECT_EQ(frame_asked(std::string(kFive) + std::string(kChunked)).refusal, 400);
  EXPECT_EQ(frame_asked(std::string(kChunked) + "content-length:0\r\n").refusal, 400);
}

TEST(RequestFraming, AcceptsOnlyChunkedCoding) {
  for (const char* value : {"chunked", "CHUNKED", "Chunked", " chunked\t"})
    EXPECT_EQ(frame_asked("transfer-ENCODING: " + std::string(value) + "\r\n").refusal, 0) << value;
  for (const char* value : {"gzip, chunked", "x,chunked", "identity, chunked"})
    EXPECT_EQ(frame_asked("Transfer-Encoding: " + std::string(value) + "\r\n").refusal, 501)
        << value;
  for (const char* value : {"gzip", "identity", "chunked, gzip", "chunked, identity",
                            "chunked, chunked", "", "xchunked", "chunkedx", "chunked;a=b",
                            "\"chunked\"", "chunked foo", "chunk", "chunked\xa0", "chunked x, y"})
    EXPECT_EQ(frame_asked("Transfer-Encoding: " + std::string(value) + "\r\n").refusal, 400)
        << value;
  EXPECT_EQ(frame_asked("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n").refusal, 400);
  EXPECT_EQ(frame_asked(std::string(kChunked) + std::string(kChunked)).refusal, 400);
}

TEST(RequestFraming, RefusesTransferCodingsInHttp10) {
  EXPECT_EQ(frame_1_0(kChunked).refusal, 400);
  EXPECT_EQ(frame_1_0(kFive).framing.body, BodyKind::sized);
}

TEST(RequestFraming, RefusesDuplicateLength) {
  EXPECT_EQ(frame_asked("Content-Length: 5\r\ncontent-length: 5\r\n").refusal, 400);
  EXPECT_EQ(frame_asked("Content-Length: 5\r\nContent-Length: 6\r\n").refusal, 400);
  EXPECT_EQ(frame_asked("Content-Length: 5, 5\r\n").refusal, 400);
}

TEST(RequestFraming, RefusesLengthThatIsNotNumber) {
  for (const char* value : {"", "+5", "-5", "5 5", "5,", "0x5", "5a", "a5", "5.0", "1e3", "\"5\"",
                            "9223372036854775808", "18446744073709551616", "18446744073709551621",
                            "99999999999999999999", "\xd9\xa5"})
    EXPECT_EQ(frame_asked("Content-Length: " + std::string(value) + "\r\n").refusal, 400) << value;
  EXPECT_EQ(frame_asked("Content-Length: 9223372036854775807\r\n").framing.size,
            9223372036854775807u);
  EXPECT_EQ(frame_asked("Content-Length: 0000000000000000000000000000005\r\n").framing.size, 5u);
}

TEST(RequestFraming, IsSameForEveryMethod) {
  for (const char* method : {"GET", "HEAD", "TRACE", "DELETE", "OPTIONS", "PROPFIND"})
    EXPECT_EQ(frame_asked(kFive, std::string(method) + " / HTTP/1.1").framing.size, 5u) << method;
}

TEST(RequestFraming, HasNoBodyForConnect) {
  constexpr std::string_view kLine = "CONNECT h:1 HTTP/1.1";
  EXPECT_EQ(frame_asked("", kLine).refusal, 0);
  EXPECT_EQ(frame_asked("Content-Length: 0\r\n", kLine).refusal, 0);
  EXPECT_EQ(frame_asked(kFive, kLine).refusal, 400);
  EXPECT_EQ(frame_asked(kChunked, kLine).refusal, 400);
}

TEST(RequestFraming, KeepsConnectionAliveByVersion) {
  EXPECT_TRUE(frame_asked("").framing.keeps_alive);
  EXPECT_TRUE(frame_asked("Connection: keep-alive\r\n").framing.keeps_alive);
  EXPECT_TRUE(frame_asked("Connection: closed\r\n").framing.keeps_alive);
  EXPECT_FALSE(frame_asked("Connection: CLOSE\r\n").framing.keeps_alive);
  EXPECT_FALSE(frame_asked("Connection: a, close\r\n").framing.keeps_alive);
  EXPECT_FALSE(frame_asked("Connection: a\r\nX: y\r\nConnection: close\r\n").framing.keeps_alive);
  EXPECT_FALSE(frame_1_0("").framing.keeps_alive);
  EXPECT_FALSE(frame_1_0("Connection: upgrade\r\n").framing.keeps_alive);
  EXPECT_TRUE(frame_1_0("Connection: Keep-Alive\r\n").framing.keeps_alive);
  EXPECT_FALSE(frame_1_0("Connection: keep-alive, close\r\n").framing.keeps_alive);
}

TEST(RequestFraming, ExpectsContinueOnlyWithBody) {
  const auto expect = [](const char* value) {
    return std::string(kFive) + "Expect: " + value + "\r\n";
  };
  EXPECT_TRUE(frame_asked(expect("100-continue")).framing.expects_continue);
  EXPECT_TRUE(frame_asked(expect("100-Continue")).framing.expects_continue);
  EXPECT_FALSE(frame_asked("Expect: 100-continue\r\n").framing.expects_continue);
  for (const char* value : {"", "100", "100-continue, x", "200-ok"})
    EXPECT_EQ(frame_asked(expect(value)).refusal, 417) << value;
  EXPECT_EQ(frame_asked(expect("100-continue") + "Expect: x\r\n").refusal, 417);
  EXPECT_EQ(frame_1_0(expect("x")).refusal, 0);
  EXPECT_FALSE(frame_1_0(expect("100-continue")).framing.expects_continue);
}

TEST(RequestFraming, RequiresBothFieldsForUpgrade) {
  EXPECT_TRUE(frame_asked("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n")
                  .framing.asks_upgrade);
  EXPECT_FALSE(frame_asked("Upgrade: websocket\r\n").framing.asks_upgrade);
  EXPECT_FALSE(frame_asked("Connection: upgrade\r\n").framing.asks_upgrade);
  EXPECT_FALSE(frame_1_0("Connection: upgrade\r\nUpgrade: websocket\r\n").framing.asks_upgrade);
}

TEST(ResponseFraming, DependsOnRequestAndStatus) {
  EXPECT_EQ(frame_outgoing("").framing.body, BodyKind::until_end);
  EXPECT_FALSE(frame_outgoing("").framing.keeps_alive);
  EXPECT_EQ(frame_outgoing("Content-Length: 0\r\n").framing.body, BodyKind::none);
  EXPECT_TRUE(frame_outgoing("Content-Length: 0\r\n").framing.keeps_alive);
  EXPECT_EQ(frame_outgoing(kFive).framing.size, 5u);
  EXPECT_EQ(frame_outgoing(kChunked).framing.body, BodyKind::chunked);
  for (const std::string_view fields : {std::string_view(), kFive, kChunked}) {
    EXPECT_EQ(frame_outgoing(fields, 200, Method::head).framing.body, BodyKind::none) << fields;
    EXPECT_EQ(frame_outgoing(fields, 304).framing.body, BodyKind::none) << fields;
    EXPECT_EQ(frame_outgoing(fields, 204).framing.body, BodyKind::none) << fields;
    EXPECT_EQ(frame_outgoing(fields, 103).framing.body, BodyKind::none) << fields;
    EXPECT_EQ(frame_outgoing(fields, 200, Method::connect).framing.body, BodyKind::none) << fields;
  }
  EXPECT_EQ(frame_outgoing(kFive, 304).framing.size, 0u);
  EXPECT_TRUE(frame_outgoing(kFive, 304).framing.keeps_alive);
  EXPECT_TRUE(frame_outgoing("", 204).framing.keeps_alive);
  EXPECT_FALSE(frame_outgoing(kFive, 204).framing.keeps_alive);
  EXPECT_EQ(frame_outgoing(kFive, 407, Method::connect).framing.body, BodyKind::sized);
}

TEST(ResponseFraming, BecomesTunnel) {
  EXPECT_TRUE(frame_outgoing("", 101).framing.becomes_tunnel);
  EXPECT_TRUE(frame_outgoing("", 200, Method::connect).framing.becomes_tunnel);
  EXPECT_TRUE(frame_outgoing(kFive, 299, Method::connect).framing.becomes_tunnel);
  EXPECT_FALSE(frame_outgoing("", 300, Method::connect).framing.becomes_tunnel);
  EXPECT_FALSE(frame_outgoing("", 200).framing.becomes_tunnel);
  EXPECT_FALSE(frame_outgoing("", 100).framing.becomes_tunnel);
}

TEST(ResponseFraming, RefusesFramingThatIsInvalidInRequests) {
  for (const std::string& fields :
       {std::string(kChunked) + std::string(kFive), std::string(kChunked) + std::string(kChunked),
        std::string(kFive) + std::string(kFive), std::string("Content-Length: 5,5\r\n"),
        std::string("Content-Length: x\r\n"), std::string("Transfer-Encoding: gzip\r\n"),
        std::string("Transfer-Encoding: gzip, chunked\r\n")}) {
    EXPECT_EQ(frame_outgoing(fields).refusal, 502) << fields;
    EXPECT_EQ(frame_outgoing(fields, 200, Method::head).refusal, 502) << fields;
  }
  EXPECT_EQ(frame_outgoing(kChunked, 200, Method::get, "1.0").refusal, 502);
  EXPECT_EQ(frame_outgoing("Expect: x\r\n").refusal, 0);
}

TEST(ResponseFraming, KeepsConnectionAliveByVersion) {
  EXPECT_TRUE(frame_outgoing(kFive).framing.keeps_alive);
  EXPECT_FALSE(frame_outgoing(std::string(kFive) + "Connection: close\r\n").framing.keeps_alive);
  EXPECT_FALSE(frame_outgoing(kFive, 200, Method::get, "1.0").framing.keeps_alive);
  EXPECT_TRUE(
      frame_outgoing(std::string(kFive) + "Connection: keep-alive\r\n", 200, Method::get, "1.0")
          .framing.keeps_alive);
}

}  // namespace
}  // namespace spate::http
