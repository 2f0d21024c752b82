// ServiceManager: the messages that a service manager receives, and the environments that it sets.
#include "spate/net/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/net/address.h"
#include "streams/harness.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ServiceManagerTest : public ::testing::Test {
 protected:
  ServiceManagerTest() { forget(); }
  ~ServiceManagerTest() override {
    forget();
    ::unlink(path_.c_str());
  }

  // Opens the manager's socket, and sets the environment.
  void open_socket(const Address& address, const std::string& name) {
    socket_ = sys::Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::unlink(path_.c_str());
    ASSERT_EQ(::bind(socket_.get(), static_cast<const sockaddr*>(address.data()),
                     static_cast<socklen_t>(address.size())),
              0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  void open_path() { open_socket(*Address::path(path_), path_); }

  // Returns the next message, or an empty text.
  std::string receive() {
    char text[1000];
    const ssize_t size = ::recv(socket_.get(), text, sizeof(text), 0);
    return std::string(text, size < 0 ? 0 : static_cast<std::size_t>(size));
  }
  std::vector<std::string> receive_all() {
    std::vector<std::string> messages;
    for (std::string next = receive(); !next.empty(); next = receive()) messages.push_back(next);
    return messages;
  }
  ServiceManager manager() {
    Result<ServiceManager> made = ServiceManager::create(*loop_);
    EXPECT_TRUE(made) << made.error();
    return std::move(made).value_or(ServiceManager());
  }
  std::error_code error() { return ServiceManager::create(*loop_).error(); }
  // Fills the socket with messages of a status. Returns how many it took.
  int fill() {
    const sys::Descriptor other(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const Address address = *Address::path(path_);
    int sent = 0;
    while (::sendto(other.get(), "full", 4, 0, static_cast<const sockaddr*>(address.data()),
                    static_cast<socklen_t>(address.size())) == 4)
      ++sent;
    return sent;
  }
  // The ServiceManager does not keep the loop alive.
  void run_for(Nanos time) {
    loop_->ref();
    EXPECT_FALSE(loop_->run_for(time));
    loop_->unref();
  }
  // Runs the loop until a message other than those of fill() arrives. Returns it.
  std::string next_of_the_loop() {
    for (;;) {
      if (const std::string message = receive(); !message.empty() && message != "full")
        return message;
      run_for(5ms);
    }
  }

  static void forget() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  }

  std::string path_ = "/tmp/spate_service_manager_" + std::to_string(::getpid());
  sys::Descriptor socket_;
  std::unique_ptr<Loop> loop_ = *Loop::create();
};

TEST_F(ServiceManagerTest, SendsStatesToPath) {
  open_path();
  ServiceManager manager = this->manager();
  EXPECT_TRUE(manager.is_present());
  EXPECT_FALSE(manager.ready());
  EXPECT_FALSE(manager.status("serving 3 clients"));
  EXPECT_FALSE(manager.main_process(4711));
  EXPECT_FALSE(manager.send("EXTEND_TIMEOUT_USEC=5\nERRNO=2"));
  EXPECT_FALSE(manager.stopping());
  EXPECT_THAT(receive_all(),
              ElementsAre("READY=1", "STATUS=serving 3 clients", "MAINPID=4711",
                          "EXTEND_TIMEOUT_USEC=5\nERRNO=2", "STOPPING=1"));
  EXPECT_FALSE(manager.last_error());
}

TEST_F(ServiceManagerTest, SendsToAbstractName) {
  const std::string name = "spate_manager_" + std::to_string(::getpid());
  open_socket(*Address::abstract(name), "@" + name);
  EXPECT_FALSE(manager().ready());
  EXPECT_THAT(receive_all(), ElementsAre("READY=1"));
}

TEST_F(ServiceManagerTest, AddsTimeToReloading) {
  open_path();
  const auto micros = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(sys::read_clock(CLOCK_MONOTONIC))
        .count();
  };
  const auto before = micros();
  EXPECT_FALSE(manager().reloading());
  const auto after = micros();
  const std::string message = receive();
  const std::string start = "RELOADING=1\nMONOTONIC_USEC=";
  ASSERT_TRUE(message.starts_with(start)) << message;
  const auto time = std::stoll(message.substr(start.size()));
  EXPECT_LE(before, time);
  EXPECT_LE(time, after);
}

TEST_F(ServiceManagerTest, DoesNothingWithoutManager) {
  for (const char* name : {"", static_cast<const char*>(nullptr)}) {
    if (name != nullptr) ::setenv("NOTIFY_SOCKET", name, 1);
    if (name == nullptr) ::unsetenv("NOTIFY_SOCKET");
    ::setenv("WATCHDOG_USEC", "1000", 1);
    ServiceManager manager = this->manager();
    EXPECT_FALSE(manager.is_present());
    EXPECT_EQ(manager.watchdog(), 0ns);
    EXPECT_FALSE(manager.ready() || manager.reloading() || manager.stopping());
    EXPECT_FALSE(manager.status("text") || manager.main_process(1) || manager.send("X=1"));
    EXPECT_FALSE(loop_->has_work());
  }
}

TEST_F(ServiceManagerTest, RefusesInvalidEnvironment) {
  for (const char* name : {"relative", "@", "vsock:2:1234", "unix:/run/x"}) {
    ::setenv("NOTIFY_SOCKET", name, 1);
    EXPECT_EQ(error(), std::errc::invalid_argument) << name;
  }
  ::setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  EXPECT_EQ(error(), std::errc::filename_too_long);
  open_path();
  for (const char* usec : {"0", "-1", "x", "10x", " 10", "1.5", "18446744073709551615",
                           "9223372036854775807"}) {
    ::setenv("WATCHDOG_USEC", usec, 1);
    EXPECT_EQ(error(), std::errc::invalid_argument) << usec;
  }
  ::setenv("WATCHDOG_USEC", "1000", 1);
  for (const char* pid : {"0", "-1", "me", "99999999999"}) {
    ::setenv("WATCHDOG_PID", pid, 1);
    EXPECT_EQ(error(), std::errc::invalid_argument) << pid;
  }
  EXPECT_FALSE(loop_->has_work());
}

TEST_F(ServiceManagerTest, RefusesInvalidMessages) {
  open_path();
  ServiceManager manager = this->manager();
  EXPECT_EQ(manager.status("two\nlines"), std::errc::invalid_argument);
  EXPECT_EQ(manager.status(std::string_view("\0", 1)), std::errc::invalid_argument);
  EXPECT_EQ(manager.send(""), std::errc::invalid_argument);
  EXPECT_EQ(manager.main_process(0), std::errc::invalid_argument);
  EXPECT_EQ(manager.send(std::string(10'000'000, 'x')), std::errc::message_size);
  EXPECT_THAT(receive_all(), IsEmpty());
}

TEST_F(ServiceManagerTest, MissingSocketIsReported) {
  open_path();
  ServiceManager manager = this->manager();
  socket_ = {};
  const sys::Descriptor closed = std::move(socket_);
  EXPECT_EQ(manager.ready(), std::errc::connection_refused);
  ::unlink(path_.c_str());
  EXPECT_EQ(manager.ready(), std::errc::no_such_file_or_directory);
  EXPECT_FALSE(loop_->has_work());
  open_path();  // The manager has a new socket.
  EXPECT_FALSE(manager.ready());
  EXPECT_THAT(receive_all(), ElementsAre("READY=1"));
}

TEST_F(ServiceManagerTest, SendsLaterInOrderIfSocketIsFull) {
  open_path();
  ServiceManager manager = this->manager();
  ASSERT_GT(fill(), 0);
  EXPECT_FALSE(manager.ready());
  EXPECT_FALSE(manager.status("one"));
  EXPECT_FALSE(manager.stopping());
  EXPECT_FALSE(manager.status("two"));  // Replaces the first.
  EXPECT_FALSE(loop_->has_work());      // Messages that wait do not keep the loop alive.
  EXPECT_EQ(next_of_the_loop(), "READY=1");
  EXPECT_EQ(next_of_the_loop(), "STATUS=two");
  EXPECT_EQ(next_of_the_loop(), "STOPPING=1");
  EXPECT_FALSE(manager.ready());  // At once again.
  EXPECT_EQ(receive(), "READY=1");
  EXPECT_FALSE(manager.last_error());
}

TEST_F(ServiceManagerTest, BoundsMessagesThatWait) {
  open_path();
  ServiceManager manager = this->manager();
  fill();
  for (int i = 0; i < 16; ++i) EXPECT_FALSE(manager.send("X=" + std::to_string(i)));
  EXPECT_EQ(manager.ready(), std::errc::resource_unavailable_try_again);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(next_of_the_loop(), "X=" + std::to_string(i));
}

TEST_F(ServiceManagerTest, ReportsErrorOfMessageSentLater) {
  open_path();
  ServiceManager manager = this->manager();
  fill();
  EXPECT_FALSE(manager.ready());
  ::unlink(path_.c_str());
  while (!manager.last_error()) run_for(5ms);
  EXPECT_EQ(manager.last_error(), std::errc::no_such_file_or_directory);
}

TEST_F(ServiceManagerTest, SendsMessagesThatWaitWhenDestroyed) {
  open_path();
  std::optional<ServiceManager> manager = this->manager();
  const int filled = fill();
  EXPECT_FALSE(manager->stopping());
  EXPECT_THAT(receive_all(), SizeIs(filled));
  manager.reset();
  EXPECT_THAT(receive_all(), ElementsAre("STOPPING=1"));
}

TEST_F(ServiceManagerTest, NotifiesWatchdogWhileLoopRuns) {
  open_path();
  ::setenv("WATCHDOG_USEC", "20000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  std::optional<ServiceManager> manager = this->manager();
  EXPECT_EQ(manager->watchdog(), 20ms);
  EXPECT_FALSE(loop_->has_work());
  EXPECT_THAT(receive_all(), IsEmpty());  // A loop that does not run is blocked.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next_of_the_loop(), "WATCHDOG=1");
  manager.reset();
  receive_all();
  run_for(30ms);
  EXPECT_THAT(receive_all(), IsEmpty());
}

TEST_F(ServiceManagerTest, NotifiesWatchdogSoonAfterSocketWasFull) {
  open_path();
  ::setenv("WATCHDOG_USEC", "20000000", 1);
  ScriptedClock clock;
  loop_ = *Loop::create({.clock = &clock});
  std::optional<ServiceManager> manager = this->manager();
  const auto run_after = [&](Nanos time) {
    clock.advance(time);
    loop_->run(Run::no_wait);
    return receive_all();
  };
  EXPECT_THAT(run_after(9s), IsEmpty());
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::send, 1, EAGAIN, 2);
    const FaultScope scope(plan);
    EXPECT_THAT(run_after(1s), IsEmpty());
    EXPECT_THAT(run_after(100ms), IsEmpty());
    EXPECT_EQ(plan.failures(SystemCall::send), 2U);
  }
  EXPECT_THAT(run_after(100ms), ElementsAre("WATCHDOG=1"));
  EXPECT_THAT(run_after(1s), IsEmpty());
  EXPECT_THAT(run_after(10s), ElementsAre("WATCHDOG=1"));
  manager.reset();
  loop_.reset();
}

TEST_F(ServiceManagerTest, LeavesWatchdogOfAnotherProcessAlone) {
  open_path();
  ::setenv("WATCHDOG_USEC", "1000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  const ServiceManager manager = this->manager();
  EXPECT_EQ(manager.watchdog(), 0ns);
  run_for(10ms);
  EXPECT_THAT(receive_all(), IsEmpty());
}

TEST_F(ServiceManagerTest, BoundsRateOfWatchdog) {
  open_path();
  ::setenv("WATCHDOG_USEC", "1", 1);
  const ServiceManager manager = this->manager();
  run_for(5ms);
  EXPECT_FALSE(receive_all().empty());
  EXPECT_LE(loop_->metrics().turns, 20U);  // Not one each half of a microsecond.
}

TEST_F(ServiceManagerTest, OutlivesItsLoop) {
  open_path();
  ::setenv("WATCHDOG_USEC", "2000", 1);
  ServiceManager manager = this->manager();
  const int filled = fill();
  EXPECT_FALSE(manager.ready());
  loop_.reset();
  EXPECT_THAT(receive_all(), SizeIs(filled));
  EXPECT_FALSE(manager.stopping());
  EXPECT_THAT(receive_all(), ElementsAre("READY=1", "STOPPING=1"));
}

TEST_F(ServiceManagerTest, SendsNothingInChildOfFork) {
  open_path();
  std::optional<ServiceManager> manager = this->manager();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool is_refused = manager->ready() == Error::loop_forked;
    manager.reset();
    ::_exit(is_refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(receive_all(), IsEmpty());
}

TEST_F(ServiceManagerTest, ReturnsErrorsOfSystem) {
  open_path();
  FaultPlan plan;
  plan.fail_nth(SystemCall::socket, 1, EMFILE).fail_nth(SystemCall::send, 1, EACCES);
  const FaultScope scope(plan);
  EXPECT_EQ(error(), std::errc::too_many_files_open);
  EXPECT_EQ(manager().ready(), std::errc::permission_denied);
}

}  // namespace
}  // namespace spate::testing
