// Each scenario in Worlds in which one system call fails: the first of a kind, then the second and
// so on. No callback comes after the last one, nothing is left open, no loop spins. A sample of the
// first few calls; all of them with SPATE_TORTURE=all.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "sim/parity/stage.h"
#include "sim/syscalls/simulation.h"

namespace spate::parity {
namespace {

using sim::Call;

struct Fault {
  Call call;
  const char* plan;
};
constexpr Fault kFaults[] = {
    {Call::socket, "socket.EMFILE"},
    {Call::bind, "bind.EADDRINUSE"},
    {Call::listen, "listen.EADDRINUSE"},
    {Call::accept, "accept.EMFILE"},
    {Call::accept, "accept.ECONNABORTED"},
    {Call::connect, "connect.ENETUNREACH"},
    {Call::recv, "recv.ECONNRESET"},
    {Call::recv, "recv.EINTR"},
    {Call::recv, "recv.ENOMEM"},
    {Call::send, "send.EPIPE"},
    {Call::send, "send.ENOBUFS"},
    {Call::send, "send.short"},
    {Call::epoll_ctl, "epoll_ctl.ENOMEM"},
    {Call::epoll_wait, "epoll_wait.EINTR"},
    {Call::setsockopt, "setsockopt.ENOBUFS"},
    {Call::shutdown, "shutdown.EINVAL"},
    {Call::eventfd, "eventfd.EMFILE"},
    {Call::sendfile, "sendfile.EIO"},
    {Call::read, "read.EINTR"},
    {Call::write, "write.EINTR"},
};

struct Aftermath {
  std::string text;
  std::size_t open = 0;
  std::uint64_t calls = 0;  // Calls of the kind.
};

Aftermath play_with(const Scenario& scenario, const std::string& plan, Call call) {
  const auto stage = world_stage(plan);
  sim::Simulation& simulation = *sim::Simulation::current();
  scenario.play(*stage);
  Aftermath after{.text = stage->finish()};
  if (simulation.call_faults) after.calls = simulation.call_faults->calls(call);
  const Nanos before = simulation.now();
  stage->pass(1h);
  if (simulation.now() - before != 1h) after.text += "the loop spins\n";
  after.open = simulation.open_count();
  return after;
}

std::uint64_t most_calls() {
  const char* wanted = std::getenv("SPATE_TORTURE");
  return wanted != nullptr && std::string_view(wanted) == "all" ? UINT64_MAX : 2;
}

class Torture : public ::testing::TestWithParam<Scenario> {};

TEST_P(Torture, LeavesNoDescriptorsOrPendingCallbacks) {
  const std::size_t open = play_with(GetParam(), "", Call::accept).open;
  for (const Fault& fault : kFaults) {
    for (std::uint64_t number = 1; number <= most_calls(); ++number) {
      const std::string plan = std::string(fault.plan) + '@' + std::to_string(number);
      SCOPED_TRACE(plan);
      const Aftermath after = play_with(GetParam(), plan, fault.call);
      EXPECT_FALSE(after.text.contains("after its end")) << after.text;
      EXPECT_FALSE(after.text.contains("the loop spins")) << after.text;
      EXPECT_LE(after.open, open) << after.text;
      if (after.calls < number || HasFailure()) break;
    }
  }
}

std::vector<Scenario> scenarios_to_torture() {
  std::vector<Scenario> some = all_scenarios();
  if (most_calls() != UINT64_MAX) {
    std::erase_if(some, [](const Scenario& scenario) { return scenario.weight == Weight::heavy; });
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Torture, ::testing::ValuesIn(scenarios_to_torture()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace spate::parity
