// A client adds its base URL, default fields, credentials and bodies to requests.
#include <chrono>
#include <string>

#include "http/client_pair_harness.h"
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

class ClientDefaults : public ClientProtocolTest {};

TEST_P(ClientDefaults, DefaultFieldsAndCredentialsAreValidated) {
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

TEST_P(ClientDefaults, UrlsAreRelativeToBaseUrl) {
  make_client({.base_url = "http://a.example/api/v1/"});
  EXPECT_THAT(sent("users?x=1"), StartsWith("GET /api/v1/users?x=1\n"));
  EXPECT_THAT(sent("../v2"), StartsWith("GET /api/v2\n"));
  EXPECT_THAT(sent("/root"), StartsWith("GET /root\nhost: a.example\n"));
  EXPECT_THAT(sent(""), StartsWith("GET /api/v1/\n"));
  EXPECT_THAT(sent("http://b.example/c"), StartsWith("GET /c\nhost: b.example\n"));
}

TEST_P(ClientDefaults, DefaultFieldsAreAddedUnlessCallHasThem) {
  make_client({.fields = fields_of({{"X-A", "1"}, {"X-A", "2"}, {"X-B", "3"}})});
  EXPECT_THAT(sent(kUrl), HasSubstr("x-a: 1\nx-a: 2\nx-b: 3\n"));
  EXPECT_EQ(sent(kUrl, {.fields = fields_of({{"x-a", "own"}})}),
            "GET /\nhost: a.example\nx-a: own\nx-b: 3\n\n");
}

TEST_P(ClientDefaults, SecretsOfClientAreForItsBaseUrlOnly) {
  make_client({.base_url = "http://a.example/",
               .fields = fields_of({{"Cookie", "a=1"}, {"X-A", "1"}}),
               .credentials = http::Credentials{"ada", "secret"}});
  const std::string own = sent("x");
  EXPECT_THAT(own, HasSubstr("cookie: a=1\n"));
  EXPECT_THAT(own, HasSubstr("authorization: Basic YWRhOnNlY3JldA==\n"));
  const std::string other = sent("http://b.example/");
  EXPECT_THAT(other, HasSubstr("x-a: 1\n"));
  EXPECT_THAT(other, Not(HasSubstr("cookie")));
  EXPECT_THAT(other, Not(HasSubstr("authorization")));
}

TEST_P(ClientDefaults, CredentialsOfCallReplaceThoseOfClient) {
  make_client({.base_url = "http://ada:sec%20ret@a.example/"});
  EXPECT_THAT(sent("x"), HasSubstr("authorization: Basic YWRhOnNlYyByZXQ=\n"));
  EXPECT_THAT(sent("x", {.credentials = http::Credentials{"bob", ""}}),
              HasSubstr("authorization: Basic Ym9iOg==\n"));
  EXPECT_THAT(sent("x", {.fields = fields_of({{"Authorization", "Bearer t"}})}),
              HasSubstr("authorization: Bearer t\n"));
  EXPECT_EQ(refused("x", {.credentials = http::Credentials{"b:ob", ""}}),
            std::errc::invalid_argument);
}

TEST_P(ClientDefaults, UserinfoIsAcceptedOnlyIfEnabled) {
  EXPECT_EQ(refused("http://ada:x@a.example/"), HttpError::invalid_url);
  make_client({.accept_userinfo = true});
  EXPECT_THAT(sent("http://ada:x@a.example/@?@"), HasSubstr("authorization: Basic YWRhOng=\n"));
  EXPECT_THAT(sent("http://ada@a.example/"), HasSubstr("authorization: Basic YWRhOg==\n"));
  EXPECT_THAT(sent("http://a.example/@"), Not(HasSubstr("authorization")));
  EXPECT_EQ(refused("http://%zz@a.example/"), HttpError::invalid_url);
}

TEST_P(ClientDefaults, BodyFunctionsSetContentTypeAndMethod) {
  http::CallOptions json;
  ASSERT_TRUE(http::set_json(json, "{}"));
  const std::string sent_json = sent(kUrl, std::move(json));
  EXPECT_THAT(sent_json, StartsWith("POST /\n"));
  EXPECT_THAT(sent_json, HasSubstr("content-type: application/json\n"));
  EXPECT_THAT(sent_json, EndsWith("\n\n{}"));
  http::CallOptions form{.method = Method::put};
  ASSERT_TRUE(http::set_form(form, {{"a b", "1&2"}, {"c", ""}}));
  const std::string sent_form = sent(kUrl, std::move(form));
  EXPECT_THAT(sent_form, StartsWith("PUT /\n"));
  EXPECT_THAT(sent_form, HasSubstr("content-type: application/x-www-form-urlencoded\n"));
  EXPECT_THAT(sent_form, EndsWith("\n\na+b=1%262&c="));
  http::CallOptions wrong;
  EXPECT_FALSE(http::set_body(wrong, "x", "no type"));
}

TEST_P(ClientDefaults, MultipartFormIsSentWithItsBoundary) {
  Buffer body;
  http::MultipartBuilder form(body, must(http::random_boundary()));
  ASSERT_TRUE(form.add("user", "ada") && form.end());
  http::CallOptions options;
  const std::string type = form.content_type();
  ASSERT_TRUE(http::set_multipart(options, form, std::move(body)));
  const std::string request = sent(kUrl, std::move(options));
  EXPECT_THAT(request, HasSubstr("content-type: " + type + "\n"));
  EXPECT_THAT(request, HasSubstr("name=\"user\"\r\n\r\nada\r\n--"));
  EXPECT_NE(must(http::random_boundary()), must(http::random_boundary()));
}

TEST_P(ClientDefaults, MultipartUploadSendsItsExactSize) {
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
  const std::string& body = kept_.back()->body;
  EXPECT_THAT(heads_.back(), HasSubstr("content-length: " + std::to_string(body.size()) + "\n"));
  EXPECT_THAT(body, EndsWith("\r\n\r\nhello\r\n--0123456789abcdef--\r\n"));
  auto decoder =
      must(http::MultipartDecoder::make("multipart/form-data; boundary=0123456789abcdef"));
  Bytes rest = bytes_of(body);
  while (decoder.next(rest) != http::MultipartDecoder::Event::unfinished) {
  }
  EXPECT_TRUE(decoder.is_done());
  EXPECT_EQ(decoder.filename(), "f.mp4");
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientDefaults, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
