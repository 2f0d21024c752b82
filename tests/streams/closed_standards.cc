// The library in a program that was started without descriptor 0, 1 or 2. Nothing that the library
// opens gets one of these numbers: text that the program prints would reach a peer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "spate/child.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/process.h"
#include "spate/net/resolver.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/stat.h"
#include "streams/harness.h"
#include "sys/bell.h"
#include "sys/clock_change.h"
#include "sys/directory.h"
#include "sys/epoll.h"
#include "sys/file.h"
#include "sys/inherited.h"
#include "sys/inotify.h"
#include "sys/pidfd.h"
#include "sys/process.h"
#include "sys/ring.h"
#include "sys/socket.h"
#include "sys/spawn.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kStandards[] = {0, 1, 2};

std::string file_of(int fd) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
  return error ? "closed" : path.string();
}

// The parameter is the set of closed descriptors, one bit each.
class ClosedStandards : public ::testing::TestWithParam<unsigned> {
 protected:
  // Calls `body` in a child process without the descriptors. It returns its complaint, or "".
  static void in_a_child(const std::function<std::string()>& body) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(120);
      for (const int fd : kStandards)
        if (is_closed(fd)) ::close(fd);
      const std::string complaint = body();
      const auto size = static_cast<ssize_t>(complaint.size());
      ::_exit(::write(ends[1], complaint.data(), complaint.size()) == size ? 0 : 1);
    }
    ::close(ends[1]);
    std::string complaint;
    char piece[512];
    ssize_t size = 0;
    while ((size = ::read(ends[0], piece, sizeof(piece))) > 0)
      complaint.append(piece, static_cast<std::size_t>(size));
    ::close(ends[0]);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(complaint, "");
  }
  static bool is_closed(int fd) { return (GetParam() >> fd & 1) != 0; }
  // Returns the closed numbers that belong to a file now.
  static std::string taken() {
    std::string numbers;
    for (const int fd : kStandards) {
      if (is_closed(fd) && sys::is_open(fd))
        numbers += std::to_string(fd) + " is " + file_of(fd) + "; ";
    }
    return numbers;
  }
};

INSTANTIATE_TEST_SUITE_P(EachSubset, ClosedStandards, ::testing::Range(1u, 8u));

// ---- each call that opens a descriptor

struct OpeningCall {
  const char* name;
  long (*open)();
};

const OpeningCall kCalls[] = {
    {"duplicate", [] { return sys::duplicate(sys::Descriptor(sys::create_eventfd()).get()); }},
    {"eventfd", [] { return sys::create_eventfd(); }},
    {"timerfd", [] { return sys::create_clock_change_timer(); }},
    {"epoll", [] { return sys::epoll_create(); }},
    {"inotify", [] { return sys::inotify_create(); }},
    {"socket", [] { return sys::open_socket(AF_UNIX, SOCK_STREAM); }},
    {"root", [] { return sys::open_root("/"); }},
    {"step", [] { return sys::open_step(AT_FDCWD, ".", sys::Step::through); }},
    {"beneath",
     [] {
       const sys::Descriptor root(sys::open_root("/"));
       const long fd = sys::open_beneath(root.get(), "proc", sys::Waiting::allowed);
       return fd == -ENOSYS ? sys::open_root("/") : fd;
     }},
    {"pidfd",
     [] {
       const long fd = sys::pidfd_open(::getpid());
       return fd == -ENOSYS ? sys::open_root("/") : fd;
     }},
};

TEST_P(ClosedStandards, OpeningCallDoesNotReturnStandardDescriptor) {
  in_a_child([] {
    std::string complaints;
    for (const OpeningCall& call : kCalls) {
      const sys::Descriptor fd(call.open());
      const std::string found = taken();
      if (!fd.is_open() || !found.empty())
        complaints += call.name + (": " + std::to_string(fd.get())) + " " + found + '\n';
    }
    return complaints;
  });
}

TEST_P(ClosedStandards, PairCallDoesNotReturnStandardDescriptors) {
  in_a_child([] {
    int pipe[2];
    int pair[2];
    if (sys::open_pipe(pipe) != 0 || sys::open_pair(pair) != 0) return std::string("error");
    if (pipe[0] < 3 || pipe[1] < 3 || pair[0] < 3 || pair[1] < 3) return std::string("number");
    if (::write(pipe[1], "x", 1) != 1 || ::write(pair[1], "x", 1) != 1) return std::string("ends");
    char byte;
    if (::read(pipe[0], &byte, 1) != 1 || ::read(pair[0], &byte, 1) != 1) return std::string("end");
    return taken();
  });
}

TEST_P(ClosedStandards, AreFreeAgainIfDescriptorCannotBeMoved) {
  in_a_child([] {
    FaultPlan plan;
    plan.fail_share(SystemCall::duplicate, 1, EMFILE, 1);
    const FaultScope scope(plan);
    int pipe[2];
    if (sys::create_eventfd() != -EMFILE || sys::open_pipe(pipe) != -EMFILE)
      return std::string("it was moved");
    return taken();
  });
}

TEST_P(ClosedStandards, RingLockAndListDoNotTakeStandardDescriptors) {
  in_a_child([] {
    sys::Ring ring;
    (void)ring.open(8, 16);  // A sandbox may forbid it.
    std::string found = taken();
    const std::string path = "spate_closed_standards_" + std::to_string(::getpid());
    sys::LockFile lock;
    if (lock.lock(path) != 0) return std::string("lock");
    found += taken();
    sys::for_each_inherited(0, [&found](int) {
      found += taken();
      return 0;
    });
    return found;
  });
}

// ---- objects

TEST_P(ClosedStandards, AreNotThoseOfLoop) {
  in_a_child([] {
    std::string complaints;
    for (const std::string_view backend : Loop::backends()) {
      const auto loop = must(Loop::create({.backend = backend}));
      int calls = 0;
      Signal signal(*loop, [&calls] { ++calls; });
      Stat stat(*loop, [] {});
      Periodic periodic(*loop, [] {});
      Child child(*loop, [&calls] { ++calls; });
      const int pid = ::fork();
      if (pid == 0) ::_exit(0);
      if (signal.start(SIGUSR1) || stat.start("/tmp") || child.start(pid))
        return std::string("start");
      if (!periodic.start_every(1h)) return std::string("start");
      ::raise(SIGUSR1);
      while (calls < 2) (void)loop->run(Run::once);
      complaints += taken();
      if (!complaints.empty()) return std::string(backend) + ": " + complaints;
    }
    return complaints;
  });
}

// Sends text from each end to the other. Returns a complaint or "".
std::string talk(Loop& loop, Stream& near, Stream& far) {
  Recorder here;
  Recorder there;
  near.start(here);
  far.start(there);
  near.write("question");
  far.write("answer");
  run_until(loop, [&] { return there.received.size() >= 8 && here.received.size() >= 6; });
  const bool is_right = there.received == "question" && here.received == "answer";
  near = {};
  far = {};
  return is_right ? "" : "received " + there.received + " and " + here.received;
}

std::string talk_at(Loop& loop, const Address& address, const std::function<std::string()>& taken) {
  Stream near;
  Stream far;
  const auto listener = must(Listener::create(
      loop, address, [&](Stream stream, const Address&) { far = std::move(stream); }));
  const auto attempt = connect(loop, listener.address(), [&](Result<Stream> stream) {
    if (stream) near = std::move(*stream);
  });
  run_until(loop, [&] { return near.is_open() && far.is_open(); });
  const std::string found = taken();
  return found + talk(loop, near, far);
}

TEST_P(ClosedStandards, AreNotThoseOfConnections) {
  in_a_child([] {
    const auto loop = must(Loop::create());
    const std::string path = "spate_closed_" + std::to_string(::getpid()) + ".sock";
    std::string complaints = talk_at(*loop, Address::loopback_ipv4(0), &taken);
    complaints += talk_at(*loop, must(Address::path(path)), &taken);
    ::unlink(path.c_str());
    auto pair = must(Stream::socket_pair(*loop));
    complaints += taken();
    return complaints + talk(*loop, pair.first, pair.second);
  });
}

TEST_P(ClosedStandards, AreNotThoseOfDatagramsAndNameQueries) {
  in_a_child([] {
    const auto loop = must(Loop::create());
    const auto silent = must(Datagram::create(*loop, Address::loopback_ipv4(0)));
    ResolverOptions options;
    options.servers = {silent.local_address()};
    if (configure_resolver(*loop, options)) return std::string("configure");
    const Resolving query = resolve(*loop, "host.test", 80, [](auto) {});
    run_turns(*loop, 3);
    return taken();
  });
}

TEST_P(ClosedStandards, AreNotThoseOfReceivedDescriptors) {
  in_a_child([] {
    const auto loop = must(Loop::create());
    auto pair = must(Stream::socket_pair(*loop));
    std::vector<int> received;
    bool is_cut = false;
    pair.second.set_receive_descriptors(true);
    pair.second.start(StreamCallbacks{.on_data = [](Bytes bytes) { return bytes.size(); },
                                      .on_descriptors =
                                          [&](std::span<const int> fds, bool some_lost) {
                                            received.assign(fds.begin(), fds.end());
                                            is_cut = some_lost;
                                          }});
    Recorder near;
    pair.first.start(near);
    const sys::Descriptor sent(sys::create_eventfd());
    const int fds[] = {sent.get(), sent.get(), sent.get(), sent.get()};
    if (pair.first.send_descriptors(bytes_of("x"), fds)) return std::string("send");
    run_until(*loop, [&] { return !received.empty(); });
    if (received.size() != 4 || is_cut) return std::string("some are lost");
    received.clear();
    if (pair.first.send_descriptors(bytes_of("x"), fds)) return std::string("send");
    FaultPlan plan;
    plan.fail_share(SystemCall::duplicate, 1, EMFILE, 1);
    const FaultScope scope(plan);
    run_until(*loop, [&] { return !received.empty(); });
    if (!is_cut || received.size() >= 4) return std::string("the loss is not reported");
    return taken();
  });
}

// ---- spawn()

// A standard stream of the child, and the file that the child should find there.
struct Choice {
  Stdio stdio;
  std::string file;
};

// Returns the files of the child's descriptors from its report, the output of `ls -l`.
std::map<int, std::string> read_report(const std::string& path) {
  std::map<int, std::string> files;
  std::ifstream report(path);
  for (std::string line; std::getline(report, line);) {
    const std::size_t arrow = line.find(" -> ");
    if (arrow == std::string::npos) continue;
    const std::size_t before = line.rfind(' ', arrow - 1) + 1;
    files[std::stoi(line.substr(before, arrow - before))] = line.substr(arrow + 4);
  }
  return files;
}

constexpr Stdio::Kind kKindsOfInput[] = {Stdio::Kind::inherit, Stdio::Kind::null,
                                         Stdio::Kind::descriptor, Stdio::Kind::pipe};
constexpr Stdio::Kind kKindsOfErrors[] = {Stdio::Kind::inherit, Stdio::Kind::null,
                                          Stdio::Kind::descriptor, Stdio::Kind::pipe,
                                          Stdio::Kind::output};

// `own` is a descriptor of the program, which may have the number of a closed one.
Choice choice_of(Stdio::Kind kind, int number, int own) {
  switch (kind) {
    case Stdio::Kind::inherit:
      return {Stdio::inherit(), sys::is_inherited(number) ? file_of(number) : "closed"};
    case Stdio::Kind::null:
      return {Stdio::null(), "/dev/null"};
    case Stdio::Kind::descriptor:
      return {Stdio::descriptor(own), file_of(own)};
    case Stdio::Kind::pipe:
      return {Stdio::pipe(), "pipe"};
    case Stdio::Kind::output:
      return {Stdio::output(), "output"};
  }
  return {Stdio::inherit(), ""};
}

std::string found_in(const std::map<int, std::string>& files, int number) {
  const auto found = files.find(number);
  return found == files.end() ? "closed" : found->second;
}

// Starts a child that reports its descriptors. Returns a complaint or "".
std::string spawn_with(Loop& loop, const std::string& report, Choice (&choices)[3]) {
  std::optional<int> code;
  Result<Process> process =
      spawn(loop,
            {.file = "/bin/sh",
             .arguments = {"-c", "(ls -l /proc/$$/fd >\"$0\") && exit 7", report},
             .input = choices[0].stdio,
             .output = choices[1].stdio,
             .errors = choices[2].stdio},
            [&](const Child& child) { code = child.exit_code(); });
  if (!process) return "spawn: " + process.error().message();
  const Stream* streams[] = {&process->input, &process->output, &process->errors};
  for (const int number : kStandards) {
    std::string& expected = choices[number].file;
    if (expected == "pipe") expected = file_of(streams[number]->fd());
    if (expected == "output") expected = choices[1].file;
  }
  run_until(loop, [&] { return code.has_value(); });
  if (code != 7) return "exit code " + std::to_string(*code);
  const std::map<int, std::string> files = read_report(report);
  std::string complaints;
  for (const int number : kStandards) {
    const std::string found = found_in(files, number);
    if (found != choices[number].file)
      complaints +=
          std::to_string(number) + " is " + found + ", not " + choices[number].file + "; ";
  }
  return complaints;
}

// Pairs each kind of input with each of output, and each of these with two kinds of errors.
TEST_P(ClosedStandards, ChildGetsStandardsOfSpawnOptions) {
  in_a_child([] {
    const auto loop = must(Loop::create());
    const std::string report = "spate_spawned_" + std::to_string(::getpid());
    const int own = ::open("/dev/zero", O_RDWR | O_CLOEXEC);  // The lowest number.
    std::string complaints;
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t input = i % 4;
      const std::size_t output = i / 4 % 4;
      const std::size_t errors = (i < 16 ? input + output : input + 2 * output + 3) % 5;
      Choice choices[] = {choice_of(kKindsOfInput[input], 0, own),
                          choice_of(kKindsOfInput[output], 1, own),
                          choice_of(kKindsOfErrors[errors], 2, own)};
      const std::string complaint = spawn_with(*loop, report, choices);
      if (!complaint.empty())
        complaints += std::to_string(input) + std::to_string(output) + std::to_string(errors) +
                      ": " + complaint + "\n";
    }
    ::unlink(report.c_str());
    return complaints;
  });
}

TEST_P(ClosedStandards, AreNotAcceptedAsDescriptorsOfSpawn) {
  in_a_child([] {
    const auto loop = must(Loop::create());
    std::string complaints;
    for (const int fd : kStandards) {
      const Result<Process> process =
          spawn(*loop, {.file = "true", .input = Stdio::pipe(), .output = Stdio::descriptor(fd)},
                [](const Child&) {});
      if (process.has_value() == is_closed(fd)) complaints += std::to_string(fd) + " ";
    }
    return complaints;
  });
}

}  // namespace

// The pipe for the input had the number.
TEST(SpawnDescriptor, IsCheckedBeforePipeGetsItsNumber) {
  const auto loop = must(Loop::create());
  const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(lowest);
  const Result<Process> process =
      spawn(*loop, {.file = "true", .input = Stdio::pipe(), .output = Stdio::descriptor(lowest)},
            [](const Child&) {});
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error(), std::errc::bad_file_descriptor);
}

}  // namespace spate::testing
