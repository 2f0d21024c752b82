// The client's redirects, and cookies.
#include <chrono>
#include <string>

#include "http/client_pair_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::HttpError;
using http::Method;
using http::Status;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ClientRedirects : public ClientProtocolTest {
 protected:
  void redirect(Status status, std::string_view location, std::string_view body = "") {
    answer(status, body, fields_of({{"Location", location}}));
  }
  // Makes a call whose response is a redirect.
  void ask_and_redirect(Outcome& outcome, http::CallOptions options, Status status,
                        std::string_view location) {
    ask_and_answer(outcome, std::move(options), status, "", fields_of({{"Location", location}}));
  }
  Outcome outcome_;
};

TEST_P(ClientRedirects, AreReturnedUnlessFollowingIsEnabled) {
  ask_and_redirect(outcome_, {}, Status::found, "/b");
  EXPECT_EQ(outcome_.status(), 302);
  EXPECT_EQ(kept_.size(), 1u);
}

TEST_P(ClientRedirects, AreFollowedOnSameConnection) {
  const http::Call call = fetch(outcome_, {.max_redirects = 1});
  turns();
  redirect(Status::moved_permanently, "b/c?d#e", "moved");
  EXPECT_EQ(asked(), "GET /b/c?d\nhost: a.example\n\n");
  answer();
  EXPECT_EQ(outcome_.text(), "ok");
  EXPECT_EQ((*outcome_.result)->url().to_string(), "http://a.example/b/c?d#e");
  EXPECT_EQ(opened.size(), 1u);
  EXPECT_EQ(client_.metrics().redirected, 1u);
}

TEST_P(ClientRedirects, WithoutFragmentKeepFragmentOfUrl) {
  const http::Call call = fetch(outcome_, {.max_redirects = 1}, "http://a.example/#x");
  turns();
  redirect(Status::found, "/b");
  answer();
  EXPECT_EQ((*outcome_.result)->url().to_string(), "http://a.example/b#x");
}

TEST_P(ClientRedirects, LoopFailsAfterLimit) {
  const http::Call call = fetch(outcome_, {.max_redirects = 5});
  turns();
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(outcome_.is_there());
    redirect(Status::found, "/");
  }
  EXPECT_EQ(outcome_.error(), HttpError::too_many_redirects);
  EXPECT_EQ(client_.metrics().requests, 6u);
}

TEST_P(ClientRedirects, ToUnsupportedUrlsAreErrors) {
  for (const std::string_view location : {"ftp://a/", "https://a/", "http://", "http://u@a/"}) {
    Outcome outcome;
    ask_and_redirect(outcome, {.max_redirects = 1}, Status::found, location);
    EXPECT_EQ(outcome.error(), HttpError::bad_redirect) << location;
  }
}

TEST_P(ClientRedirects, WithoutLocationAreReturned) {
  ask_and_answer(outcome_, {.max_redirects = 1}, Status::found);
  EXPECT_EQ(outcome_.status(), 302);
}

TEST_P(ClientRedirects, WithOtherStatusCodesAreReturned) {
  for (const int status : {300, 304, 305, 201}) {
    Outcome outcome;
    ask_and_redirect(outcome, {.max_redirects = 1}, static_cast<Status>(status), "/b");
    EXPECT_EQ(outcome.status(), status);
  }
}

TEST_P(ClientRedirects, PostBecomesGetWithoutBody) {
  for (const Status status : {Status::moved_permanently, Status::found, Status::see_other}) {
    Outcome outcome;
    const http::Call call =
        fetch(outcome, {.method = Method::post,
                        .fields = fields_of({{"Content-Type", "text/plain"}, {"X", "1"}}),
                        .body = bytes_of("body"),
                        .max_redirects = 1});
    turns();
    redirect(status, "/b");
    EXPECT_EQ(asked(), "GET /b\nhost: a.example\nx: 1\n\n");
  }
}

TEST_P(ClientRedirects, KeepMethodAndBodyFor307And308) {
  for (const Status status : {Status::temporary_redirect, Status::permanent_redirect}) {
    Outcome outcome;
    const http::Call call =
        fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .max_redirects = 1});
    turns();
    redirect(status, "/b");
    EXPECT_EQ(asked(), "POST /b\nhost: a.example\ncontent-length: 4\n\nbody");
  }
}

TEST_P(ClientRedirects, PutKeepsItsMethodExceptFor303) {
  for (const Status status : {Status::moved_permanently, Status::found, Status::see_other}) {
    Outcome outcome;
    const http::Call call =
        fetch(outcome, {.method = Method::put, .body = bytes_of("x"), .max_redirects = 1});
    turns();
    redirect(status, "/b");
    EXPECT_THAT(asked(), StartsWith(status == Status::see_other ? "GET" : "PUT"));
  }
}

TEST_P(ClientRedirects, HeadKeepsItsMethod) {
  const http::Call call = fetch(outcome_, {.method = Method::head, .max_redirects = 1});
  turns();
  redirect(Status::see_other, "/b");
  EXPECT_THAT(asked(), StartsWith("HEAD /b\n"));
}

TEST_P(ClientRedirects, RequiringAnotherUploadAreReturned) {
  Hearer hearer;
  http::Call call =
      client_.send(kUrl, hearer, {.method = Method::post, .upload = 2, .max_redirects = 1});
  call.write("ab");
  turns();
  redirect(Status::temporary_redirect, "/b");
  EXPECT_THAT(hearer.told, ElementsAre("upload", "307", "closed"));
}

TEST_P(ClientRedirects, ToAnotherOriginDropCredentials) {
  for (const std::string_view location :
       {"http://b.example/", "//a.example:81/", "http://a.example.b.example/"}) {
    Outcome outcome;
    const http::Call call = fetch(outcome, {.fields = fields_of({{"Authorization", "Basic eDp5"},
                                                                 {"Cookie", "a=b"},
                                                                 {"Host", "a.example"},
                                                                 {"X", "1"}}),
                                            .max_redirects = 1});
    turns();
    EXPECT_THAT(asked(), HasSubstr("authorization: Basic"));
    redirect(Status::found, location);
    EXPECT_THAT(asked(), StartsWith("GET /\n"));
    EXPECT_THAT(asked(), HasSubstr("x: 1\n"));
    EXPECT_THAT(asked(), Not(HasSubstr("authorization")));
    EXPECT_THAT(asked(), Not(HasSubstr("cookie")));
    EXPECT_THAT(asked(), Not(HasSubstr("host: a.example\n")));
  }
}

TEST_P(ClientRedirects, ToSameOriginKeepCredentials) {
  const http::Call call =
      fetch(outcome_, {.fields = fields_of({{"Authorization", "Basic eDp5"}}), .max_redirects = 1});
  turns();
  redirect(Status::found, "http://A.EXAMPLE:80/b");
  EXPECT_EQ(kept_.size(), 2u);
  EXPECT_THAT(asked(), HasSubstr("authorization: Basic eDp5\n"));
}

TEST_P(ClientRedirects, DoNotWaitForLongBody) {
  const http::Call call = fetch(outcome_, {.max_redirects = 1});
  turns();
  kept_.back()->exchange.begin(Status::found, fields_of({{"Location", "/b"}}), 1'000'000);
  turns();
  EXPECT_THAT(asked(), StartsWith("GET /b\n"));
  EXPECT_TRUE(kept_.front()->is_closed || kept_.front()->has_client_ended);
  answer();
  EXPECT_EQ(outcome_.text(), "ok");
}

TEST_P(ClientRedirects, CookiesAreStoredAndSentWithJar) {
  make_client({.jar = &jar_});
  const http::Call call = fetch(outcome_, {.max_redirects = 1});
  turns();
  EXPECT_THAT(asked(), Not(HasSubstr("cookie")));
  answer(Status::found, "",
         fields_of({{"Location", "/b"}, {"Set-Cookie", "a=1"}, {"Set-Cookie", "b=2; Max-Age=10"}}));
  EXPECT_THAT(asked(), HasSubstr("cookie: a=1; b=2\n"));
  answer(Status::ok, "", fields_of({{"Set-Cookie", "c=3"}}));
  EXPECT_EQ(jar_.size(), 3u);
  clock_.advance(11s);
  EXPECT_THAT(sent(kUrl), HasSubstr("cookie: a=1; c=3\n"));
  EXPECT_THAT(sent(kUrl, {.fields = fields_of({{"Cookie", "own=1"}})}),
              AllOf(HasSubstr("cookie: own=1\n"), Not(HasSubstr("a=1"))));
  EXPECT_THAT(sent("http://b.example/"), Not(HasSubstr("cookie")));
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientRedirects, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
