#include "spate/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace spate {
namespace {

TEST(Error, HasDistinctMessageForEachValue) {
  std::set<std::string> messages;
  for (const Error error :
       {Error::loop_forked, Error::unknown_backend, Error::fd_out_of_range, Error::not_pollable}) {
    const std::error_code code = error;
    EXPECT_TRUE(code);
    EXPECT_EQ(&code.category(), &error_category());
    EXPECT_TRUE(messages.insert(code.message()).second);
  }
  EXPECT_FALSE(messages.contains(error_category().message(999)));
}

TEST(Error, ComparesWithErrorCodesAndNotWithOtherCategories) {
  const std::error_code code = Error::not_pollable;
  EXPECT_EQ(code, Error::not_pollable);
  EXPECT_NE(code, Error::loop_forked);
  EXPECT_NE(code, std::error_code(code.value(), std::system_category()));
  EXPECT_STREQ(code.category().name(), "spate");
}

TEST(Must, ReturnsValue) {
  EXPECT_EQ(must(Result<int>(7)), 7);
  EXPECT_EQ(*must(Result<std::unique_ptr<int>>(std::make_unique<int>(8))), 8);
  must(std::error_code());
  must(Result<void>());
}

TEST(MustDeathTest, AbortsWithLocationAndReason) {
  const Result<int> failed = std::unexpected(make_error_code(Error::unknown_backend));
  const auto exits = ::testing::ExitedWithCode(1);
  EXPECT_EXIT(must(failed), exits, "^error_test.cc:[0-9]+: no backend of that name\n$");
  EXPECT_EXIT(must(make_error_code(Error::deadline)), exits, "error_test.cc:.* not done in time");
  const Result<void> late = std::unexpected(make_error_code(Error::deadline));
  EXPECT_EXIT(must(late), exits, "error_test.cc:.* not done in time");
  EXPECT_EXIT(give_up(std::string_view("no file x"), std::source_location::current()), exits,
              "^error_test.cc:[0-9]+: no file x\n$");
}

}  // namespace
}  // namespace spate
