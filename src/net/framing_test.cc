// Tests of framing: the messages are the same, however the bytes are split.
#include "spate/net/framing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/random.h"

namespace spate {
namespace {

using Messages = std::vector<std::string>;

// Acts as a handler: the bytes that split() leaves are passed again with the next ones.
template <class Framing>
class Receiver {
 public:
  explicit Receiver(Framing framing) : framing_(framing) {}

  void on_data(std::string_view bytes) {
    if (broken) return;
    waiting_ += bytes;
    const Split result = split(bytes_of(waiting_), framing_,
                               [this](Bytes message) { messages.emplace_back(text_of(message)); });
    waiting_.erase(0, result.used);
    broken = result.broken;
  }

  Messages messages;
  bool broken = false;

 private:
  Framing framing_;
  std::string waiting_;
};

template <class Framing>
Receiver<Framing> received_at_once(Framing framing, std::string_view bytes) {
  Receiver receiver(framing);
  receiver.on_data(bytes);
  return receiver;
}

// Passes the bytes at once, in two pieces split at every position, and byte by byte: the messages
// must be the same.
template <class Framing>
void expect_messages(Framing framing, const std::string& bytes, const Messages& messages,
                     bool broken = false) {
  for (std::size_t at = 0; at <= bytes.size(); ++at) {
    Receiver receiver(framing);
    receiver.on_data(std::string_view(bytes).substr(0, at));
    receiver.on_data(std::string_view(bytes).substr(at));
    EXPECT_EQ(receiver.messages, messages) << "parted at " << at;
    EXPECT_EQ(receiver.broken, broken) << "parted at " << at;
  }
  Receiver receiver(framing);
  for (const char byte : bytes) receiver.on_data({&byte, 1});
  EXPECT_EQ(receiver.messages, messages);
  EXPECT_EQ(receiver.broken, broken);
}

std::string number(std::uint64_t value, std::size_t width, ByteOrder order) {
  std::string bytes(width, '\0');
  for (std::size_t i = 0; i < width; ++i)
    bytes[order == ByteOrder::big ? width - 1 - i : i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string written(const LengthField& field, std::size_t size) {
  std::string bytes(field.width, '\xff');
  EXPECT_TRUE(field.write(size, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

bool fits(const LengthField& field, std::size_t size) {
  std::byte target[8];
  return field.write(size, target);
}

TEST(FixedSize, SplitsAtEverySize) {
  expect_messages(FixedSize{3}, "abcdefgh", {"abc", "def"});
  expect_messages(FixedSize{1}, "xy", {"x", "y"});
  expect_messages(FixedSize{3}, "", {});
}

TEST(FixedSize, ReportsMissingBytes) {
  const Frame frame = FixedSize{100}.next(bytes_of("x"));
  EXPECT_EQ(frame.state, Frame::State::unfinished);
  EXPECT_EQ(frame.size, 100u);
}

TEST(LengthField, ReadsEveryWidthInEitherOrder) {
  for (const ByteOrder order : {ByteOrder::big, ByteOrder::little}) {
    for (std::size_t width = 1; width <= 8; ++width) {
      SCOPED_TRACE(width);
      const LengthField field{.width = width, .order = order};
      const std::string longest(width == 1 ? 255 : 300, 'x');
      EXPECT_EQ(written(field, 5), number(5, width, order));
      expect_messages(field,
                      number(5, width, order) + "hello" + number(0, width, order) +
                          number(longest.size(), width, order) + longest + number(9, width, order) +
                          "unfinish",
                      {"hello", "", longest});
    }
  }
}

TEST(LengthField, AcceptsHeaderAroundLength) {
  const LengthField hidden{.width = 2, .offset = 3, .after = 1};
  LengthField shown = hidden;
  shown.keep_header = true;
  const std::string bytes(
      "GET\0\x05!hello"
      "PUT\0\0?",
      17);
  expect_messages(hidden, bytes, {"hello", ""});
  expect_messages(shown, bytes, {bytes.substr(0, 11), bytes.substr(11)});
}

TEST(LengthField, AdjustsLengthThatCountsHeader) {
  const LengthField field{.width = 1, .adjustment = -1};
  EXPECT_EQ(written(field, 2), "\x03");
  expect_messages(field,
                  "\x03"
                  "ab"
                  "\x01"
                  "\x02"
                  "c",
                  {"ab", "", "c"});
  expect_messages(field,
                  std::string("\x02"
                              "a"
                              "\0"
                              "b",
                              4),
                  {"a"}, true);
  const LengthField more{.width = 1, .adjustment = 2};
  expect_messages(more,
                  std::string("\0"
                              "ab"
                              "\x01"
                              "abc",
                              7),
                  {"ab", "abc"});
  EXPECT_EQ(written(more, 2), std::string(1, '\0'));
}

TEST(LengthField, FailsOnLengthBeyondLimit) {
  const LengthField field{.width = 2, .max = 4};
  expect_messages(field, std::string("\0\4abcd", 6), {"abcd"});
  expect_messages(field, std::string("\0\1x\0\5abcde\0\1x", 13), {"x"}, true);
}

TEST(LengthField, FailsOnLengthThatOverflows) {
  for (const ByteOrder order : {ByteOrder::big, ByteOrder::little}) {
    const LengthField field{.width = 8, .order = order, .max = SIZE_MAX};
    for (const std::uint64_t length : {UINT64_MAX, std::uint64_t{1} << 63}) {
      const auto receiver = received_at_once(field, number(length, 8, order) + "x");
      EXPECT_TRUE(receiver.broken);
    }
    LengthField longer = field;
    longer.adjustment = 1;
    EXPECT_TRUE(received_at_once(longer, number(INT64_MAX, 8, order)).broken);
    const Frame huge = field.next(bytes_of(number(INT64_MAX, 8, order)));
    EXPECT_EQ(huge.state, Frame::State::unfinished);
    EXPECT_EQ(huge.size, std::size_t{INT64_MAX} + 8);
  }
}

TEST(LengthField, WritesOnlyReadableLengths) {
  EXPECT_TRUE(fits({.width = 1}, 255));
  EXPECT_FALSE(fits({.width = 1}, 256));
  EXPECT_FALSE(fits({.width = 7, .max = SIZE_MAX}, std::size_t{1} << 56));
  EXPECT_TRUE(fits({.width = 2, .max = 10}, 10));
  EXPECT_FALSE(fits({.width = 2, .max = 10}, 11));
  EXPECT_FALSE(fits({.width = 8, .max = SIZE_MAX}, SIZE_MAX));
  EXPECT_FALSE(fits({.width = 8, .adjustment = INT64_MAX, .max = SIZE_MAX}, SIZE_MAX - 100));
  for (std::size_t width = 1; width <= 8; ++width) {
    EXPECT_FALSE(fits({.width = width, .adjustment = 5}, 4)) << "less than none";
    EXPECT_TRUE(fits({.width = width, .adjustment = 5}, 5));
  }
}

TEST(LengthField, RoundTripsItsFrames) {
  testing::Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const LengthField field{.width = 1 + random.below(8),
                            .order = random.one_in(2) ? ByteOrder::big : ByteOrder::little,
                            .offset = random.below(4),
                            .after = random.below(4),
                            .adjustment = random.between(-20, 20),
                            .max = 400};
    std::string bytes;
    Messages messages;
    for (int message = 0; message < 3; ++message) {
      const std::string text(random.below(400), static_cast<char>('a' + message));
      if (!fits(field, text.size())) continue;
      bytes += std::string(field.offset, 'h') + written(field, text.size()) +
               std::string(field.after, 'b') + text;
      messages.push_back(text);
    }
    const auto receiver = received_at_once(field, bytes);
    ASSERT_EQ(receiver.messages, messages) << "case " << i;
    ASSERT_FALSE(receiver.broken);
  }
}

TEST(Delimiter, SplitsLines) {
  expect_messages(Delimiter{}, "one\n\nthree\nfour", {"one", "", "three"});
  expect_messages(Delimiter{.keep_delimiter = true}, "one\n\n", {"one\n", "\n"});
}

TEST(Delimiter, MayHaveSeveralBytes) {
  expect_messages(Delimiter{.delimiter = "\r\n"}, "a\r\nb\n\r\n\rc\r\r\n", {"a", "b\n", "\rc\r"});
  expect_messages(Delimiter{.delimiter = "aab"}, "aaabaab", {"a", ""});
}

TEST(Delimiter, FailsOnMessageBeyondLimit) {
  const Delimiter line{.delimiter = "\r\n", .max = 4};
  expect_messages(line, "abcd\r\n", {"abcd"});
  expect_messages(line, "abcde\r\n", {}, true);
  expect_messages(line, "ok\r\nabcd\r\rabc", {"ok"}, true);
  expect_messages(line, "abcd\r", {});
  expect_messages(Delimiter{.max = 0}, "\n\nx", {"", ""}, true);
}

TEST(Delimiter, MayHaveNoLimit) {
  const Delimiter line{.delimiter = "\r\n", .max = SIZE_MAX};
  expect_messages(line, "a\r\nbc", {"a"});
  EXPECT_EQ(line.next(bytes_of("abc")).size, 4u);
}

TEST(Delimiter, ResumesSearchWhereItStopped) {
  Delimiter line{.delimiter = "\r\n"};
  EXPECT_EQ(line.next(bytes_of("abc\r")).state, Frame::State::unfinished);
  EXPECT_EQ(line.searched, 4u);
  // Bytes that were searched are not searched again; a delimiter put there shows it.
  EXPECT_EQ(line.next(bytes_of("\r\nc\rd")).state, Frame::State::unfinished);
  EXPECT_EQ(line.next(bytes_of("abc\rd\r\n")).message.size(), 5u);
  EXPECT_EQ(line.searched, 0u) << "the next message is another one";
}

TEST(Delimiter, ScansLongLineOnce) {
  Delimiter line{.max = SIZE_MAX};
  std::string text;
  for (int piece = 0; piece < 1000; ++piece) {
    text.append(100, 'x');
    const std::size_t before = line.searched;
    EXPECT_EQ(line.next(bytes_of(text)).state, Frame::State::unfinished);
    EXPECT_EQ(line.searched - before, 100u);
  }
}

TEST(Delimiter, IsUnaffectedByBytesOfAnotherStream) {
  Delimiter line;
  EXPECT_EQ(line.next(bytes_of("a long beginning")).state, Frame::State::unfinished);
  EXPECT_EQ(line.next(bytes_of("ab")).state, Frame::State::unfinished);
  EXPECT_EQ(line.next(bytes_of("ab\n")).message.size(), 2u);
}

TEST(Split, ReportsMissingBytes) {
  const LengthField field{.width = 2};
  const auto wanted = [&](std::string_view bytes) {
    return split(bytes_of(bytes), field, [](Bytes) {}).wanted;
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(wanted(""sv), 2u);
  EXPECT_EQ(wanted("\0"sv), 2u);
  EXPECT_EQ(wanted("\0\5ab"sv), 7u);
  EXPECT_EQ(wanted("\0\1a\0\5ab"sv), 7u) << "with what is left, not with what was there";
  const auto stop = [](Bytes) { return false; };
  EXPECT_EQ(split(bytes_of("\0\1a\0\5"sv), field, stop).wanted, 0u) << "stopped by its owner";
  EXPECT_EQ(split(bytes_of("abcdef"), Delimiter{.max = 3}, stop).wanted, 0u) << "broken";
}

TEST(Split, StopsOnRequest) {
  Messages messages;
  const Split result = split(bytes_of("a\nb\nc\n"), Delimiter{}, [&](Bytes message) {
    messages.emplace_back(text_of(message));
    return messages.size() < 2;
  });
  EXPECT_EQ(messages, (Messages{"a", "b"}));
  EXPECT_EQ(result.used, 4u) << "the message that stopped it is used";
  EXPECT_FALSE(result.broken);
}

TEST(Split, ConsumesNothingFromMalformedInput) {
  const Split result = split(bytes_of("a\nbcdefg"), Delimiter{.max = 3}, [](Bytes) {});
  EXPECT_EQ(result.used, 2u);
  EXPECT_TRUE(result.broken);
}

}  // namespace
}  // namespace spate
