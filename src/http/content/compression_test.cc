#include "spate/http/compression.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/fault.h"
#include "tests/support/random.h"

namespace spate::http {
namespace {

using InflateState = Decompressor::State;

constexpr std::uint64_t kEnough = 1 << 24;

std::string taken_from(Buffer& buffer) {
  std::string text(text_of(buffer.flat(buffer.size())));
  buffer.clear();
  return text;
}

std::string compressed(std::string_view text, Coding coding = Coding::gzip) {
  Compressor compressor = *Compressor::make(coding);
  Buffer target;
  EXPECT_TRUE(compressor.write(bytes_of(text), target));
  EXPECT_TRUE(compressor.end(target));
  return taken_from(target);
}

struct Inflated {
  std::string text;
  std::error_code error;
  bool is_done = false;
  bool operator==(const Inflated&) const = default;
};

Inflated inflate_in_steps(Decompressor& decompressor, std::string_view body, std::size_t step,
                          std::size_t most) {
  Buffer target;
  for (std::size_t at = 0; at < body.size(); at += step) {
    Bytes bytes = bytes_of(body.substr(at, step));
    InflateState state = InflateState::full;
    while (state == InflateState::full) {
      const std::size_t before = target.size();
      state = decompressor.next(bytes, target, most);
      EXPECT_LE(target.size() - before, most);
    }
    if (state == InflateState::unfinished) EXPECT_TRUE(bytes.empty());
  }
  return {taken_from(target), decompressor.error(), decompressor.is_done()};
}
Inflated inflated(std::string_view body, Coding coding = Coding::gzip,
                  std::uint64_t limit = kEnough) {
  Decompressor decompressor = *Decompressor::make(coding, limit);
  const Inflated whole = inflate_in_steps(decompressor, body, body.size() + 1, SIZE_MAX);
  for (const std::size_t step : {1, 2, 7}) {
    decompressor.reset();
    EXPECT_EQ(inflate_in_steps(decompressor, body, step, 1 + step * 3), whole);
  }
  return whole;
}

// A body of the format of RFC 1951, without head and sum.
std::string raw_deflated(std::string_view text) {
  const std::string zlib = compressed(text, Coding::deflate);
  return zlib.substr(2, zlib.size() - 6);
}

TEST(Compression, RoundTripsText) {
  for (const Coding coding : {Coding::gzip, Coding::deflate}) {
    for (const std::string& text : {std::string(), std::string("a"), std::string(100000, 'x')}) {
      const Inflated back = inflated(compressed(text, coding), coding);
      EXPECT_EQ(back.text, text);
      EXPECT_TRUE(back.is_done);
      EXPECT_FALSE(back.error);
    }
  }
}

TEST(Compression, RoundTripsAnySplitOfText) {
  testing::Random random(9);
  Compressor compressor = *Compressor::make(Coding::gzip, 1);
  Decompressor decompressor = *Decompressor::make(Coding::gzip, kEnough);
  for (int i = 0; i < 200; ++i) {
    Buffer target;
    std::string text;
    for (std::size_t pieces = random.below(8); pieces > 0; --pieces) {
      std::string piece(random.below(3000), '\0');
      std::ranges::generate(piece, [&random] { return static_cast<char>(random.below(20)); });
      text += piece;
      ASSERT_TRUE(compressor.write(bytes_of(piece), target));
      if (random.one_in(3)) ASSERT_TRUE(compressor.flush(target));
    }
    ASSERT_TRUE(compressor.end(target));
    const Inflated back = inflate_in_steps(decompressor, taken_from(target), 1 + random.below(500),
                                           1 + random.below(900));
    ASSERT_EQ(back.text, text);
    ASSERT_TRUE(back.is_done);
    compressor.reset();
    decompressor.reset();
  }
}

TEST(Compression, ReducesSize) {
  EXPECT_LT(compressed(std::string(100000, 'x')).size(), 300u);
  EXPECT_EQ(compressed("a").substr(0, 3), "\x1f\x8b\x08");
}

TEST(Compression, EmitsAllInputOnFlush) {
  Compressor compressor = *Compressor::make(Coding::gzip);
  Decompressor decompressor = *Decompressor::make(Coding::gzip, kEnough);
  for (const std::string_view event : {"one", "two", "three"}) {
    Buffer target;
    ASSERT_TRUE(compressor.write(bytes_of(event), target) && compressor.flush(target));
    const Inflated back = inflate_in_steps(decompressor, taken_from(target), 1000, SIZE_MAX);
    EXPECT_EQ(back.text, event);
    EXPECT_FALSE(back.is_done);
  }
}

TEST(Decompression, AcceptsConcatenatedMembers) {
  const Inflated back = inflated(compressed("one ") + compressed("") + compressed("two"));
  EXPECT_EQ(back.text, "one two");
  EXPECT_TRUE(back.is_done);
}

TEST(Decompression, AcceptsRawDeflate) {
  const Inflated back = inflated(raw_deflated("hello hello hello"), Coding::deflate);
  EXPECT_EQ(back.text, "hello hello hello");
  EXPECT_TRUE(back.is_done);
}

TEST(Decompression, CompletesWithoutInput) {
  EXPECT_TRUE(inflated("").is_done);
  Decompressor decompressor = *Decompressor::make(Coding::gzip, kEnough);
  Bytes none;
  Buffer target;
  EXPECT_EQ(decompressor.next(none, target), InflateState::unfinished);
  EXPECT_TRUE(decompressor.is_done());
}

TEST(Decompression, IsIncompleteAfterTruncatedInput) {
  for (const Coding coding : {Coding::gzip, Coding::deflate}) {
    const std::string body = compressed("hello", coding);
    for (std::size_t size = 1; size < body.size(); ++size) {
      const Inflated back = inflated(body.substr(0, size), coding);
      EXPECT_FALSE(back.is_done) << size;
      EXPECT_FALSE(back.error) << size;
    }
  }
  EXPECT_FALSE(inflated(compressed("a") + "\x1f").is_done);
}

TEST(Decompression, FailsOnGarbage) {
  const std::string good = compressed("hello");
  for (const std::string& body :
       {std::string("hello"), std::string("\x1f\x8b\x07x"), good + "x", good + std::string(1, '\0'),
        good + "\x1fx", good.substr(0, good.size() - 8) + "12345678", "\n" + good})
    EXPECT_EQ(inflated(body).error, std::errc::bad_message) << body;
  const std::string zlib = compressed("hello", Coding::deflate);
  for (const std::string& body :
       {zlib + "x", zlib + zlib, std::string("\x78\x9d"), std::string("\xff\xff"),
        zlib.substr(0, zlib.size() - 4) + "1234", std::string("\x78\xbb\1\2\3\4")})
    EXPECT_EQ(inflated(body, Coding::deflate).error, std::errc::bad_message);
}

TEST(Decompression, StopsBombAtLimit) {
  const std::string bomb = compressed(std::string(10 << 20, '\0'));
  ASSERT_LT(bomb.size(), 20000u);
  for (const std::uint64_t limit : {0, 1, 1000, 65536}) {
    Decompressor decompressor = *Decompressor::make(Coding::gzip, limit);
    const Inflated back = inflate_in_steps(decompressor, bomb, bomb.size(), SIZE_MAX);
    EXPECT_EQ(back.error, std::errc::message_size);
    EXPECT_EQ(back.text.size(), limit);
    EXPECT_FALSE(back.is_done);
  }
}

TEST(Decompression, AcceptsBodyOfExactlyLimit) {
  EXPECT_TRUE(inflated(compressed("hello"), Coding::gzip, 5).is_done);
  EXPECT_EQ(inflated(compressed("hello"), Coding::gzip, 4).error, std::errc::message_size);
  EXPECT_TRUE(inflated(compressed("he") + compressed("llo"), Coding::gzip, 5).is_done);
  EXPECT_EQ(inflated(compressed("he") + compressed("llo"), Coding::gzip, 4).error,
            std::errc::message_size);
  EXPECT_TRUE(inflated(compressed(""), Coding::gzip, 0).is_done);
}

TEST(Decompression, StopsWhenCallersBufferIsFull) {
  const std::string body = compressed(std::string(1000, 'x'));
  Decompressor decompressor = *Decompressor::make(Coding::gzip, kEnough);
  Buffer target;
  Bytes bytes = bytes_of(body);
  EXPECT_EQ(decompressor.next(bytes, target, 10), InflateState::full);
  EXPECT_EQ(target.size(), 10u);
  EXPECT_EQ(decompressor.next(bytes, target, 10000), InflateState::unfinished);
  EXPECT_EQ(target.size(), 1000u);
  EXPECT_TRUE(decompressor.is_done());
}

TEST(Decompression, RemainsFailedUntilReset) {
  Decompressor decompressor = *Decompressor::make(Coding::gzip, kEnough);
  EXPECT_TRUE(inflate_in_steps(decompressor, "garbage", 100, SIZE_MAX).error);
  EXPECT_TRUE(inflate_in_steps(decompressor, compressed("a"), 100, SIZE_MAX).error);
  decompressor.reset();
  EXPECT_EQ(inflate_in_steps(decompressor, compressed("a"), 100, SIZE_MAX).text, "a");
}

TEST(Compression, ReportsThatMemoryRanOut) {
  const std::string body = compressed("hello");
  for (std::uint64_t nth = 1; nth < 12; ++nth) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope(plan);
    Buffer target;
    const auto compressor = Compressor::make(Coding::gzip);
    const auto decompressor = Decompressor::make(Coding::gzip, kEnough);
    if (!compressor) EXPECT_EQ(compressor.error(), std::errc::not_enough_memory);
    if (!decompressor) EXPECT_EQ(decompressor.error(), std::errc::not_enough_memory);
    EXPECT_EQ(plan.failures(SystemCall::allocate), compressor && decompressor ? 0u : 1u);
  }
}

TEST(Compression, ReportsThatBufferAllocationFailed) {
  Compressor compressor = *Compressor::make(Coding::gzip);
  Decompressor decompressor = *Decompressor::make(Coding::gzip, kEnough);
  const std::string body = compressed("hello");
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM, 2);
  const FaultScope scope(plan);
  Buffer target;
  EXPECT_FALSE(compressor.end(target));
  Bytes bytes = bytes_of(body);
  EXPECT_EQ(decompressor.next(bytes, target), InflateState::broken);
  EXPECT_EQ(decompressor.error(), std::errc::not_enough_memory);
}

TEST(Compression, ReportsThatZlibWindowAllocationFailed) {
  const std::string body = compressed(std::string(5000, 'x'));
  Decompressor decompressor = *Decompressor::make(Coding::gzip, kEnough);
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 2, ENOMEM);  // Behind the first block of the Buffer.
  const FaultScope scope(plan);
  Buffer target;
  Bytes bytes = bytes_of(body);
  EXPECT_EQ(decompressor.next(bytes, target, 100), InflateState::broken);
  EXPECT_EQ(decompressor.error(), std::errc::not_enough_memory);
}

TEST(CodingTest, CodingRoundTripsThroughItsName) {
  for (const Coding coding : {Coding::gzip, Coding::deflate})
    EXPECT_EQ(coding_of(name_of(coding)), coding);
  EXPECT_EQ(coding_of("X-GZip"), Coding::gzip);
  for (const char* name : {"", "br", "identity", "gzip2", "x-deflate"})
    EXPECT_EQ(coding_of(name), std::nullopt);
}

}  // namespace
}  // namespace spate::http
