// A client adds its base URL, default fields, credentials and bodies to requests.
#include <chrono>
#include <string>

#include "http/client_harness.h"
#include "spate/http/body.h"
#include "spate/http/error.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::HttpError;
using http::Method;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ClientDefaults : public HttpClientTest {};

TEST_F(ClientDefaults, DefaultFieldsAndCredentialsAreValidated) {
  const auto create = [this](http::ClientOptions options) {
    return http::Client::create(loop_, std::move(options)).error();
  };
  EXPECT_EQ(create({.base_url = "/relative"}), std::errc::invalid_argument);
  EXPECT_EQ(create({.base_url = "http://%zz@a/"}), std::errc::invalid_argument);
  EXPECT_EQ(create({.fields = fields_of({{"Content-Length", "1"}})}), std::errc::invalid_argument);
  EXPECT_EQ(create({.credentials = http::Credentials{"ada", "x"}}), std::errc::invalid_argument);
  EXPECT_EQ(create({.base_url = "http://a/", .credentials = http::Credentials{"a:da", "x"}}),
            std::errc::invalid_argument);
  EXPECT_EQ(create({.retry = {.budget = 1.5}}), std::errc::invalid_argument);
  EXPECT_EQ(create({.retry = {.first_delay = -1ns}}), std::errc::invalid_argument);
  EXPECT_TRUE(
      http::Client::create(loop_, {.base_url = "http://a/b", .fields = fields_of({{"X-A", "1"}})}));
}

TEST_F(ClientDefaults, UrlsAreRelativeToBaseUrl) {
  make_client({.base_url = "http://a.example/api/v1/"});
  EXPECT_THAT(sent("users?x=1"), StartsWith("GET /api/v1/users?x=1 HTTP/1.1\r\n"));
  EXPECT_THAT(sent("../v2"), StartsWith("GET /api/v2 HTTP/1.1\r\n"));
  EXPECT_THAT(sent("/root"), StartsWith("GET /root HTTP/1.1\r\nHost: a.example\r\n"));
  EXPECT_THAT(sent(""), StartsWith("GET /api/v1/ HTTP/1.1\r\n"));
  EXPECT_THAT(sent("http://b.example/c"), StartsWith("GET /c HTTP/1.1\r\nHost: b.example\r\n"));
}

TEST_F(ClientDefaults, DefaultFieldsAreAddedUnlessCallHasThem) {
  make_client({.fields = fields_of({{"X-A", "1"}, {"X-A", "2"}, {"X-B", "3"}})});
  EXPECT_THAT(sent(kUrl), HasSubstr("X-A: 1\r\nX-A: 2\r\nX-B: 3\r\n"));
  const std::string own = sent(kUrl, {.fields = fields_of({{"x-a", "own"}})});
  EXPECT_THAT(own, HasSubstr("x-a: own\r\n"));
  EXPECT_THAT(own, HasSubstr("X-B: 3\r\n"));
  EXPECT_THAT(own, Not(HasSubstr("X-A: ")));
}

TEST_F(ClientDefaults, SecretsOfClientAreForItsBaseUrlOnly) {
  make_client({.base_url = "http://a.example/",
               .fields = fields_of({{"Cookie", "a=1"}, {"X-A", "1"}}),
               .credentials = http::Credentials{"ada", "secret"}});
  const std::string own = sent("x");
  EXPECT_THAT(own, HasSubstr("Cookie: a=1\r\n"));
  EXPECT_THAT(own, HasSubstr("Authorization: Basic YWRhOnNlY3JldA==\r\n"));
  const std::string other = sent("http://b.example/");
  EXPECT_THAT(other, HasSubstr("X-A: 1\r\n"));
  EXPECT_THAT(other, Not(HasSubstr("Cookie")));
  EXPECT_THAT(other, Not(HasSubstr("Authorization")));
}

TEST_F(ClientDefaults, CredentialsOfCallReplaceThoseOfClient) {
  make_client({.base_url = "http://ada:sec%20ret@a.example/"});
  EXPECT_THAT(sent("x"), HasSubstr("Authorization: Basic YWRhOnNlYyByZXQ=\r\n"));
  EXPECT_THAT(sent("x", {.credentials = http::Credentials{"bob", ""}}),
              HasSubstr("Authorization: Basic Ym9iOg==\r\n"));
  EXPECT_THAT(sent("x", {.fields = fields_of({{"Authorization", "Bearer t"}})}),
              HasSubstr("Authorization: Bearer t\r\n"));
  EXPECT_EQ(refused("x", {.credentials = http::Credentials{"b:ob", ""}}),
            std::errc::invalid_argument);
}

TEST_F(ClientDefaults, UserinfoIsAcceptedOnlyIfEnabled) {
  EXPECT_EQ(refused("http://ada:x@a.example/"), HttpError::invalid_url);
  make_client({.accept_userinfo = true});
  EXPECT_THAT(sent("http://ada:x@a.example/@?@"), HasSubstr("Authorization: Basic YWRhOng=\r\n"));
  EXPECT_THAT(sent("http://ada@a.example/"), HasSubstr("Authorization: Basic YWRhOg==\r\n"));
  EXPECT_THAT(sent("http://a.example/@"), Not(HasSubstr("Authorization")));
  EXPECT_EQ(refused("http://%zz@a.example/"), HttpError::invalid_url);
}

TEST_F(ClientDefaults, BodyFunctionsSetContentTypeAndMethod) {
  http::CallOptions json;
  ASSERT_TRUE(http::set_json(json, "{}"));
  const std::string sent_json = sent(kUrl, std::move(json));
  EXPECT_THAT(sent_json, StartsWith("POST / "));
  EXPECT_THAT(sent_json, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(sent_json, EndsWith("\r\n\r\n{}"));
  http::CallOptions form{.method = Method::put};
  ASSERT_TRUE(http::set_form(form, {{"a b", "1&2"}, {"c", ""}}));
  const std::string sent_form = sent(kUrl, std::move(form));
  EXPECT_THAT(sent_form, StartsWith("PUT / "));
  EXPECT_THAT(sent_form, HasSubstr("Content-Type: application/x-www-form-urlencoded\r\n"));
  EXPECT_THAT(sent_form, EndsWith("\r\n\r\na+b=1%262&c="));
  http::CallOptions wrong;
  EXPECT_FALSE(http::set_body(wrong, "x", "no type"));
}

TEST_F(ClientDefaults, MultipartFormIsSentWithItsBoundary) {
  Buffer body;
  http::MultipartBuilder form(body, must(http::random_boundary()));
  ASSERT_TRUE(form.add("user", "ada") && form.end());
  http::CallOptions options;
  const std::string type = form.content_type();
  ASSERT_TRUE(http::set_multipart(options, form, std::move(body)));
  const std::string request = sent(kUrl, std::move(options));
  EXPECT_THAT(request, HasSubstr("Content-Type: " + type + "\r\n"));
  EXPECT_THAT(request, HasSubstr("name=\"user\"\r\n\r\nada\r\n--"));
  EXPECT_NE(must(http::random_boundary()), must(http::random_boundary()));
}

TEST_F(ClientDefaults, MultipartUploadSendsItsExactSize) {
  http::MultipartUpload upload("0123456789abcdef");
  ASSERT_TRUE(upload.form().add("title", "x"));
  ASSERT_TRUE(upload.end_with_file("film", "f.mp4", "video/mp4", 5));
  http::CallOptions options;
  ASSERT_TRUE(upload.set(options));
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, std::move(options));
  turns();
  EXPECT_TRUE(upload.begin(call));
  EXPECT_TRUE(call.write("hello"));
  EXPECT_TRUE(upload.end(call));
  turns();
  const std::string request = peer().heard();
  const std::size_t head = request.find("\r\n\r\n") + 4;
  EXPECT_THAT(request,
              HasSubstr("Content-Length: " + std::to_string(request.size() - head) + "\r\n"));
  EXPECT_THAT(request, EndsWith("\r\n\r\nhello\r\n--0123456789abcdef--\r\n"));
  auto decoder =
      must(http::MultipartDecoder::make("multipart/form-data; boundary=0123456789abcdef"));
  Bytes body = bytes_of(std::string_view(request).substr(head));
  while (decoder.next(body) != http::MultipartDecoder::Event::unfinished) {
  }
  EXPECT_TRUE(decoder.is_done());
  EXPECT_EQ(decoder.filename(), "f.mp4");
}

}  // namespace
}  // namespace spate::testing
