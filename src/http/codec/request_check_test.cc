#include "http/codec/request_check.h"

#include <gtest/gtest.h>

#include <string>

namespace spate::http {
namespace {

// `text` is the request's line and its fields.
int check_refusal_of(std::string text) {
  text += "\r\n";
  RequestHead head;
  RequestTarget target;
  EXPECT_EQ(parse_request(bytes_of(text), 0, {}, head).state, Parsed::State::whole) << text;
  const Refusal refusal = check_request(head, target);
  return refusal ? code_of(refusal.status) : 0;
}

// The authority and the path, as one.
std::string asked_of(std::string text) {
  text += "\r\n";
  RequestHead head;
  RequestTarget target;
  EXPECT_EQ(parse_request(bytes_of(text), 0, {}, head).state, Parsed::State::whole) << text;
  EXPECT_FALSE(check_request(head, target)) << text;
  return std::string(target.authority) + " " + std::string(target.host.host) + " " +
         std::string(target.path);
}

TEST(RequestCheck, RequiresExactlyOneHost) {
  EXPECT_EQ(check_refusal_of("GET / HTTP/1.1\r\nHost: h\r\n"), 0);
  EXPECT_EQ(check_refusal_of("GET / HTTP/1.1\r\n"), 400);
  EXPECT_EQ(check_refusal_of("GET / HTTP/1.0\r\n"), 0);
  EXPECT_EQ(check_refusal_of("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n"), 400);
  EXPECT_EQ(check_refusal_of("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nhost: i\r\n"), 400);
  EXPECT_EQ(check_refusal_of("GET / HTTP/1.0\r\nHost: h\r\nHost: h\r\n"), 400);
  EXPECT_EQ(check_refusal_of("GET http://h/ HTTP/1.1\r\n"), 400);
}

TEST(RequestCheck, RequiresValidHost) {
  for (const char* host : {"h", "h:80", "h:", "127.0.0.1:8080", "[::1]", "[::1]:80", ""})
    EXPECT_EQ(check_refusal_of("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n"), 0) << host;
  for (const char* host : {"a b", "a/b", "a@b", "h:x", "h:65536", "[::1", ":80", "a\tb", "h:80:81",
                           "a?b", "a#b", "http://h"})
    EXPECT_EQ(check_refusal_of("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n"), 400)
        << host;
  EXPECT_EQ(check_refusal_of("GET / HTTP/1.0\r\nHost: a b\r\n"), 400);
}

TEST(RequestCheck, RequiresTargetFormOfMethod) {
  for (const char* line : {"GET /", "GET /a?b", "GET http://h/", "OPTIONS *", "OPTIONS /",
                           "CONNECT h:1", "POST http://h", "X-Y /"})
    EXPECT_EQ(check_refusal_of(std::string(line) + " HTTP/1.1\r\nHost: h\r\n"), 0) << line;
  for (const char* line :
       {"GET *", "GET h:1", "GET h", "CONNECT /", "CONNECT h", "CONNECT http://h/", "GET /a#b",
        "GET http:///a", "GET ?a", "OPTIONS **", "GET http://u@h/"})
    EXPECT_EQ(check_refusal_of(std::string(line) + " HTTP/1.1\r\nHost: h\r\n"), 400) << line;
}

TEST(RequestCheck, PrefersTargetsAuthorityToHost) {
  EXPECT_EQ(asked_of("GET /a HTTP/1.1\r\nHost: h:1\r\n"), "h:1 h /a");
  EXPECT_EQ(asked_of("GET http://i:2/a HTTP/1.1\r\nHost: h:1\r\n"), "i:2 i /a");
  EXPECT_EQ(asked_of("CONNECT i:2 HTTP/1.1\r\nHost: h:1\r\n"), "i:2 i ");
  EXPECT_EQ(asked_of("OPTIONS * HTTP/1.1\r\nHost: h\r\n"), "h h *");
  EXPECT_EQ(asked_of("GET /a HTTP/1.0\r\n"), "  /a");
}

}  // namespace
}  // namespace spate::http
