#include "http/codec/head_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "http/codec/framing.h"
#include "http/codec/head.h"

namespace spate::http {
namespace {

// Returns the text that `write` writes into a buffer of the size it needs; empty if refused.
std::string written(auto&& write) {
  HeadWriter counting({});
  write(counting);
  std::string room(counting.size(), '!');
  HeadWriter writer(room);
  write(writer);
  EXPECT_EQ(writer.size(), counting.size());
  EXPECT_EQ(writer.is_refused(), counting.is_refused());
  return writer.is_whole() ? std::string(writer.text()) : std::string();
}

TEST(HeadWriter, WritesResponse) {
  Fields fields;
  ASSERT_TRUE(fields.add("Content-Type", "text/plain"));
  const std::string text = written([&](HeadWriter& writer) {
    writer.status_line(Status::ok);
    writer.prepared("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    writer.framing(frame_outgoing({.keeps_alive = false}, Status::ok, 13));
    writer.field(FieldId::server, "spate");
    writer.fields(fields);
    writer.end();
  });
  EXPECT_EQ(text,
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 13\r\n"
            "Connection: close\r\nServer: spate\r\nContent-Type: text/plain\r\n\r\n");
}

TEST(HeadWriter, WritesAnyStatus) {
  for (int code = 100; code <= 999; ++code) {
    const auto status = static_cast<Status>(code);
    const std::string reason(reason_of(status));
    EXPECT_EQ(written([&](HeadWriter& writer) { writer.status_line(status); }),
              "HTTP/1.1 " + std::to_string(code) + " " + reason + "\r\n");
  }
}

TEST(HeadWriter, WritesFramingFields) {
  const auto framing = [](const Outgoing& outgoing, std::string_view protocol = {}) {
    return written([&](HeadWriter& writer) { writer.framing(outgoing, protocol); });
  };
  EXPECT_EQ(framing({}), "");
  EXPECT_EQ(framing({.announced = Announced::chunked}), "Transfer-Encoding: chunked\r\n");
  EXPECT_EQ(framing({.announced = Announced::length, .length = UINT64_MAX}),
            "Content-Length: 18446744073709551615\r\n");
  EXPECT_EQ(framing({.announced = Announced::length}), "Content-Length: 0\r\n");
  EXPECT_EQ(framing({.connection = ConnectionOption::keep_alive}), "Connection: keep-alive\r\n");
  EXPECT_EQ(framing({.connection = ConnectionOption::upgrade}, "websocket"),
            "Connection: upgrade\r\nUpgrade: websocket\r\n");
  EXPECT_EQ(framing({.connection = ConnectionOption::upgrade}, "a\r\nb: c"), "");
}

TEST(HeadWriter, RefusesTextThatWouldParseDifferently) {
  const auto field = [](FieldName name, std::string_view value) {
    return written([&](HeadWriter& writer) { writer.field(name, value); });
  };
  EXPECT_EQ(field("a", "b"), "a: b\r\n");
  for (const std::string_view value :
       {std::string_view("a\r"), std::string_view("\nb"), std::string_view("a\0b", 3),
        std::string_view("\x7f"), std::string_view("a long one, then CR LF here: \r\nb")})
    EXPECT_EQ(field("a", value), "") << value;
  for (const char* name : {"", "a b", "a:", "a\r\nb", "\xc3\xa4"}) EXPECT_EQ(field(name, "b"), "");
  const auto line = [](std::string_view method, std::string_view target) {
    return written([&](HeadWriter& writer) { writer.request_line(method, target); });
  };
  EXPECT_EQ(line("GET", "/a"), "GET /a HTTP/1.1\r\n");
  for (const char* target : {"", "/a b", "/a\r\n", "/\n", "/\x7f", "/\xc3\xa4"})
    EXPECT_EQ(line("GET", target), "") << target;
  for (const char* method : {"", "G T", "GET\r\n", "G:"}) EXPECT_EQ(line(method, "/"), "");
}

TEST(HeadWriter, RefusesFramingFieldsFromApplication) {
  for (const char* name : {"Connection", "content-length", "Keep-Alive", "TE", "Transfer-Encoding",
                           "Upgrade", "Proxy-Connection"}) {
    Fields fields;
    ASSERT_TRUE(fields.add("A", "b") && fields.add(name, "5"));
    EXPECT_EQ(written([&](HeadWriter& writer) { writer.fields(fields); }), "") << name;
  }
}

TEST(HeadWriter, WritesNothingBeyondItsBuffer) {
  Fields fields;
  ASSERT_TRUE(fields.add("A", "b"));
  const auto write = [&](HeadWriter& writer) {
    writer.status_line(Status::not_found);
    writer.framing({.announced = Announced::length, .length = 10});
    writer.fields(fields);
    writer.end();
  };
  const std::string whole = written(write);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    std::string room(whole.size() + 8, '!');
    HeadWriter writer(std::span(room.data(), size));
    write(writer);
    EXPECT_EQ(writer.size(), whole.size());
    EXPECT_EQ(writer.is_whole(), size == whole.size());
    EXPECT_FALSE(writer.is_refused());
    EXPECT_EQ(room.substr(size), std::string(room.size() - size, '!')) << size;
  }
}

class RandomHead {
 public:
  explicit RandomHead(unsigned seed) : random_(seed) {}

  std::string token(std::size_t most) { return text("!#$%&'*+-.^_`|~0189azAZqQ", 1 + below(most)); }
  std::string target() {
    std::string all;
    for (char c = '!'; c <= '~'; ++c) all += c;
    return text(all, 1 + below(60));
  }
  std::string value() {
    std::string all = "\t ";
    for (int c = '!'; c < 256; ++c)
      if (c != 0x7f) all += static_cast<char>(c);
    std::string made = text(all, below(40));
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!made.empty() && is_blank(made.back())) made.pop_back();
    made.erase(0, made.find_first_not_of(" \t") == std::string::npos
                      ? made.size()
                      : made.find_first_not_of(" \t"));
    return made;
  }
  std::size_t below(std::size_t bound) { return random_() % bound; }

 private:
  std::string text(const std::string& letters, std::size_t size) {
    std::string made;
    for (std::size_t i = 0; i < size; ++i) made += letters[below(letters.size())];
    return made;
  }

  std::mt19937 random_;
};

Fields random_fields(RandomHead& random) {
  Fields fields;
  for (std::size_t i = random.below(30); i > 0; --i) {
    const auto id = static_cast<FieldId>(random.below(kFieldIds));
    const bool is_known = id != FieldId::other && (bit_of(id) & kFramingFields) == 0;
    EXPECT_TRUE(fields.add(is_known ? std::string(name_of(id)) : random.token(20), random.value()));
  }
  for (int id = 1; id < kFieldIds; ++id)
    if ((bit_of(static_cast<FieldId>(id)) & kFramingFields) != 0)
      fields.remove(static_cast<FieldId>(id));
  return fields;
}

void expect_same(FieldsView a, FieldsView b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a.at(i).name, b.at(i).name);
    EXPECT_EQ(a.at(i).value, b.at(i).value);
    EXPECT_EQ(a.at(i).id, b.at(i).id);
  }
}

TEST(HeadWriter, WritesRequestsThatRoundTrip) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomHead random(seed);
    const std::string method = random.token(8);
    const std::string target = random.target();
    const Fields fields = random_fields(random);
    const std::string text = written([&](HeadWriter& writer) {
      writer.request_line(method, target);
      writer.fields(fields);
      writer.end();
    });
    RequestHead head;
    ASSERT_EQ(parse_request(bytes_of(text), 0, {}, head).state, Parsed::State::whole) << text;
    EXPECT_EQ(head.method_name, method);
    EXPECT_EQ(head.target, target);
    EXPECT_EQ(head.size, text.size());
    expect_same(head.fields, fields);
  }
}

TEST(HeadWriter, WritesResponsesThatRoundTrip) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomHead random(seed);
    const auto status = static_cast<Status>(200 + random.below(800));
    const Fields fields = random_fields(random);
    const RequestSummary asked = {.method = random.below(2) == 0 ? Method::get : Method::head,
                                  .keeps_alive = random.below(2) == 0};
    const Outgoing outgoing = frame_outgoing(
        asked, status, random.below(2) == 0 ? std::optional(random.below(100)) : std::nullopt);
    const std::string text = written([&](HeadWriter& writer) {
      writer.status_line(status);
      writer.fields(fields);
      writer.framing(outgoing);
      writer.end();
    });
    ResponseHead head;
    ASSERT_EQ(parse_response(bytes_of(text), 0, {}, head).state, Parsed::State::whole) << text;
    EXPECT_EQ(head.status, status);
    Framing framing;
    ASSERT_FALSE(frame_response(head, asked.method, framing)) << text;
    EXPECT_EQ(framing.body, outgoing.body) << text;
    EXPECT_EQ(framing.keeps_alive, outgoing.keeps_alive) << text;
    if (outgoing.body == BodyKind::sized) EXPECT_EQ(framing.size, outgoing.length);
  }
}

}  // namespace
}  // namespace spate::http
