#include "spate/http/method.h"

#include <gtest/gtest.h>

#include "spate/http/status.h"

namespace spate::http {
namespace {

TEST(Method, RoundTripsThroughItsName) {
  for (int i = 0; i < static_cast<int>(Method::other); ++i) {
    const auto method = static_cast<Method>(i);
    EXPECT_FALSE(name_of(method).empty());
    EXPECT_EQ(method_of(name_of(method)), method);
  }
  EXPECT_EQ(method_of("DELETE"), Method::del);
}

TEST(Method, IsUnknownUnlessItMatchesExactly) {
  for (const char* name : {"", "get", "GE", "GETS", "PROPFIND"})
    EXPECT_EQ(method_of(name), Method::other) << name;
  EXPECT_EQ(name_of(Method::other), "");
}

TEST(Method, IsRepeatableIfIdempotent) {
  for (const Method method :
       {Method::get, Method::head, Method::put, Method::del, Method::options, Method::trace})
    EXPECT_TRUE(is_idempotent(method)) << name_of(method);
  for (const Method method : {Method::post, Method::patch, Method::connect, Method::other})
    EXPECT_FALSE(is_idempotent(method)) << name_of(method);
  EXPECT_FALSE(is_safe(Method::put));
  EXPECT_TRUE(is_safe(Method::head));
}

TEST(Status, HasReasonIfItIsRegistered) {
  EXPECT_EQ(reason_of(Status::ok), "OK");
  EXPECT_EQ(reason_of(Status::request_header_fields_too_large), "Request Header Fields Too Large");
  EXPECT_EQ(reason_of(static_cast<Status>(299)), "");
}

TEST(Status, BelongsToClassOfItsFirstDigit) {
  EXPECT_TRUE(is_informational(Status::early_hints));
  EXPECT_TRUE(is_success(static_cast<Status>(299)));
  EXPECT_TRUE(is_redirect(Status::not_modified));
  EXPECT_TRUE(is_client_error(Status::gone));
  EXPECT_TRUE(is_server_error(Status::bad_gateway));
  EXPECT_FALSE(is_success(Status::bad_gateway));
}

}  // namespace
}  // namespace spate::http
