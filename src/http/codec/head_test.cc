#include "http/codec/head.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/fault.h"
#include "http/codec/head_end.h"

namespace spate::http {
namespace {

using Found = Parsed::State;

Parsed parse_head(std::string_view text, RequestHead& head, const HeadLimits& limits = {}) {
  return parse_request(bytes_of(text), 0, limits, head);
}

// 0 if it is taken.
int request_refusal_of(std::string_view text, const HeadLimits& limits = {}) {
  RequestHead head;
  const Parsed parsed = parse_head(text, head, limits);
  EXPECT_NE(parsed.state, Found::unfinished) << text;
  return parsed.refusal ? code_of(parsed.refusal.status) : 0;
}

int with_line(std::string_view text) {
  return request_refusal_of(std::string(text) + "Host: h\r\n\r\n");
}
int with_field(std::string_view text) {
  return request_refusal_of("GET / HTTP/1.1\r\nHost: h\r\n" + std::string(text) + "\r\n");
}

int response_refusal_of(std::string_view text) {
  ResponseHead head;
  const Parsed parsed = parse_response(bytes_of(text), 0, {}, head);
  EXPECT_NE(parsed.state, Found::unfinished) << text;
  return parsed.refusal ? code_of(parsed.refusal.status) : 0;
}

TEST(RequestHead, ParsesRequestLineAndFields) {
  const std::string text =
      "POST /a?b=c HTTP/1.1\r\nHost: example.org\r\nX-Odd:\t a  b \t\r\nempty:\r\n\r\nbody";
  RequestHead head;
  ASSERT_EQ(parse_head(text, head).state, Found::whole);
  EXPECT_EQ(head.method, Method::post);
  EXPECT_EQ(head.method_name, "POST");
  EXPECT_EQ(head.target, "/a?b=c");
  EXPECT_EQ(head.version, Version::http_1_1);
  EXPECT_EQ(head.size, text.size() - 4);
  ASSERT_EQ(head.fields.size(), 3u);
  EXPECT_EQ(head.fields[FieldId::host], "example.org");
  EXPECT_EQ(head.fields["x-odd"], "a  b");
  EXPECT_EQ(head.fields.at(1).name, "X-Odd");
  EXPECT_EQ(head.fields.find("Empty"), "");
  EXPECT_EQ(head.repeated, 0u);
}

TEST(RequestHead, RecordsRepeatedFields) {
  RequestHead head;
  ASSERT_EQ(parse_head("GET / HTTP/1.0\r\nhost: a\r\nX: 1\r\nX: 2\r\nHOST: b\r\n\r\n", head).state,
            Found::whole);
  EXPECT_EQ(head.version, Version::http_1_0);
  EXPECT_EQ(head.repeated, bit_of(FieldId::host));
  EXPECT_EQ(head.fields.count("x"), 2u);
}

TEST(RequestHead, AcceptsAnyTokenAsMethod) {
  RequestHead head;
  ASSERT_EQ(parse_head("M-SEARCH * HTTP/1.1\r\n\r\n", head).state, Found::whole);
  EXPECT_EQ(head.method, Method::other);
  EXPECT_EQ(head.method_name, "M-SEARCH");
  EXPECT_TRUE(head.fields.empty());
  EXPECT_EQ(with_line("G(T / HTTP/1.1\r\n"), 400);
  EXPECT_EQ(with_line(" GET / HTTP/1.1\r\n"), 400);
  EXPECT_EQ(with_line("G\xc3\x84T / HTTP/1.1\r\n"), 400);
}

TEST(RequestHead, RequiresSingleSpacesInRequestLine) {
  EXPECT_EQ(with_line("GET / HTTP/1.1\r\n"), 0);
  for (const char* text :
       {"GET  / HTTP/1.1\r\n", "GET /  HTTP/1.1\r\n", "GET\t/ HTTP/1.1\r\n", "GET /\tHTTP/1.1\r\n",
        "GET / HTTP/1.1XX", "GET / HTTP/1.1 \r\n", "GET /a b HTTP/1.1\r\n", "GET / \r\n",
        "GET /\r\n", "GET\r\n", "GET \r\n", "GET / HTTP/1.1\r\r\n", "GET  HTTP/1.1\r\n"})
    EXPECT_EQ(with_line(text), 400) << text;
}

TEST(RequestHead, RequiresVisibleTarget) {
  for (int c = 0; c < 256; ++c) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    const std::string text =
        "GET /a" + std::string(1, static_cast<char>(c)) + "aaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n";
    EXPECT_EQ(with_line(text), c > 0x20 && c < 0x7f ? 0 : 400) << c;
  }
}

TEST(RequestHead, RequiresSupportedVersion) {
  for (const char* version : {"HTTP/1.0", "HTTP/1.2", "HTTP/1.9"})
    EXPECT_EQ(with_line("GET / " + std::string(version) + "\r\n"), 0) << version;
  RequestHead head;
  ASSERT_EQ(parse_head("GET / HTTP/1.2\r\n\r\n", head).state, Found::whole);
  EXPECT_EQ(head.version, Version::http_1_1);
  for (const char* version : {"HTTP/2.0", "HTTP/0.9", "HTTP/3.1"})
    EXPECT_EQ(with_line("GET / " + std::string(version) + "\r\n"), 505) << version;
  for (const char* version :
       {"http/1.1", "HTTP/11", "HTTP/1.10", "HTTP/1", "HTTP/1.", "HTTP 1.1",
        "HTTPS/1.1", "HTTP/01.1", "HTTP/1,1", "XTTP/1.1", "HTTP/a.1", "HTTP/2.x", "HTTP/-1.1", ""})
    EXPECT_EQ(with_line("GET / " + std::string(version) + "\r\n"), 400) << version;
}

// On the heap, where a sanitizer sees a byte too many.
TEST(RequestHead, ReaderStopsAtEndAfterEmptyLine) {
  const std::vector<char> text = {'\r', '\n', '\r', '\n'};
  for (const std::size_t limit : {0u, 1u, 2u})
    EXPECT_EQ(request_refusal_of({text.data(), text.size()}, {.head = limit}), 431) << limit;
  EXPECT_EQ(request_refusal_of({text.data(), text.size()}), 400);
}

TEST(RequestHead, MayFollowOneEmptyLine) {
  EXPECT_EQ(with_line("\r\nGET / HTTP/1.1\r\n"), 0);
  for (const char* text :
       {"\r\n\r\nGET / HTTP/1.1\r\n", "\nGET / HTTP/1.1\r\n", "\rGET / HTTP/1.1\r\n"})
    EXPECT_EQ(with_line(text), 400) << text;
  RequestHead head;
  ASSERT_EQ(parse_head("\r\nGET /x HTTP/1.1\r\nA: b\r\n\r\n", head).state, Found::whole);
  EXPECT_EQ(head.target, "/x");
  EXPECT_EQ(head.fields["a"], "b");
  EXPECT_EQ(head.size, 27u);
}

TEST(RequestHead, RequiresCrLfLineEnds) {
  for (const char* text :
       {"GET / HTTP/1.1\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n\n", "GET / HTTP/1.1\r\nHost: h\n\n",
        "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\r\n\r\n",
        "GET / HTTP/1.1\r\n\rHost: h\r\n\r\n"})
    EXPECT_EQ(request_refusal_of(text), 400) << text;
}

TEST(RequestHead, RefusesControlsInValues) {
  for (int c = 0; c < 256; ++c) {
    const bool is_control = (c < 0x20 && c != '\t') || c == 0x7f;
    for (const std::size_t before : {0u, 1u, 15u, 16u, 40u}) {
      const std::string text =
          "X: " + std::string(before, 'a') + std::string(1, static_cast<char>(c)) + "b\r\n";
      EXPECT_EQ(with_field(text), is_control ? 400 : 0) << c << " " << before;
    }
  }
}

TEST(RequestHead, RequiresTokensAsNames) {
  for (int c = 0; c < 256; ++c) {
    if (c == ':') continue;
    const bool is_token =
        c < 0x7f &&
        (std::isalnum(c) ||
         (c > 0x20 && std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c))));
    EXPECT_EQ(with_field("a" + std::string(1, static_cast<char>(c)) + "b: x\r\n"),
              is_token ? 0 : 400)
        << c;
  }
  for (const char* text : {": x\r\n", "X : x\r\n", "X\t: x\r\n", "X\r\n", " X: x\r\n", "\tX: x\r\n",
                           "A: x\r\n folded\r\n", "A: x\r\n\tfolded\r\n", "A: x\r\n \r\n"})
    EXPECT_EQ(with_field(text), 400) << text;
  EXPECT_EQ(request_refusal_of("GET / HTTP/1.1\r\n Host: h\r\n\r\n"), 400);
}

TEST(RequestHead, IsRefusedBeyondItsLimits) {
  const HeadLimits limits;
  const auto with_target = [](std::size_t line_size) {
    const std::string_view rest = "GET / HTTP/1.1";
    return "GET /" + std::string(line_size - rest.size(), 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n";
  };
  EXPECT_EQ(request_refusal_of(with_target(limits.line - 1)), 0);
  EXPECT_EQ(request_refusal_of(with_target(limits.line)), 0);
  EXPECT_EQ(request_refusal_of(with_target(limits.line + 1)), 414);
  const auto of_size = [](std::size_t size) {
    const std::string_view rest = "GET / HTTP/1.1\r\nX: \r\n\r\n";
    return "GET / HTTP/1.1\r\nX: " + std::string(size - rest.size(), 'a') + "\r\n\r\n";
  };
  EXPECT_EQ(request_refusal_of(of_size(limits.head - 1)), 0);
  EXPECT_EQ(request_refusal_of(of_size(limits.head)), 0);
  EXPECT_EQ(request_refusal_of(of_size(limits.head + 1)), 431);
  const auto with_fields = [](std::size_t count) {
    std::string text = "GET / HTTP/1.1\r\n";
    for (std::size_t i = 0; i < count; ++i) text += "A: b\r\n";
    return text + "\r\n";
  };
  EXPECT_EQ(request_refusal_of(with_fields(limits.fields - 1)), 0);
  EXPECT_EQ(request_refusal_of(with_fields(limits.fields)), 0);
  EXPECT_EQ(request_refusal_of(with_fields(limits.fields + 1)), 431);
  EXPECT_EQ(request_refusal_of(with_fields(3), {.fields = 2}), 431);
  EXPECT_EQ(request_refusal_of(with_fields(101), {.fields = 200}), 431);
}

TEST(RequestHead, IsRefusedAsSoonAsPossible) {
  RequestHead head;
  EXPECT_EQ(parse_head(std::string(8193, 'a'), head).state, Found::unfinished);
  EXPECT_EQ(parse_head(std::string(8194, 'a'), head).refusal.status, Status::uri_too_long);
  const std::string line = "GET / HTTP/1.1\r\nX:";
  EXPECT_EQ(parse_head(line + std::string(16383 - line.size(), 'a'), head).state,
            Found::unfinished);
  EXPECT_EQ(parse_head(line + std::string(16384 - line.size(), 'a'), head).refusal.status,
            Status::request_header_fields_too_large);
  EXPECT_EQ(parse_head("\x16\x03\x01", head).refusal.status, Status::bad_request);
  EXPECT_EQ(parse_head("\r", head).state, Found::unfinished);
  EXPECT_EQ(parse_head("\r\n", head).state, Found::unfinished);
  EXPECT_EQ(parse_head("", head).state, Found::unfinished);
  EXPECT_EQ(parse_head("GET /\n", head).refusal.status, Status::bad_request);
  EXPECT_EQ(parse_head("\r\nGET", head, {.head = 1}).refusal.status,
            Status::request_header_fields_too_large);
  EXPECT_EQ(parse_head(std::string(100, 'a'), head, {.head = 100}).refusal.status,
            Status::request_header_fields_too_large);
}

// Counts the bytes that a search for the head's end looks at.
struct CountingScan {
  static inline std::size_t looked_at = 0;
  static const char* line_feed(const char* begin, const char* at, const char* end) {
    const char* const found = TableScan::line_feed(begin, at, end);
    looked_at += static_cast<std::size_t>((found == end ? end : found + 1) - at);
    return found;
  }
};

std::size_t looked_at_in_steps(std::string_view text, std::size_t step) {
  CountingScan::looked_at = 0;
  Parsed parsed = Parsed::unfinished(0);
  for (std::size_t there = step; parsed.state == Found::unfinished; there += step) {
    const std::string_view bytes = text.substr(0, there);
    parsed = find_head_end<CountingScan>(bytes, 0, parsed.looked_at, {}).found;
    if (there >= text.size()) break;
  }
  return CountingScan::looked_at;
}

TEST(RequestHead, IsScannedOnceInAnySplit) {
  std::string text = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 90; ++i) text += "X-Name: " + std::string(100, 'a') + "\r\n";
  text += "\r\n";
  for (const std::size_t step : {1u, 2u, 7u, 100u, 100'000u})
    EXPECT_EQ(looked_at_in_steps(text, step), text.size()) << step;
  // Nor is more looked at than a head may have.
  text.insert(16, "X: " + std::string(20'000, 'a') + "\r\n");
  for (const std::size_t step : {1u, 1000u, 100'000u})
    EXPECT_EQ(looked_at_in_steps(text, step), HeadLimits().head) << step;
}

TEST(RequestHead, IsCopiedOnce) {
  std::string text = "PUT /path HTTP/1.1\r\nHost: h\r\nX-Name: value\r\n\r\n";
  RequestHead head;
  ASSERT_EQ(parse_head(text, head).state, Found::whole);
  HeadCopy<RequestView> copy;
  EXPECT_TRUE(copy.empty());
  ASSERT_TRUE(copy.copy(text.data(), head));
  text.assign(text.size(), '!');
  EXPECT_EQ(copy.view().method, Method::put);
  EXPECT_EQ(copy.view().method_name, "PUT");
  EXPECT_EQ(copy.view().target, "/path");
  EXPECT_EQ(copy.view().fields[FieldId::host], "h");
  EXPECT_EQ(copy.view().fields["x-name"], "value");
  HeadCopy<RequestView> other = std::move(copy);
  EXPECT_TRUE(copy.empty());
  EXPECT_EQ(other.view().target, "/path");
  other.clear();
  EXPECT_TRUE(other.empty());
}

TEST(RequestHead, IsNotCopiedWhenMemoryRunsOut) {
  const std::string text = "PUT /path HTTP/1.1\r\nHost: h\r\n\r\n";
  RequestHead head;
  ASSERT_EQ(parse_head(text, head).state, Found::whole);
  HeadCopy<RequestView> copy;
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
  FaultScope scope(plan);
  EXPECT_FALSE(copy.copy(text.data(), head));
  EXPECT_TRUE(copy.empty());
}

TEST(ResponseHead, ParsesStatusLineAndFields) {
  const std::string text = "HTTP/1.1 404 Not Found\r\nServer: s\r\n\r\nbody";
  ResponseHead head;
  ASSERT_EQ(parse_response(bytes_of(text), 0, {}, head).state, Found::whole);
  EXPECT_EQ(head.status, Status::not_found);
  EXPECT_EQ(head.reason, "Not Found");
  EXPECT_EQ(head.version, Version::http_1_1);
  EXPECT_EQ(head.fields[FieldId::server], "s");
  EXPECT_EQ(head.size, text.size() - 4);
  HeadCopy<ResponseView> copy;
  ASSERT_TRUE(copy.copy(text.data(), head));
  EXPECT_NE(copy.view().reason.data(), head.reason.data());
  EXPECT_EQ(copy.view().reason, "Not Found");
}

TEST(ResponseHead, MayHaveNoReason) {
  for (const char* text : {"HTTP/1.1 200 \r\n\r\n", "HTTP/1.0 200\r\n\r\n",
                           "HTTP/1.1 999 a\tb\xc3\r\n\r\n", "HTTP/1.1 100 \r\n\r\n"})
    EXPECT_EQ(response_refusal_of(text), 0) << text;
}

TEST(ResponseHead, IsRefusedIfItViolatesGrammar) {
  for (const char* text :
       {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 2a0 OK\r\n\r\n", "HTTP/1.1\t200 OK\r\n\r\n",
        "HTTP/1.1 200\tOK\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 200 O\x01K\r\n\r\n",
        "HTTP/1.1\r\n\r\n", "H\r\n\r\n", "HTTP/1.1 200 OK\r\nA b\r\n\r\n", "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 +20 OK\r\n\r\n", "HTTP/1.1 200 OK\rX\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n"})
    EXPECT_EQ(response_refusal_of(text), 502) << text;
}

TEST(Trailers, EndAtEmptyLine) {
  TrailerHead head;
  EXPECT_EQ(parse_trailers(bytes_of(""), 0, {}, head).state, Found::unfinished);
  EXPECT_EQ(parse_trailers(bytes_of("\r"), 0, {}, head).state, Found::unfinished);
  ASSERT_EQ(parse_trailers(bytes_of("\r\nrest"), 0, {}, head).state, Found::whole);
  EXPECT_EQ(head.size, 2u);
  ASSERT_EQ(parse_trailers(bytes_of("A: b\r\n\r\nrest"), 0, {}, head).state, Found::whole);
  EXPECT_EQ(head.size, 8u);
  EXPECT_EQ(head.fields["a"], "b");
  for (const char* text : {"\n", "\rA: b\r\n\r\n", "A b\r\n\r\n", " A: b\r\n\r\n", "A: b\n\n"})
    EXPECT_EQ(parse_trailers(bytes_of(text), 0, {}, head).state, Found::broken) << text;
}

}  // namespace
}  // namespace spate::http
