#include "spate/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace spate {
namespace {

TEST(Error, HasADifferentMessageForEachOfItsValues) {
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

}  // namespace
}  // namespace spate
