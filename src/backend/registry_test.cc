#include "backend/registry.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/fault.h"
#include "spate/error.h"
#include "system/kernel_set.h"
#include "tests/support/missing.h"

namespace spate {
namespace {

TEST(Registry, OpensEachBackendByItsReportedName) {
  const std::vector<std::string_view> names = backend_names();
  EXPECT_FALSE(names.empty());
  for (const std::string_view name : names) {
    const auto opened = open_backend(name);
    ASSERT_TRUE(opened) << name;
    if (name == "io_uring" && opened->backend->name() != name)
      GTEST_SKIP() << testing::no_ring(opened->reason);
    EXPECT_EQ(opened->backend->name(), name);
    EXPECT_EQ(opened->reason, "");
  }
}

TEST(Registry, SelectsFirstListedBackendForAuto) {
  const auto opened = open_backend("auto");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->backend->name(), backend_names().front());
  EXPECT_EQ(opened->reason, "");
}

TEST(Registry, RefusesUnknownNames) {
  for (const std::string_view name : {"", "epol", "epoll ", "EPOLL", "kevent"}) {
    const auto opened = open_backend(name);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error(), Error::unknown_backend);
  }
}

TEST(Registry, FallsBackFromKernelSetsAndReportsReason) {
  FaultPlan plan;
  for (const SystemCall opens : {SystemCall::epoll_create, SystemCall::kqueue})
    plan.fail_nth(opens, 1, ENOSYS, 100);
  const FaultScope scope(plan);
  const auto opened = open_backend("auto");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->backend->name(), "poll");
  EXPECT_NE(opened->reason.find(testing::kKernelSet + std::string(": ")), std::string::npos)
      << opened->reason;
}

TEST(Registry, ReportsErrorOfOpeningNamedBackend) {
  FaultPlan plan;
  plan.fail_nth(testing::kOpensKernelSet, 1, EMFILE);
  const FaultScope scope(plan);
  const auto opened = open_backend(testing::kKernelSet);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), std::error_code(EMFILE, std::system_category()));
}

}  // namespace
}  // namespace spate
