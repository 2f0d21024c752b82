// Untrusted messages: every limit, and malformed bytes.
#include "compat/libevent/dns/message.h"

#include <event2/dns.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "compat/libevent/dns/answer.h"

namespace spate::dropin {
namespace {

using namespace spate::libevent::dns;

using Bytes = std::vector<std::uint8_t>;

Bytes operator+(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Bytes label(std::size_t size) {
  Bytes bytes(size + 1, 'a');
  bytes[0] = static_cast<std::uint8_t>(size);
  return bytes;
}

// Returns the name at `where`; "?" if it cannot be read.
std::string name_of(const Bytes& message, std::size_t where = 0) {
  Bytes in_front(message.begin() + static_cast<std::ptrdiff_t>(where), message.end());
  Reader reader(in_front);
  NameText text;
  return reader.name(text) ? text : "?";
}

// A name after a header, where pointers can point to earlier bytes.
std::string name_behind(const Bytes& before, const Bytes& name) {
  const Bytes record = name + Bytes{0, 1, 0, 1, 0, 0, 0, 0, 0, 0};
  const Bytes all = before + record;
  Reader reader(all);
  NameText text;
  for (std::size_t i = 0; i < before.size(); i += 2) {
    std::uint16_t skipped;
    if (!reader.number16(skipped)) return "?";
  }
  return reader.name(text) ? text : "?";
}

TEST(DnsReader, AcceptsLabelsUpTo63Bytes) {
  EXPECT_EQ(name_of(label(63) + Bytes{0}), std::string(63, 'a'));
  EXPECT_EQ(name_of(label(64) + Bytes{0}), "?");
  EXPECT_EQ(name_of(Bytes(80, 0x80)), "?");
}

TEST(DnsReader, AcceptsNamesUpTo255Bytes) {
  const Bytes most = label(63) + label(63) + label(63);
  EXPECT_EQ(name_of(most + label(61) + Bytes{0}).size(), kNameMost);
  EXPECT_EQ(name_of(most + label(62) + Bytes{0}), "?");
}

TEST(DnsReader, RefusesTruncatedNames) {
  const Bytes name{3, 'a', 'b', 'c', 1, 'd', 0};
  EXPECT_EQ(name_of(name), "abc.d");
  for (std::size_t size = 0; size < name.size(); ++size) {
    EXPECT_EQ(name_of(Bytes(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(size))), "?");
  }
}

TEST(DnsReader, RefusesDotsAndZerosWithinLabels) {
  EXPECT_EQ(name_of({3, 'a', '.', 'b', 0}), "?");
  EXPECT_EQ(name_of({3, 'a', '\0', 'b', 0}), "?");
}

TEST(DnsReader, FollowsBackwardPointers) {
  const Bytes before{3, 'a', 'b', 'c', 0, 0, 1, 'd', 0xc0, 0};
  EXPECT_EQ(name_behind(before, {0xc0, 0}), "abc");
  EXPECT_EQ(name_behind(before, {1, 'x', 0xc0, 6}), "x.d.abc");
}

TEST(DnsReader, RefusesPointersToThemselvesOrForward) {
  const Bytes before{3, 'a', 'b', 'c', 0, 0};
  EXPECT_EQ(name_behind(before, {0xc0, 6}), "?");
  EXPECT_EQ(name_behind(before, {1, 'x', 0xc0, 6}), "?");
  EXPECT_EQ(name_behind(before, {0xc0, 8, 1, 'a', 0}), "?");
  EXPECT_EQ(name_behind(before, {0xff, 0xff}), "?");
  EXPECT_EQ(name_of({0xc0}), "?");
}

TEST(DnsReader, TerminatesOnPointerCycles) {
  EXPECT_EQ(name_behind({0xc0, 2, 0xc0, 0}, {0xc0, 2}), "?");
}

TEST(DnsReader, RefusesNamesThatPointersMakeTooLong) {
  Bytes before = label(61) + Bytes{0xc0, 0};  // A pointer to itself: an endless loop.
  for (std::size_t i = 0; i < 6; ++i) {
    const auto last = static_cast<std::uint8_t>(i * 64);
    before = before + label(61) + Bytes{static_cast<std::uint8_t>(0xc0 | i * 64 >> 8), last};
  }
  const std::size_t last = before.size() - 64;
  EXPECT_EQ(name_behind(before, {static_cast<std::uint8_t>(0xc0 | last >> 8),
                                 static_cast<std::uint8_t>(last)}),
            "?");
}

TEST(DnsReader, RefusesRecordsBeyondEndOfMessage) {
  const Bytes record{0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 2, 'x', 'y'};
  Record read;
  ASSERT_TRUE(Reader(record).record(read));
  EXPECT_EQ(read.size, 2U);
  EXPECT_EQ(read.ttl, 9U);
  for (std::size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(Reader(std::span(record).first(size)).record(read));
  }
}

TEST(DnsWriter, RefusesInvalidNames) {
  std::uint8_t room[600];
  Writer writer(room);
  EXPECT_FALSE(writer.name("a..b"));
  EXPECT_FALSE(writer.name(".a"));
  EXPECT_FALSE(writer.name(".."));
  EXPECT_FALSE(writer.name(std::string(64, 'a')));
  EXPECT_FALSE(writer.name(std::string(63, 'a') + "." + std::string(63, 'a') + "." +
                           std::string(63, 'a') + "." + std::string(62, 'a')));
  EXPECT_EQ(writer.size(), 0U);
  EXPECT_TRUE(writer.name("."));
  EXPECT_TRUE(writer.name("a."));
  EXPECT_TRUE(writer.name(std::string(63, 'b')));
}

TEST(DnsWriter, WritesNothingIfDataDoesNotFit) {
  const std::uint8_t data[] = {1, 2, 3, 4};
  for (std::size_t size = 0; size < 60; ++size) {
    Bytes room(size);
    Writer writer(room);
    if (!writer.record("www.example.com", 1, 1, 60, data)) {
      EXPECT_EQ(writer.size(), 0U);
    } else if (!writer.name_record("example.com", 5, 1, 60, "mail.example.com")) {
      EXPECT_EQ(writer.size(), 31U);
    } else {
      EXPECT_EQ(writer.size(), 31U + 2 + 10 + 7);
    }
  }
}

TEST(DnsWriter, WritesNamesThatRoundTrip) {
  const std::string names[] = {"www.example.com", "mail.example.com",   "com",
                               "Example.com",     "x.mail.example.com", "www.example.com"};
  Bytes room(500);
  Writer writer(room);
  for (const std::string& name : names) ASSERT_TRUE(writer.name_record(name, 5, 1, 7, name));
  room.resize(writer.size());
  Reader reader(room);
  for (const std::string& name : names) {
    Reader owner = reader;
    Record record;
    NameText text;
    ASSERT_TRUE(owner.name(text) && reader.record(record));
    EXPECT_EQ(text, name);
    ASSERT_TRUE(reader.reader_of(record).name(text));
    EXPECT_EQ(text, name);
  }
}

// ---- answers

constexpr Header kAnswerHeader{
    .id = 7, .flags = kIsResponse, .questions = 1, .answers = 1, .authorities = 0, .additional = 0};

Bytes query_for(std::string_view name, std::uint16_t type) {
  Bytes room(300);
  Writer writer(room);
  writer.header(
      {.id = 7, .flags = 0, .questions = 1, .answers = 0, .authorities = 0, .additional = 0});
  EXPECT_TRUE(writer.question(name, type, 1));
  room.resize(writer.size());
  return room;
}

Bytes answer_for(std::string_view name, std::uint16_t type, std::uint16_t dns_class,
                 const Header& header = kAnswerHeader) {
  const std::uint8_t address[] = {192, 0, 2, 1};
  Bytes room(300);
  Writer writer(room);
  writer.header(header);
  if (header.questions > 0) {
    EXPECT_TRUE(writer.question(name, type, dns_class));
  }
  if (header.answers > 0) {
    EXPECT_TRUE(writer.record(name, 1, 1, 60, address));
  }
  room.resize(writer.size());
  return room;
}

int error_of(const Bytes& message) {
  Answer answer;
  read_answer(message, query_for("www.Example.com", 1), answer);
  return answer.error;
}

TEST(DnsResponse, MatchesOnlyItsOwnQuestion) {
  EXPECT_EQ(error_of(answer_for("www.Example.com", 1, 1)), DNS_ERR_NONE);
  EXPECT_EQ(error_of(answer_for("www.example.com", 1, 1)), DNS_ERR_NONE);  // RFC 4343.
  EXPECT_EQ(error_of(answer_for("ww.Example.com", 1, 1)), DNS_ERR_UNKNOWN);
  EXPECT_EQ(error_of(answer_for("www.Example.com", 28, 1)), DNS_ERR_UNKNOWN);
  EXPECT_EQ(error_of(answer_for("www.Example.com", 1, 3)), DNS_ERR_UNKNOWN);
}

TEST(DnsResponse, MayLackQuestionOnlyInServerError) {
  Header header = kAnswerHeader;
  header.questions = header.answers = 0;
  const int codes[] = {DNS_ERR_UNKNOWN, DNS_ERR_FORMAT,  DNS_ERR_SERVERFAILED,
                       DNS_ERR_UNKNOWN, DNS_ERR_NOTIMPL, DNS_ERR_REFUSED};
  for (unsigned code = 0; code < 6; ++code) {
    header.flags = static_cast<std::uint16_t>(kIsResponse | code);
    EXPECT_EQ(error_of(answer_for("", 1, 1, header)), codes[code]);
  }
  header.flags = kIsResponse | 3;
  header.questions = 1;
  EXPECT_EQ(error_of(answer_for("other.example", 1, 1, header)), DNS_ERR_UNKNOWN);
  EXPECT_EQ(error_of(answer_for("www.Example.com", 1, 1, header)), DNS_ERR_NOTEXIST);
}

TEST(DnsResponse, IsParsedOrRefusedForRandomBytes) {
  std::mt19937 random(1);
  const Bytes good = answer_for("www.Example.com", 1, 1);
  const std::uint16_t types[] = {1, 28, 12};
  int taken = 0;
  for (int i = 0; i < 60'000; ++i) {
    Bytes message = good;
    message.resize(message.size() + random() % 40);
    for (auto changes = random() % 6; changes > 0; --changes) {
      static constexpr std::uint8_t kOdd[] = {0, 1, 5, 6, 12, 28, 63, 64, 0xc0, 0xff};
      message[random() % message.size()] =
          random() % 2 != 0 ? kOdd[random() % 10] : static_cast<std::uint8_t>(random());
    }
    message.resize(random() % 4 == 0 ? random() % message.size() : message.size());
    Answer answer;
    read_answer(message, query_for("www.Example.com", types[random() % 3]), answer);
    EXPECT_LE(answer.count, kAddressesMost);
    if (answer.error == DNS_ERR_NONE) ++taken;
  }
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace spate::dropin
