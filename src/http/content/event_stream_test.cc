#include "spate/http/event_stream.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "tests/support/random.h"

namespace spate::http {
namespace {

using EventState = EventDecoder::State;

std::string text_of_buffer(Buffer& buffer) {
  return std::string(text_of(buffer.flat(buffer.size())));
}

std::string event_text(const OutgoingEvent& event) {
  Buffer target;
  EXPECT_TRUE(append_event(event, target));
  return text_of_buffer(target);
}

struct Seen {
  std::string events;
  bool is_broken = false;
  std::string last_id;
  bool operator==(const Seen&) const = default;
};

Seen decode_in_steps(EventDecoder& decoder, std::string_view text, std::size_t step) {
  Seen seen;
  for (std::size_t at = 0; at < text.size() && !seen.is_broken; at += step) {
    Bytes bytes = bytes_of(text.substr(at, step));
    EventState state = decoder.next(bytes);
    for (; state == EventState::event; state = decoder.next(bytes))
      seen.events.append(decoder.type())
          .append("(")
          .append(decoder.data())
          .append(")")
          .append(decoder.last_id())
          .append(";");
    seen.is_broken = state == EventState::broken;
  }
  seen.last_id = decoder.last_id();
  return seen;
}
Seen decoded(std::string_view text, std::size_t limit = 1000) {
  EventDecoder whole_decoder(limit);
  const Seen whole = decode_in_steps(whole_decoder, text, text.size() + 1);
  for (const std::size_t step : {1, 2, 3, 5}) {
    EventDecoder decoder(limit);
    EXPECT_EQ(decode_in_steps(decoder, text, step), whole) << text;
    EXPECT_EQ(decoder.retry(), whole_decoder.retry());
  }
  return whole;
}
std::string events_of(std::string_view text) { return decoded(text).events; }

TEST(EventStream, WritesFieldsAndComments) {
  EXPECT_EQ(event_text({.data = "hello"}), "data: hello\n\n");
  EXPECT_EQ(
      event_text(
          {.data = "a\nb\r\nc\rd\n", .event = "x", .id = "7", .retry = std::chrono::seconds(2)}),
      "event: x\nid: 7\nretry: 2000\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
  EXPECT_EQ(event_text({}), "data: \n\n");
  EXPECT_EQ(event_text({.id = ""}), "id: \ndata: \n\n");
  EXPECT_EQ(event_text({.retry = std::chrono::milliseconds(-5)}), "retry: 0\ndata: \n\n");
  Buffer target;
  EXPECT_TRUE(append_event_comment("", target));
  EXPECT_TRUE(append_event_comment("a\nevent: b", target));
  EXPECT_EQ(text_of_buffer(target), ": \n\n: a\n: event: b\n\n");
}

TEST(EventStream, RefusesLineBreaksInFields) {
  Buffer target;
  for (const char* bad : {"a\nb", "a\rb", "\n", "x\r\ndata: y"}) {
    EXPECT_FALSE(append_event({.event = bad}, target)) << bad;
    EXPECT_FALSE(append_event({.id = bad}, target)) << bad;
  }
  EXPECT_FALSE(append_event({.id = std::string_view("\0", 1)}, target));
  EXPECT_TRUE(target.empty());
}

TEST(EventStream, ReportsThatMemoryRanOut) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM, 2);
  const FaultScope scope(plan);
  Buffer target;
  EXPECT_FALSE(append_event({.data = "x"}, target));
  EXPECT_FALSE(append_event_comment("x", target));
  EXPECT_TRUE(target.empty());
}

TEST(EventDecoderTest, EventsAreParsedWithAnyLineEnd) {
  EXPECT_EQ(events_of("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\r\n"),
            "message(a);message(b);message(c);message(d);");
  EXPECT_EQ(events_of("data: a\r\ndata: b\n\n"), "message(a\nb);");
  EXPECT_EQ(events_of("data: a\r\n\ndata: b\n\n"), "message(a);message(b);");
}

TEST(EventDecoderTest, InterpretsItsFields) {
  EXPECT_EQ(events_of("event: x\nid: 1\ndata: a\n\ndata: b\n\n"), "x(a)1;message(b)1;");
  EXPECT_EQ(events_of("data:a\ndata:  b\ndata\ndata:\n\n"), "message(a\n b\n\n);");
  EXPECT_EQ(events_of(": comment\n:\ndatax: a\nDATA: b\n data: c\nunknown\n\n"), "");
  EXPECT_EQ(events_of("data: a:b: c\n\n"), "message(a:b: c);");
  EXPECT_EQ(events_of("data\n\ndata\ndata\n\ndata:"), "message();message(\n);");
}

TEST(EventDecoderTest, EventWithoutDataIsNotReported) {
  EXPECT_EQ(events_of("event: x\n\ndata: a\n\n"), "message(a);");
  EXPECT_EQ(decoded("id: 5\n\n").last_id, "5");
  EXPECT_EQ(events_of("\n\n\r\n\r"), "");
}

TEST(EventDecoderTest, UnterminatedEventIsNotReported) {
  EXPECT_EQ(events_of("data: a\n\ndata: b\n"), "message(a);");
  EXPECT_EQ(events_of("data: a"), "");
  EXPECT_EQ(decoded("id: 5\n").last_id, "");
}

TEST(EventDecoderTest, LastIdIsKeptUnlessItContainsNul) {
  EXPECT_EQ(events_of("id: 1\ndata: a\n\nid\ndata: b\n\n"), "message(a)1;message(b);");
  EXPECT_EQ(events_of(std::string_view("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", 31)),
            "message(a)1;message(b)1;");
}

TEST(EventDecoderTest, RetryTimeMustConsistOfDigits) {
  for (const auto& [text, wait] :
       std::vector<std::pair<std::string_view, std::optional<std::chrono::milliseconds>>>{
           {"retry: 10\n", std::chrono::milliseconds(10)},
           {"retry: -1\n", {}},
           {"retry: 1s\n", {}},
           {"retry\n", {}},
           {"retry: 99999999999999999999\n", std::chrono::milliseconds(INT64_MAX / 1'000'000)}}) {
    EventDecoder decoder;
    decode_in_steps(decoder, text, 1);
    EXPECT_EQ(decoder.retry(), wait) << text;
  }
}

TEST(EventDecoderTest, LeadingByteOrderMarkIsSkippedOnce) {
  EXPECT_EQ(events_of("\xef\xbb\xbf"
                      "data: a\n\n"),
            "message(a);");
  EXPECT_EQ(events_of("\xef\xbb\xbf\xef\xbb\xbf"
                      "data: a\n\n"),
            "");
  EXPECT_EQ(events_of("\xef\xbb"
                      "data: a\n\n"),
            "");
  EXPECT_EQ(events_of("\xef\n"
                      "data: a\n\n"),
            "message(a);");
  EXPECT_EQ(events_of("data: \xef\xbb\xbf\n\n"), "message(\xef\xbb\xbf);");
}

TEST(EventDecoderTest, LinesAndEventsAreLimited) {
  EXPECT_FALSE(decoded("data: aaaa\n\n", 10).is_broken);
  EXPECT_TRUE(decoded("data: aaaaa\n\n", 10).is_broken);
  EXPECT_TRUE(decoded(":aaaaaaaaaaa", 10).is_broken);
  EXPECT_FALSE(decoded("data:aaaa\ndata:aaaaa\n\n", 10).is_broken);
  EXPECT_TRUE(decoded("data:aaaa\ndata:aaaa\ndata:a\n\n", 10).is_broken);
  EXPECT_EQ(decoded("data:aaaa\n\ndata:aaaa\n\n", 10).events, "message(aaaa);message(aaaa);");
  EventDecoder decoder(4);
  Bytes bytes = bytes_of("data: a");
  EXPECT_EQ(decoder.next(bytes), EventState::broken);
  bytes = bytes_of("\n");
  EXPECT_EQ(decoder.next(bytes), EventState::broken);
}

TEST(EventDecoderTest, ResetKeepsLastId) {
  EventDecoder decoder(20);
  decode_in_steps(decoder, "id: 1\ndata: a\n\nid: 2\ndata: x\rretry: 3", 100);
  decoder.reset();
  EXPECT_EQ(decode_in_steps(decoder,
                            "\xef\xbb\xbf"
                            "data: b\n\n",
                            1)
                .events,
            "message(b)1;");
  Bytes bytes = bytes_of("data: 9012345678901234567890");
  EXPECT_EQ(decoder.next(bytes), EventState::broken);
  decoder.reset();
  EXPECT_EQ(decode_in_steps(decoder, "data: c\n\n", 1).events, "message(c)1;");
}

TEST(EventDecoderTest, WrittenEventsAreParsed) {
  testing::Random random(10);
  constexpr std::string_view kSet = "ab: \n\xc3\xa4";
  for (int i = 0; i < 2000; ++i) {
    std::string data;
    for (std::size_t size = random.below(12); size > 0; --size)
      data += kSet[random.below(kSet.size())];
    const std::string text = event_text({.data = data, .event = "e: f", .id = " 7"});
    ASSERT_EQ(events_of(text), "e: f(" + data + ") 7;") << text;
  }
}

}  // namespace
}  // namespace spate::http
