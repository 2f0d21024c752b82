#include "http/codec/websocket_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/fault.h"
#include "support/websocket_frames.h"

namespace spate::http {
namespace {

using testing::close_text;
using testing::frame;
using testing::FrameForm;
using State = WebSocketReader::State;

constexpr std::size_t kRoom = 1024;

std::string name_of(const WebSocketReader& reader, State state) {
  const std::string payload(text_of(reader.payload()));
  const std::string code = std::to_string(static_cast<int>(reader.code()));
  switch (state) {
    case State::message:
      return (reader.kind() == MessageKind::text ? "text " : "binary ") + payload +
             (reader.is_last() ? "" : "...");
    case State::ping:
      return "ping " + payload;
    case State::pong:
      return "pong " + payload;
    case State::close:
      return "close " + code + " " + payload;
    default:
      return "broken " + code;
  }
}

// Reads bytes in pieces whose sizes are taken in turn from a list, and records the results.
class Reading {
 public:
  explicit Reading(WebSocketRules rules) : rules_(rules) {}

  std::vector<std::string> read(std::string_view text, const std::vector<std::size_t>& sizes) {
    std::string left;
    std::size_t turn = 0;
    while (!text.empty() && !is_over_) {
      const std::size_t size = std::min(text.size(), sizes[turn++ % sizes.size()]);
      left.append(text.substr(0, size));
      text.remove_prefix(size);
      left = take(left);
      EXPECT_LT(left.size(), kMostFrameHead + kMostControl);
    }
    return log_;
  }
  bool is_at_rest() const { return reader_.is_at_rest(); }

 private:
  std::string take(const std::string& text) {
    // With exact bounds, for AddressSanitizer.
    const std::unique_ptr<std::byte[]> copy(new std::byte[text.size() + 1]);
    std::ranges::copy(bytes_of(text), copy.get());
    Bytes bytes(copy.get(), text.size());
    std::byte area[kRoom];
    for (;;) {
      const State state = reader_.next(bytes, rules_, {area, inflater_});
      if (state == State::unfinished) return std::string(text_of(bytes));
      log_.push_back(name_of(reader_, state));
      if (state == State::close || state == State::broken) return is_over_ = true, "";
    }
  }

  WebSocketRules rules_;
  WebSocketReader reader_;
  MessageInflater inflater_;
  std::vector<std::string> log_;
  bool is_over_ = false;
};

constexpr WebSocketRules kServer = {.max_message = 100'000};
constexpr WebSocketRules kClient = {.role = WebSocketRole::client, .max_message = 100'000};

std::vector<std::string> read(std::string_view text, WebSocketRules rules = kServer) {
  const auto log = Reading(rules).read(text, {text.size()});
  EXPECT_EQ(Reading(rules).read(text, {text.size() < 5'000 ? 1 : text.size() / 5'000}), log);
  EXPECT_EQ(Reading(rules).read(text, {3, 1, 7 + text.size() / 1'000}), log);
  return log;
}
std::string last_of(std::string_view text, WebSocketRules rules = kServer) {
  const auto log = read(text, rules);
  return log.empty() ? "nothing" : log.back();
}

// ---- valid frames

TEST(WebSocketReader, ReadsMessagesOfEveryLengthEncoding) {
  for (const std::size_t size : {0, 1, 125, 126, 127, 1023, 1024, 1025, 65535, 65536, 99'999}) {
    const std::string payload(size, 'x');
    EXPECT_EQ(last_of(frame({.first = 0x82}, payload)), "binary " + payload);
    EXPECT_EQ(last_of(frame({.first = 0x81, .is_masked = false}, payload), kClient),
              "text " + payload);
  }
}

TEST(WebSocketReader, JoinsFragmentsWithControlFramesInBetween) {
  const std::string text = frame({.first = 0x01}, "Hel") + frame({.first = 0x89}, "p") +
                           frame({.first = 0x00}, "") + frame({.first = 0x8a}, "q") +
                           frame({.first = 0x80}, "lo") + frame({}, "");
  EXPECT_EQ(read(text), (std::vector<std::string>{"ping p", "pong q", "text Hello", "text "}));
}

TEST(WebSocketReader, AllowsCharacterSplitAcrossFragments) {
  const std::string euro = "\xe2\x82\xac";
  EXPECT_EQ(
      last_of(frame({.first = 0x01}, euro.substr(0, 1)) +
              frame({.first = 0x00}, euro.substr(1, 1)) + frame({.first = 0x80}, euro.substr(2))),
      "text " + euro);
}

TEST(WebSocketReader, ReportsPartsOnArrival) {
  const WebSocketRules rules = {.view = MessageView::parts, .max_message = 10};
  const std::string text = frame({.first = 0x02}, "abcdefgh") + frame({.first = 0x80}, "ijklmnop");
  EXPECT_EQ(Reading(rules).read(text, {text.size()}),
            (std::vector<std::string>{"binary abcdefgh...", "binary ijklmnop"}));
  EXPECT_EQ(Reading(rules).read(text, {10}),
            (std::vector<std::string>{"binary abcd...", "binary efgh...", "binary ijklmnop"}));
}

TEST(WebSocketReader, ReportsNoEmptyPartExceptLast) {
  const WebSocketRules rules = {.view = MessageView::parts, .max_message = 10};
  EXPECT_EQ(Reading(rules).read(frame({.first = 0x02}, "") + frame({.first = 0x00}, "a") +
                                    frame({.first = 0x80}, ""),
                                {100}),
            (std::vector<std::string>{"binary a...", "binary "}));
}

TEST(WebSocketReader, IsIdleOnlyBetweenMessages) {
  Reading reading(kServer);
  EXPECT_TRUE(reading.is_at_rest());
  reading.read(frame({.first = 0x01}, "a"), {100});
  EXPECT_FALSE(reading.is_at_rest());
  reading.read(frame({.first = 0x80}, "b"), {100});
  EXPECT_TRUE(reading.is_at_rest());
}

TEST(WebSocketReader, ParsesCloseCodesAndReasons) {
  EXPECT_EQ(last_of(frame({.first = 0x88}, "")), "close 1005 ");
  EXPECT_EQ(last_of(frame({.first = 0x88}, close_text(1000, "bye"))), "close 1000 bye");
  EXPECT_EQ(last_of(frame({.first = 0x88}, close_text(4999, std::string(123, 'x')))),
            "close 4999 " + std::string(123, 'x'));
}

// ---- errors

TEST(WebSocketReader, AcceptsOnlySendableCloseCodes) {
  for (int code = 0; code < 65536; code += code < 5'100 ? 1 : 97) {
    const bool is_good = (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) ||
                         (code >= 3000 && code <= 4999);
    const std::string expected = is_good ? "close " + std::to_string(code) + " " : "broken 1002";
    const auto log = Reading(kServer).read(frame({.first = 0x88}, close_text(code)), {100});
    ASSERT_EQ(log.back(), expected) << code;
  }
}

struct Case {
  const char* name;
  std::string bytes;
  std::string result;
};

TEST(WebSocketReader, FailsOnFramesThatStandardForbids) {
  std::vector<Case> cases;
  const auto add = [&](const char* name, std::string bytes) {
    cases.push_back({name, std::move(bytes), "broken 1002"});
  };
  for (const int bits : {0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70}) {
    for (const int opcode : {0x81, 0x82, 0x88, 0x89, 0x8a})
      add("reserved bits", frame({.first = opcode | bits}, "a"));
    add("reserved bits in a continuation",
        frame({.first = 0x01}, "a") + frame({.first = 0x80 | bits}, "b"));
  }
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    add("a reserved opcode", frame({.first = 0x80 | opcode}, ""));
    add("a reserved opcode in a message",
        frame({.first = 0x01}, "a") + frame({.first = opcode}, "b"));
  }
  for (const int opcode : {8, 9, 10}) {
    add("a fragmented control frame", frame({.first = opcode}, ""));
    add("a long control frame", frame({.first = 0x80 | opcode}, std::string(126, 'a')));
    add("a longer one", frame({.first = 0x80 | opcode}, std::string(65536, 'a')));
    add("a control frame in two size bytes", frame({.first = 0x80 | opcode, .size_bytes = 2}, "a"));
  }
  add("a continuation of nothing", frame({.first = 0x80}, "a"));
  add("a part of nothing", frame({.first = 0x00}, "a"));
  add("a continuation behind a message", frame({}, "a") + frame({.first = 0x80}, "b"));
  add("a message within one", frame({.first = 0x01}, "a") + frame({.first = 0x81}, "b"));
  add("the beginning of one within one", frame({.first = 0x01}, "a") + frame({.first = 0x02}, "b"));
  add("no mask", frame({.is_masked = false}, "a"));
  add("a control frame without a mask", frame({.first = 0x89, .is_masked = false}, ""));
  add("a size in two bytes for one", frame({.size_bytes = 2}, std::string(125, 'a')));
  add("a size in eight bytes for two", frame({.size_bytes = 8}, std::string(126, 'a')));
  add("the largest of those", frame({.size_bytes = 8}, std::string(65535, 'a')));
  add("a size of 2^63", frame({.size_bytes = 8, .said_size = INT64_MIN}, ""));
  add("a close of a byte", frame({.first = 0x88}, "\x03"));
  add("a compressed message that was not agreed on", frame({.first = 0xc1}, "a"));
  for (const Case& each : cases) EXPECT_EQ(last_of(each.bytes), each.result) << each.name;
  EXPECT_EQ(last_of(frame({}, "a"), kClient), "broken 1002") << "a server that masks";
}

TEST(WebSocketReader, FailsOnBadTextAndLongMessages) {
  const Case cases[] = {
      {"a reason that is no text", frame({.first = 0x88}, close_text(1000, "\xff")), "broken 1007"},
      {"half a character at the end of a reason", frame({.first = 0x88}, close_text(1000, "\xc3")),
       "broken 1007"},
      {"half a character at the end of a text", frame({}, "a\xe2\x82"), "broken 1007"},
      {"the same in fragments", frame({.first = 1}, "a\xe2") + frame({.first = 0x80}, "\x82"),
       "broken 1007"},
      {"one byte too many", frame({}, std::string(100'001, 'a')), "broken 1009"},
      {"a message that is said to be endless", frame({.size_bytes = 8, .said_size = INT64_MAX}, ""),
       "broken 1009"},
      {"fragments that are too long together",
       frame({.first = 0x01}, std::string(60'000, 'a')) +
           frame({.first = 0x80}, std::string(40'001, 'a')),
       "broken 1009"},
  };
  for (const Case& each : cases) EXPECT_EQ(last_of(each.bytes), each.result) << each.name;
}

TEST(WebSocketReader, DetectsInvalidUtf8AtEveryPositionOnArrival) {
  for (std::size_t at = 0; at < 40; ++at) {
    std::string text(40, 'a');
    text[at] = '\xff';
    ASSERT_EQ(last_of(frame({}, text)), "broken 1007") << at;
    ASSERT_EQ(last_of(frame({.first = 0x01}, text.substr(0, at + 1))), "broken 1007") << at;
    ASSERT_EQ(last_of(frame({.first = 0x82}, text)), "binary " + text) << at;
  }
  // Before the rest of the long frame arrives.
  const std::string beginning = frame({.size_bytes = 2, .said_size = 50'000}, "abc\xff");
  EXPECT_EQ(last_of(beginning), "broken 1007");
}

TEST(WebSocketReader, RemainsFailed) {
  WebSocketReader reader;
  MessageInflater inflater;
  std::byte area[kRoom];
  for (const std::string& text : {frame({.first = 0x83}, ""), frame({}, "good")}) {
    Bytes bytes = bytes_of(text);
    EXPECT_EQ(reader.next(bytes, kServer, {area, inflater}), State::broken);
    EXPECT_EQ(reader.code(), CloseCode::protocol_error);
  }
}

TEST(WebSocketReader, ReportsThatMemoryRanOut) {
  WebSocketReader reader;
  MessageInflater inflater;
  std::byte area[kRoom];
  const std::string text = frame({.first = 0x01}, "abc");
  Bytes bytes = bytes_of(text);
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
  const FaultScope scope(plan);
  EXPECT_EQ(reader.next(bytes, kServer, {area, inflater}), State::broken);
  EXPECT_EQ(reader.code(), CloseCode::internal_error);
}

// ---- compression

constexpr WebSocketRules kDeflating = {.takes_compressed = true, .max_message = 100'000};

std::string deflated(std::string_view text) {
  MessageDeflater deflater;
  return std::string(text_of(deflater.compress(bytes_of(text))));
}

TEST(WebSocketReader, DecompressesWholeAndFragmentedMessages) {
  for (const std::size_t size : {100, 5'000, 100'000}) {
    const std::string message(size, 'z');
    const std::string bytes = deflated(message);
    ASSERT_FALSE(bytes.empty());
    EXPECT_EQ(last_of(frame({.first = 0xc1}, bytes), kDeflating), "text " + message);
    EXPECT_EQ(last_of(frame({.first = 0x42}, bytes.substr(0, 5)) +
                          frame({.first = 0x80}, bytes.substr(5)),
                      kDeflating),
              "binary " + message);
  }
  EXPECT_EQ(last_of(frame({.first = 0xc2}, std::string("\0", 1)), kDeflating), "binary ");
}

TEST(WebSocketReader, AcceptsAlternatingCompressedAndPlainMessages) {
  const std::string message(300, 'z');
  EXPECT_EQ(read(frame({.first = 0xc1}, deflated(message)) + frame({}, "plain") +
                     frame({.first = 0xc1}, deflated(message)),
                 kDeflating),
            (std::vector<std::string>{"text " + message, "text plain", "text " + message}));
}

TEST(WebSocketReader, StopsAtLimitDuringDecompression) {
  const std::string bomb = deflated(std::string(100'001, 'z'));
  EXPECT_LT(bomb.size(), 500u);
  EXPECT_EQ(last_of(frame({.first = 0xc1}, bomb), kDeflating), "broken 1009");
  EXPECT_EQ(last_of(frame({.first = 0xc2}, deflated(std::string(5'000'000, 'z'))), kDeflating),
            "broken 1009");
  const WebSocketRules in_parts = {
      .view = MessageView::parts, .takes_compressed = true, .max_message = 100'000};
  EXPECT_EQ(last_of(frame({.first = 0xc2}, bomb), in_parts), "broken 1009");
}

TEST(WebSocketReader, FailsOnDataThatCannotBeDecompressed) {
  EXPECT_EQ(last_of(frame({.first = 0xc2}, "\xff\xff\xff"), kDeflating), "broken 1002");
  EXPECT_EQ(last_of(frame({.first = 0x42}, "\x02") + frame({.first = 0xc0}, ""), kDeflating),
            "broken 1002");
  EXPECT_EQ(last_of(frame({.first = 0xc9}, ""), kDeflating), "broken 1002");
}

TEST(WebSocketReader, ChecksThatDecompressedTextIsUtf8) {
  const std::string bad = std::string(200, 'a') + "\xff" + std::string(200, 'a');
  EXPECT_EQ(last_of(frame({.first = 0xc1}, deflated(bad)), kDeflating), "broken 1007");
  EXPECT_EQ(last_of(frame({.first = 0xc2}, deflated(bad)), kDeflating), "binary " + bad);
}

TEST(MessageCoding, DoesNotCompressMessagesThatWouldNotShrink) {
  MessageDeflater deflater;
  EXPECT_TRUE(deflater.compress(bytes_of("abc")).empty());
  EXPECT_TRUE(deflater.compress({}).empty());
}

// The message can be read with the window that was negotiated.
TEST(MessageCoding, KeepsDistancesWithinWindow) {
  std::string message;
  std::mt19937 random(1);
  for (int i = 0; i < 700; ++i) message += static_cast<char>('a' + random() % 26);
  message += message + message;  // Distances of 700.
  for (int window = kSmallestWindow; window <= kLargestWindow; ++window) {
    MessageDeflater deflater;
    std::string bytes(text_of(deflater.compress(bytes_of(message), window)));
    ASSERT_FALSE(bytes.empty()) << window;
    bytes.append("\0\0\xff\xff", 4);
    z_stream reader{};
    ASSERT_EQ(inflateInit2(&reader, -window), Z_OK);
    reader.next_in = reinterpret_cast<Bytef*>(bytes.data());
    reader.avail_in = static_cast<uInt>(bytes.size());
    // In pieces, because zlib also copies from the current piece of its output, whatever the
    // window.
    std::string out;
    int result = Z_OK;
    while (result == Z_OK && out.size() < message.size()) {
      char piece[50];
      reader.next_out = reinterpret_cast<Bytef*>(piece);
      reader.avail_out = sizeof(piece);
      result = inflate(&reader, Z_SYNC_FLUSH);
      out.append(piece, sizeof(piece) - reader.avail_out);
    }
    EXPECT_EQ(result, Z_OK) << window;
    EXPECT_EQ(out, message) << window;
    inflateEnd(&reader);
  }
}

// The open block would take the appended tail as its data.
TEST(MessageCoding, RefusesMessageTruncatedInsideBlock) {
  const std::string stored("\x00\x09\x00\xf6\xff" "abcdefghi" "\x00", 15);
  MessageInflater inflater;
  const Result<Bytes> whole = inflater.decompress(bytes_of(stored), 100);
  ASSERT_TRUE(whole);
  EXPECT_EQ(text_of(*whole), "abcdefghi");
  for (std::size_t size = 1; size < stored.size() - 1; ++size) {
    const Result<Bytes> cut = inflater.decompress(bytes_of(stored).first(size), 100);
    if (size == 1) {
      EXPECT_TRUE(cut && cut->empty());  // This is how an empty message begins.
    } else {
      EXPECT_FALSE(cut) << size << ": " << text_of(*cut);
    }
  }
  const std::string packed = deflated(std::string(300, 'z') + "abcdef");
  for (std::size_t size = 1; size < packed.size() - 1; ++size)
    EXPECT_FALSE(inflater.decompress(bytes_of(packed).first(size), 1000)) << size;
}

TEST(MessageCoding, AcceptsMessageThatEndsWithFinalBlock) {
  const std::string final("\x01\x03\x00\xfc\xff" "abc", 8);
  MessageInflater inflater;
  for (const std::string& bytes : {final, final + std::string("\0", 1)}) {
    const Result<Bytes> message = inflater.decompress(bytes_of(bytes), 3);
    ASSERT_TRUE(message) << bytes.size();
    EXPECT_EQ(text_of(*message), "abc");
  }
}

TEST(MessageCoding, FailsCleanlyWhenMemoryRunsOut) {
  const std::string message(5000, 'z');
  const std::string bytes = deflated(message);
  for (std::uint64_t nth = 1; nth < 12; ++nth) {
    MessageDeflater deflater;
    MessageInflater inflater;
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope(plan);
    const std::string made(text_of(deflater.compress(bytes_of(message))));
    EXPECT_TRUE(made.empty() || made == bytes);
    const Result<Bytes> back = inflater.decompress(bytes_of(bytes), 5000);
    if (back) {
      EXPECT_EQ(text_of(*back), message);
    } else {
      EXPECT_EQ(back.error(), std::errc::not_enough_memory);
    }
    EXPECT_EQ(made.empty() || !back, plan.failures(SystemCall::allocate) == 1);
  }
}

// ---- random messages, in random frames, read in random pieces

std::string random_text(std::mt19937& random, std::size_t most) {
  constexpr std::string_view kCharacters[] = {"a", "\u00e9", "\u4e2d", "\U0001f600"};
  std::string text;
  for (std::size_t left = random() % (most + 1); left > 0; --left)
    text += kCharacters[random() % 16 == 0 ? random() % 4 : 0];
  return text;
}

TEST(WebSocketReader, ReadsRandomMessagesInRandomFramesAndSplits) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const bool is_server = random() % 2 == 0;
    std::string bytes;
    std::vector<std::string> expected;
    for (int i = 0; i < 6; ++i) {
      const bool is_text = random() % 2 == 0;
      const std::string message = random_text(random, random() % 4 == 0 ? 3000 : 40);
      expected.push_back((is_text ? "text " : "binary ") + message);
      std::string left = message;
      for (bool is_first = true;; is_first = false) {
        const bool is_last = random() % 3 == 0;
        const std::size_t size = is_last ? left.size() : random() % (left.size() + 1);
        const int opcode = is_first ? (is_text ? 1 : 2) : 0;
        bytes += frame({.first = opcode | (is_last ? 0x80 : 0), .is_masked = is_server},
                       left.substr(0, size));
        left.erase(0, size);
        if (is_last) break;
        if (random() % 4 != 0) continue;
        expected.insert(expected.end() - 1, "ping " + std::to_string(i));
        bytes += frame({.first = 0x89, .is_masked = is_server}, std::to_string(i));
      }
    }
    std::vector<std::size_t> sizes(1 + random() % 5);
    for (std::size_t& size : sizes) size = 1 + random() % (random() % 4 == 0 ? 2000 : 30);
    ASSERT_EQ(Reading(is_server ? kServer : kClient).read(bytes, sizes), expected) << seed;
  }
}

TEST(WebSocketFrame, RoundTrips) {
  for (const std::uint64_t size : {0ul, 1ul, 125ul, 126ul, 65535ul, 65536ul, 1ul << 40}) {
    for (const bool is_masked : {false, true}) {
      const FrameHead head = {.opcode = Opcode::binary,
                              .is_last = size % 2 == 0,
                              .is_compressed = is_masked,
                              .is_masked = is_masked,
                              .mask = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}},
                              .size = size};
      std::byte bytes[kMostFrameHead];
      const std::size_t written = write_frame_head(head, bytes);
      FrameHead read;
      for (std::size_t some = 0; some < written; ++some)
        ASSERT_EQ(read_frame_head(Bytes(bytes, some), read), FrameState::unfinished);
      ASSERT_EQ(read_frame_head(Bytes(bytes, written), read), FrameState::whole);
      EXPECT_EQ(read.head_size, written);
      EXPECT_EQ(read.opcode, head.opcode);
      EXPECT_EQ(read.is_last, head.is_last);
      EXPECT_EQ(read.is_compressed, head.is_compressed);
      EXPECT_EQ(read.is_masked, is_masked);
      EXPECT_EQ(read.size, size);
      EXPECT_TRUE(!is_masked || read.mask == head.mask);
    }
  }
}

TEST(Mask, DependsOnPositionInFrame) {
  const Mask mask = {std::byte{0x11}, std::byte{0x22}, std::byte{0x33}, std::byte{0x44}};
  std::vector<std::byte> bytes(100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    for (std::size_t at = 0; at <= size; ++at) {
      std::vector<std::byte> made(size);
      apply_mask(mask, Bytes(bytes).first(at), made.data());
      apply_mask(mask_behind(mask, at), Bytes(bytes).first(size).subspan(at), made.data() + at);
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(made[i], bytes[i] ^ mask[i % 4]);
    }
  }
}

}  // namespace
}  // namespace spate::http
