#include "http/codec/chunked.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/fault.h"

namespace spate::http {
namespace {

using Decoding = ChunkedDecoder::State;

struct Decoded {
  std::string data;
  std::string trailers;
  Decoding state = Decoding::unfinished;
  int refusal = 0;
  std::size_t used = 0;
  bool operator==(const Decoded&) const = default;
};

// As a handler is called that uses `most` bytes of data each time.
void go_on(ChunkedDecoder& decoder, std::string_view bytes, std::size_t most, Fields& trailers,
           Decoded& decoded) {
  for (;;) {
    const auto step = decoder.next(bytes_of(bytes.substr(decoded.used)), trailers);
    decoded.state = step.state;
    decoded.used += step.used;
    if (step.refusal) decoded.refusal = code_of(step.refusal.status);
    if (step.state != Decoding::data) return;
    const std::string_view taken = text_of(step.data).substr(0, most);
    decoded.data += taken;
    decoder.take(taken.size());
    decoded.used += taken.size();
  }
}

Decoded decode(std::string_view bytes, std::size_t step = SIZE_MAX, std::size_t most = SIZE_MAX) {
  ChunkedDecoder decoder;
  Fields trailers;
  Decoded decoded;
  for (std::size_t there = 0; decoded.state == Decoding::unfinished && there < bytes.size();) {
    there += std::min(step, bytes.size() - there);
    go_on(decoder, bytes.substr(0, there), most, trailers, decoded);
  }
  decoded.trailers = trailers.lines();
  EXPECT_EQ(decoder.size(), decoded.data.size());
  return decoded;
}

// 0 if it is taken to its end.
int chunked_refusal_of(std::string_view bytes) {
  const Decoded decoded = decode(bytes);
  EXPECT_NE(decoded.state, Decoding::unfinished) << bytes;
  EXPECT_EQ(decode(bytes, 1).refusal, decoded.refusal) << bytes;
  return decoded.refusal;
}
int with_extension(std::string_view extension) {
  return chunked_refusal_of("1" + std::string(extension) + "\r\nx\r\n0\r\n\r\n");
}

TEST(ChunkedDecoder, ReturnsDataOfAllChunks) {
  const std::string body = "5\r\nhello\r\n11\r\n, world, and all.\r\n0\r\n\r\n";
  const Decoded whole = decode(body + "GET");
  EXPECT_EQ(whole.data, "hello, world, and all.");
  EXPECT_EQ(whole.state, Decoding::end);
  EXPECT_EQ(whole.used, body.size());
  for (std::size_t step = 1; step < body.size(); ++step)
    for (const std::size_t most : {1u, 3u, 100u}) EXPECT_EQ(decode(body, step, most), decode(body));
}

TEST(ChunkedDecoder, ReturnsUntakenDataAgain) {
  ChunkedDecoder decoder;
  Fields trailers;
  const std::string_view body = "3\r\nabc\r\n0\r\n\r\n";
  auto step = decoder.next(bytes_of(body), trailers);
  EXPECT_EQ(step.used, 3u);
  EXPECT_EQ(text_of(step.data), "abc");
  decoder.take(0);
  step = decoder.next(bytes_of(body.substr(3)), trailers);
  EXPECT_EQ(step.used, 0u);
  EXPECT_EQ(text_of(step.data), "abc");
  decoder.take(2);
  step = decoder.next(bytes_of(body.substr(5)), trailers);
  EXPECT_EQ(text_of(step.data), "c");
  decoder.take(1);
  step = decoder.next(bytes_of(body.substr(6)), trailers);
  EXPECT_EQ(step.state, Decoding::end);
  EXPECT_EQ(step.used, body.size() - 6);
  EXPECT_EQ(decoder.next(bytes_of("more"), trailers).state, Decoding::end);
}

TEST(ChunkedDecoder, ParsesHexadecimalSizes) {
  for (const char* size : {"a", "A", "0a", "000000000000000a", "00A"})
    EXPECT_EQ(decode(std::string(size) + "\r\n0123456789\r\n0\r\n\r\n").data, "0123456789") << size;
  EXPECT_EQ(decode("7fffffffffffffff\r\n").refusal, 0);
  for (const char* size : {"", "g", "0x1", "-1", "+1", " 1", "1 ", "1\t", "1 x", "8000000000000000",
                           "ffffffffffffffff", "0000000000000000a", "10000000000000000", "1,", "1.",
                           "\xef\xbc\x91", "1h", "1/"})
    EXPECT_EQ(chunked_refusal_of(std::string(size) + "\r\nx"), 400) << size;
}

TEST(ChunkedDecoder, AllowsBlanksAfterSizeOnlyOnRequest) {
  for (const char* body : {"1  \r\nx\r\n0 \r\n\r\n", "1 ;a=b\r\nx\r\n0\t;c\r\n\r\n"}) {
    EXPECT_EQ(chunked_refusal_of(body), 400) << body;
    ChunkedDecoder lenient(ChunkedDecoder::Blanks::passed);
    Fields trailers;
    Decoded decoded;
    go_on(lenient, body, SIZE_MAX, trailers, decoded);
    EXPECT_EQ(decoded.data, "x") << body;
    EXPECT_EQ(decoded.state, Decoding::end) << body;
  }
  for (const char* body : {" 1\r\nx", "1 1\r\nx", "1 x\r\nx", "1 \nx"}) {
    ChunkedDecoder lenient(ChunkedDecoder::Blanks::passed);
    Fields trailers;
    Decoded decoded;
    go_on(lenient, body, SIZE_MAX, trailers, decoded);
    EXPECT_EQ(decoded.refusal, 400) << body;
  }
}

TEST(ChunkedDecoder, RequiresCrLfLineEnds) {
  for (const char* body :
       {"1\nx\r\n0\r\n\r\n", "1\r\nx\n0\r\n\r\n", "1\r\nx\r0\r\n\r\n", "1\rx\r\n0\r\n\r\n",
        "1\r\nxX\n0\r\n\r\n", "1\rXx\r\n0\r\n\r\n", "1\r\nx\rX0\r\n\r\n", "1\r\nxx\r\n0\r\n\r\n",
        "1\r\nx0\r\n\r\n", "1\r\nx\r\n0\n\r\n", "1\r\nx\r\n0\r\n\n", "1\r\nx\r\n\r\n0\r\n\r\n",
        "1\r\r\nx\r\n0\r\n\r\n", "0\r\r\n\r\n", "\r\n0\r\n\r\n", "1;a\nx\r\n0\r\n\r\n",
        "1;a=\"\n\"\r\nx\r\n0\r\n\r\n"})
    EXPECT_EQ(chunked_refusal_of(body), 400) << body;
}

TEST(ChunkedDecoder, ValidatesAndSkipsExtensions) {
  for (const char* extension :
       {";a", ";a=b", ";a=\"b\"", ";a;b=c;d=\"e\"", ";\ta", "; a", ";a = b", ";a =\t\"x; =\\\"y\"",
        ";a=\"\"", ";a=\"\\\\\"", ";a ;b", ";a=b ;c", ";a=\"b\" ;c", ";a=\"\xc3\xa4\t \""})
    EXPECT_EQ(with_extension(extension), 0) << extension;
  for (const char* extension :
       {" ;a",         "\t;a",   ";",         "; ",     ";;a",  ";a=",    ";=b",   ";a=b=c",
        ";a b",        ";a=b c", ";a=\"b\"c", ";a=\"b", " ",    ";a ",    ";a=b ", ";a=\"b\\\x01\"",
        ";a=\"\x01\"", ";a\x01", ";a=\"b\" ", ";a,b",   " a",   ";a=(b)", ";a\\b", ";a=\x7f",
        ";a=\"\x7f\"", ";\"a\"", ";a= ",      ";a =",   ";a=;b"})
    EXPECT_EQ(with_extension(extension), 400) << extension;
}

TEST(ChunkedDecoder, LimitsFramingOverhead) {
  const auto extension = [](std::size_t size) { return ";" + std::string(size - 1, 'a'); };
  EXPECT_EQ(with_extension(extension(ChunkedDecoder::kMostExcess)), 0);
  EXPECT_EQ(with_extension(extension(ChunkedDecoder::kMostExcess + 20)), 400);
  std::string body;
  for (int i = 0; i < 100; ++i) body += "1" + extension(1000) + "\r\nx\r\n";
  EXPECT_EQ(chunked_refusal_of(body + "0\r\n\r\n"), 400);
  body.clear();
  const std::string data(500, 'x');
  for (int i = 0; i < 100; ++i) body += "1f4" + extension(1000) + "\r\n" + data + "\r\n";
  EXPECT_EQ(chunked_refusal_of(body + "0\r\n\r\n"), 0);
}

TEST(ChunkedDecoder, AcceptsAnyNumberOfOneByteChunks) {
  std::string body;
  for (int i = 0; i < 100'000; ++i) body += "1\r\nx\r\n";
  EXPECT_EQ(decode(body + "0\r\n\r\n").data, std::string(100'000, 'x'));
}

TEST(ChunkedDecoder, StoresPermittedTrailers) {
  const Decoded decoded = decode(
      "0\r\nX-Sum: 1\r\nHost: h\r\n"
      "Authorization: a\r\nCookie: c\r\nETag: \"e\"\r\nIf-Match: *\r\n\r\nrest");
  EXPECT_EQ(decoded.trailers, "X-Sum: 1\r\nETag: \"e\"\r\n");
  EXPECT_EQ(decoded.state, Decoding::end);
  EXPECT_TRUE(may_be_trailer(FieldId::other));
  for (const FieldId id : {FieldId::connection, FieldId::te, FieldId::trailer, FieldId::upgrade,
                           FieldId::set_cookie, FieldId::content_type, FieldId::expect})
    EXPECT_FALSE(may_be_trailer(id)) << name_of(id);
}

TEST(ChunkedDecoder, RefusesMalformedTrailers) {
  for (const char* trailers :
       {"Content-Length: 0\r\n\r\n", "A: b\r\nTransfer-Encoding: chunked\r\n\r\n", "A b\r\n\r\n",
        " A: b\r\n\r\n", "A : b\r\n\r\n", "A: b\n\n", "\n", "A: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "A: \x01\r\n\r\n", "\rX: y\r\n\r\n"})
    EXPECT_EQ(chunked_refusal_of("0\r\n" + std::string(trailers)), 400) << trailers;
}

TEST(ChunkedDecoder, LimitsTrailers) {
  const auto bytes = [](std::size_t size) {
    return "0\r\nX: " + std::string(size - 7, 'a') + "\r\n\r\n";
  };
  EXPECT_EQ(chunked_refusal_of(bytes(ChunkedDecoder::kMostTrailerBytes)), 0);
  EXPECT_EQ(chunked_refusal_of(bytes(ChunkedDecoder::kMostTrailerBytes + 1)), 431);
  const auto fields = [](int count) {
    std::string text = "0\r\n";
    for (int i = 0; i < count; ++i) text += "A: b\r\n";
    return text + "\r\n";
  };
  EXPECT_EQ(chunked_refusal_of(fields(100)), 0);
  EXPECT_EQ(chunked_refusal_of(fields(101)), 431);
}

TEST(ChunkedDecoder, StaysFailed) {
  ChunkedDecoder decoder;
  Fields trailers;
  EXPECT_EQ(decoder.next(bytes_of("1;;"), trailers).state, Decoding::broken);
  EXPECT_EQ(decoder.next(bytes_of("0\r\n\r\n"), trailers).state, Decoding::broken);
}

TEST(ChunkedDecoder, FailsWithoutMemoryForTrailers) {
  ChunkedDecoder decoder;
  Fields trailers;
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
  FaultScope scope(plan);
  const auto step = decoder.next(bytes_of("0\r\nA: b\r\n\r\n"), trailers);
  EXPECT_EQ(step.state, Decoding::broken);
  EXPECT_EQ(step.refusal.status, Status::service_unavailable);
}

TEST(ChunkHeader, IsReadByDecoder) {
  EXPECT_EQ(ChunkHeader(1).text(), "1\r\n");
  EXPECT_EQ(ChunkHeader(0x1f0).text(), "1f0\r\n");
  EXPECT_EQ(ChunkHeader(UINT64_MAX).text(), "ffffffffffffffff\r\n");
  std::string body;
  std::string data;
  for (std::size_t size = 1; size < 5000; size = size * 3 / 2 + 1) {
    const std::string chunk(size, 'd');
    body += std::string(ChunkHeader(size).text()) + chunk + std::string(kChunkEnd);
    data += chunk;
  }
  EXPECT_EQ(decode(body + std::string(kLastChunk)).data, data);
}

}  // namespace
}  // namespace spate::http
