#include "spate/http/conditional.h"

#include <gtest/gtest.h>

namespace spate::http {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr sys_seconds kChanged{seconds(784111777)};
constexpr const char* kBefore = "Sun, 06 Nov 1994 08:49:36 GMT";
constexpr const char* kThen = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr const char* kAfter = "Sun, 06 Nov 1994 08:49:38 GMT";
const Representation kPresent{.exists = true, .etag = "\"a\"", .last_modified = kChanged};
const Representation kAbsent{.exists = false, .etag = {}, .last_modified = {}};

Verdict verdict(Method method, const Conditions& conditions,
                const Representation& present = kPresent) {
  return evaluate(method, conditions, present, kChanged + std::chrono::days(9000));
}
Verdict on_get(const Conditions& conditions, const Representation& present = kPresent) {
  return verdict(Method::get, conditions, present);
}

TEST(EntityTagTest, IsStrongOrWeak) {
  EXPECT_EQ(parse_entity_tag("\"a\"")->opaque, "\"a\"");
  EXPECT_FALSE(parse_entity_tag("\"\"")->is_weak);
  EXPECT_TRUE(parse_entity_tag("W/\"a\"")->is_weak);
  EXPECT_EQ(parse_entity_tag("W/\"a\\\"")->opaque, "\"a\\\"");
  for (const char* text : {"", "a", "\"", "\"a", "a\"", "w/\"a\"", "W/a", "W/", "W\"a\"", "\"a\"b",
                           "\"a b\"", "\"a\"\"", "\"a\" ", "\"a\x7f\"", "*", "\"a\n\""})
    EXPECT_FALSE(parse_entity_tag(text)) << text;
}

TEST(EntityTagTest, ComparisonFollowsRfcTable) {
  const EntityTag strong{"\"1\"", false};
  const EntityTag weak{"\"1\"", true};
  const EntityTag other{"\"2\"", true};
  EXPECT_TRUE(is_strongly_equal(strong, strong));
  EXPECT_FALSE(is_strongly_equal(weak, weak));
  EXPECT_FALSE(is_strongly_equal(weak, strong));
  EXPECT_TRUE(is_weakly_equal(weak, weak));
  EXPECT_TRUE(is_weakly_equal(weak, strong));
  EXPECT_FALSE(is_weakly_equal(weak, other));
}

TEST(Conditional, ProceedsWithoutConditions) {
  EXPECT_EQ(on_get({}), Verdict::proceed);
  EXPECT_EQ(on_get({}, kAbsent), Verdict::proceed);
}

TEST(Conditional, MismatchOfIfMatchFailsPrecondition) {
  for (const char* value :
       {"\"a\"", "*", " * ", "\"b\", \"a\"", "\"b\",,\"a\"", ", \"a\"", "\"b,\" , \"a\""})
    EXPECT_EQ(on_get({.if_match = value}), Verdict::proceed) << value;
  for (const char* value :
       {"", "\"b\"", "W/\"a\"", "a", "\"b\" \"a\"", "x, \"a\"", "\"a", "*, \"a\"", "'a'"})
    EXPECT_EQ(on_get({.if_match = value}), Verdict::precondition_failed) << value;
  EXPECT_EQ(verdict(Method::put, {.if_match = "*"}, kAbsent), Verdict::precondition_failed);
  const Representation weak{.etag = "W/\"a\""};
  EXPECT_EQ(on_get({.if_match = "W/\"a\""}, weak), Verdict::precondition_failed);
  EXPECT_EQ(on_get({.if_match = "*"}, {}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_match = "\"a\""}, {}), Verdict::precondition_failed);
}

TEST(Conditional, MatchingIfNoneMatchYields304ForReadsAnd412Otherwise) {
  for (const char* value : {"\"a\"", "W/\"a\"", "*", "\"b\", W/\"a\""}) {
    EXPECT_EQ(on_get({.if_none_match = value}), Verdict::not_modified) << value;
    EXPECT_EQ(verdict(Method::head, {.if_none_match = value}), Verdict::not_modified);
    EXPECT_EQ(verdict(Method::put, {.if_none_match = value}), Verdict::precondition_failed);
  }
  EXPECT_EQ(on_get({.if_none_match = "\"b\""}), Verdict::proceed);
  EXPECT_EQ(verdict(Method::put, {.if_none_match = "*"}, kAbsent), Verdict::proceed);
}

TEST(Conditional, ReadsHonourIfModifiedSince) {
  EXPECT_EQ(on_get({.if_modified_since = kBefore}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_modified_since = kThen}), Verdict::not_modified);
  EXPECT_EQ(verdict(Method::head, {.if_modified_since = kAfter}), Verdict::not_modified);
  EXPECT_EQ(verdict(Method::post, {.if_modified_since = kAfter}), Verdict::proceed);
}

TEST(Conditional, AllMethodsHonourIfUnmodifiedSince) {
  EXPECT_EQ(on_get({.if_unmodified_since = kBefore}), Verdict::precondition_failed);
  EXPECT_EQ(verdict(Method::put, {.if_unmodified_since = kBefore}), Verdict::precondition_failed);
  EXPECT_EQ(on_get({.if_unmodified_since = kThen}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_unmodified_since = kAfter}), Verdict::proceed);
}

TEST(Conditional, IgnoresInvalidDate) {
  EXPECT_EQ(on_get({.if_modified_since = "tomorrow"}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_unmodified_since = "yesterday"}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_modified_since = kAfter}, {.etag = "\"a\""}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_unmodified_since = kBefore}, {.etag = "\"a\""}), Verdict::proceed);
}

TEST(Conditional, TagsTakePrecedenceOverDates) {
  EXPECT_EQ(on_get({.if_none_match = "\"b\"", .if_modified_since = kAfter}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_none_match = "\"a\"", .if_modified_since = kBefore}),
            Verdict::not_modified);
  EXPECT_EQ(on_get({.if_match = "\"a\"", .if_unmodified_since = kBefore}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_match = "\"b\"", .if_unmodified_since = kAfter}),
            Verdict::precondition_failed);
}

TEST(Conditional, EvaluatesPreconditionsBeforeCacheValidators) {
  EXPECT_EQ(on_get({.if_match = "\"b\"", .if_none_match = "\"a\""}), Verdict::precondition_failed);
  EXPECT_EQ(on_get({.if_match = "\"a\"", .if_none_match = "\"a\""}), Verdict::not_modified);
  EXPECT_EQ(on_get({.if_modified_since = kThen, .if_unmodified_since = kBefore}),
            Verdict::precondition_failed);
  EXPECT_EQ(on_get({.if_none_match = "\"a\"", .if_range = "\"b\""}), Verdict::not_modified);
}

TEST(Conditional, WeakTagFailsIfRange) {
  for (const char* value : {"\"a\"", kThen})
    EXPECT_EQ(on_get({.if_range = value}), Verdict::proceed) << value;
  for (const char* value : {"\"b\"", "W/\"a\"", kBefore, kAfter, "", "a", "*", "\"a\", \"b\""})
    EXPECT_EQ(on_get({.if_range = value}), Verdict::ignore_range) << value;
  EXPECT_EQ(verdict(Method::head, {.if_range = "\"b\""}), Verdict::proceed);
  EXPECT_EQ(on_get({.if_range = "W/\"a\""}, {.etag = "W/\"a\""}), Verdict::ignore_range);
  EXPECT_EQ(on_get({.if_range = kThen}, {.etag = "\"a\""}), Verdict::ignore_range);
}

}  // namespace
}  // namespace spate::http
