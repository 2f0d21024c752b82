// resolve(): its configuration, and a system that refuses sockets, descriptors and files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <optional>
#include <string>

#include "base/fault.h"
#include "streams/resolving_harness.h"
#include "sys/descriptor.h"
#include "tests/support/missing.h"
#include "tests/support/own_file.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// ---- the configuration

// The child opens other sockets, and sends the queries again. The parent runs the server.
TEST_F(ResolvingTest, RepeatsQueriesInChildOfFork) {
  std::optional<NameServer> server(std::in_place, loop_);
  server->names["held.test"] = {.ipv4 = {"192.0.2.7"}, .ipv6_delay = 10ms, .ipv4_delay = 100ms};
  EXPECT_FALSE(configure_resolver(loop_, with_servers({server->address()})));
  const Resolving resolving = ask("held.test");
  run_until(loop_, [&] { return server->udp_questions == 2; });
  const auto child_finds_it = [&] {
    server.reset();
    if (loop_.after_fork()) return false;
    while (results_ == 0) loop_.run(Run::once);
    return addresses_ == Texts{"192.0.2.7:80"};
  };
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    ::_exit(child_finds_it() ? 0 : 1);
  }
  run_until(loop_, [&] { return results_ == 1; });
  int status = -1;
  while (::waitpid(pid, &status, WNOHANG) != pid) loop_.run_for(1ms);  // The child has an alarm.
  EXPECT_EQ(status, 0);
  EXPECT_EQ(addresses_, Texts{"192.0.2.7:80"});
  EXPECT_EQ(server->udp_questions, 4);
}

TEST_F(ResolvingTest, ReloadsChangedConfiguration) {
  OwnFile file("resolv_conf", "search one.test\n");
  ResolverOptions options = with_servers({server_.address()});
  options.resolv_conf = file.path();
  ASSERT_FALSE(configure_resolver(loop_, options));
  server_.names["db.one.test"] = {.ipv4 = {"192.0.2.1"}};
  server_.names["db.other.test"] = {.ipv4 = {"192.0.2.2"}};
  EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.1:80"});

  file.write("search other.test\n# changed\n");
  EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.2:80"});
}

// For the root domain c-ares makes a name with two dots, and stops there.
TEST_F(ResolvingTest, FindsSingleLabelNamesInRootDomain) {
  server_.names["db"] = {.ipv4 = {"192.0.2.1"}};
  server_.names["web.one.test"] = {.ipv4 = {"192.0.2.2"}};
  for (const char* text : {"search .\n", "search . one.test\n", "search one.test .\n"}) {
    OwnFile file("resolv_conf", text);
    ResolverOptions options = with_servers({server_.address()});
    options.resolv_conf = file.path();
    ASSERT_FALSE(configure_resolver(loop_, options));
    EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.1:80"}) << text;
    if (std::string_view(text).contains("one"))
      EXPECT_EQ(addresses_of("web"), Texts{"192.0.2.2:80"}) << text;
  }
}

TEST_F(ResolvingTest, RejectsInvalidConfigurations) {
  for (const ResolverOptions& options :
       {ResolverOptions{.timeout = -1ms}, ResolverOptions{.timeout = 3min},
        ResolverOptions{.tries = -1}, ResolverOptions{.tries = 11}}) {
    EXPECT_EQ(configure_resolver(loop_, options), std::errc::invalid_argument);
  }
  EXPECT_EQ(addresses_of("both.test").size(), 3u);
}

TEST_F(ResolvingTest, RejectsInvalidServersAndChangesDuringQueries) {
  EXPECT_EQ(configure_resolver(loop_, with_servers({*Address::path("/tmp/s")})),
            std::errc::invalid_argument);
  EXPECT_EQ(configure_resolver(loop_, with_servers({Address()})), std::errc::invalid_argument);
  {
    const Resolving resolving = ask("slow.test");
    EXPECT_EQ(configure_resolver(loop_, with_servers({server_.address()})),
              std::errc::device_or_resource_busy);
  }
  EXPECT_FALSE(configure_resolver(loop_, with_servers({server_.address()})));
}

// ---- the system refuses

TEST_F(ResolvingTest, ReportsMissingSocketAndRecovers) {
  for (const int error : {EMFILE, ENFILE, ENOMEM}) {
    FaultPlan plan;
    plan.fail_share(SystemCall::socket, 1, error, 1);
    {
      const FaultScope scope(plan);
      EXPECT_EQ(error_of("both.test"), std::error_code(error, std::system_category()));
    }
    EXPECT_EQ(addresses_of("both.test").size(), 3u);
  }
}

// From here on this process cannot open descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(free);
    limit(static_cast<rlim_t>(free));
  }
  ~NoDescriptors() { limit(before_.rlim_cur); }

 private:
  void limit(rlim_t max) const {
    const rlimit limits{.rlim_cur = max, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limits);
  }
  rlimit before_{};
};

// If it took the file for an empty one, it would query a server on this machine without end.
TEST_F(ResolvingTest, ReportsMissingDescriptorForConfiguration) {
  OwnFile file("resolv_conf", "search one.test\n");
  ResolverOptions options = with_servers({server_.address()});
  options.resolv_conf = file.path();
  server_.names["db.one.test"] = {.ipv4 = {"192.0.2.1"}};
  {
    const NoDescriptors none;
    EXPECT_EQ(configure_resolver(loop_, options), std::errc::too_many_files_open);
    EXPECT_EQ(error_of("db"), std::errc::too_many_files_open);
  }
  ASSERT_FALSE(configure_resolver(loop_, options));
  EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.1:80"});
  file.write("search other.test one.test\n");
  {
    const NoDescriptors none;
    EXPECT_EQ(error_of("db"), std::errc::too_many_files_open);
  }
  EXPECT_EQ(addresses_of("db"), Texts{"192.0.2.1:80"});
  EXPECT_EQ(server_.udp_questions, 6);
}

// select() supports no higher ones.
TEST_F(ResolvingTest, UsesDescriptorsAboveFdSetsize) {
  rlimit limits{};
  ::getrlimit(RLIMIT_NOFILE, &limits);
  if (limits.rlim_max < 2000) GTEST_SKIP() << too_few_descriptors(2000);
  limits.rlim_cur = std::max<rlim_t>(limits.rlim_cur, 2000);
  ::setrlimit(RLIMIT_NOFILE, &limits);
  std::list<sys::Descriptor> filling;
  do {
    filling.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (filling.back().get() < 1100);
  server_.names["long.test"] = {.ipv4 = {"192.0.2.1"}, .is_long = true};
  EXPECT_EQ(addresses_of("both.test").size(), 3u);
  EXPECT_EQ(addresses_of("long.test"), Texts{"192.0.2.1:80"});
}

TEST_F(ResolvingTest, SurvivesSystemCallFailures) {
  struct {
    SystemCall call;
    int error;
  } const faults[] = {{SystemCall::connect, ENETUNREACH},  {SystemCall::connect, EINTR},
                      {SystemCall::send, EAGAIN},          {SystemCall::send, ENOBUFS},
                      {SystemCall::send, EPERM},           {SystemCall::receive, EAGAIN},
                      {SystemCall::receive, ECONNREFUSED}, {SystemCall::receive, ENOMEM}};
  for (const auto& fault : faults) {
    ASSERT_FALSE(configure_resolver(loop_, impatient({server_.address()}, 2)));
    for (const double share : {0.3, 1.0}) {
      FaultPlan plan;
      plan.fail_share(fault.call, share, fault.error, 3);
      const FaultScope scope(plan);
      const int before = results_;
      {
        const Resolving one = ask("both.test");
        const Resolving two = ask("nobody.test");
        run_until(loop_, [&] { return results_ == before + 2; });
      }
      turn();
      EXPECT_EQ(results_, before + 2);
      if (share == 1) {
        EXPECT_TRUE(error_);
      }
    }
    ASSERT_FALSE(configure_resolver(loop_, with_servers({server_.address()})));
    EXPECT_EQ(addresses_of("both.test").size(), 3u);
  }
}

TEST_F(ResolvingTest, IgnoresUnreadableHostsFile) {
  FaultPlan plan;
  plan.fail_share(SystemCall::open, 1, EACCES, 1);
  const FaultScope scope(plan);
  EXPECT_EQ(addresses_of("both.test").size(), 3u);
  EXPECT_GT(plan.failures(SystemCall::open), 0u);
}

}  // namespace
}  // namespace spate::testing
