// ListenOptions: the fields that no socket shows, for each function that listens; and
// ProcessOptions. The other fields are in option_pairs.cc.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "http/harness.h"
#include "http/listening_ways.h"
#include "spate/hooks.h"
#include "spate/net/process.h"
#include "streams/harness.h"
#include "sys/descriptor.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// Clients that connect, and say nothing.
class SilentClients {
 public:
  void connect(const Address& address, int count) {
    const Address there = Address::loopback_ipv6(address.port());
    for (int i = 0; i < count; ++i) {
      sys::Descriptor& one = all_.emplace_back(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(::connect(one.get(), static_cast<const sockaddr*>(there.data()),
                          static_cast<socklen_t>(there.size())),
                0);
    }
  }
  void close_first() { all_.pop_front(); }

 private:
  std::list<sys::Descriptor> all_;
};

// Runs the loop, on which some of the listeners are, until so many wait.
void expect_waiting(Listening& listening, std::uint16_t port, unsigned count) {
  const auto begun = std::chrono::steady_clock::now();
  while (waiting_at(port) != count && std::chrono::steady_clock::now() - begun < 30s) {
    listening.loop().run(Run::no_wait);
    std::this_thread::yield();
  }
  EXPECT_EQ(waiting_at(port), count);
}

TEST(ListenOptionCoverage, EachFunctionHonoursMaxConnections) {
  for (const Listening::Way& way : Listening::kAll) {
    SCOPED_TRACE(way.name);
    Listening listening(Address::any_ipv6(0), 1);
    const Result<Address> address = (listening.*way.open)({.max_connections = 2});
    ASSERT_TRUE(address) << address.error().message();
    SilentClients clients;
    clients.connect(*address, 5);
    expect_waiting(listening, address->port(), 3);
    if (way.open == &Listening::by_listener || way.open == &Listening::by_workers ||
        way.open == &Listening::by_sharing_workers)
      continue;  // Their Streams do not read, and so do not end.
    clients.close_first();
    expect_waiting(listening, address->port(), 2);
  }
}

// Counts in each turn of the accepting loop how many wait, from the turn in which they connect.
struct AcceptingTurns {
  explicit AcceptingTurns(std::uint16_t its_port) : port(its_port) {}

  void begin(Loop& loop, const Address& address, int count) {
    clients.connect(address, count);
    look();
    each_turn.emplace(loop, [this] { look(); });
    each_turn->start();
  }
  void look() {
    counts.push_back(waiting_at(port));
    if (counts.back() != 0 && counts.size() < 1'000) return;
    each_turn.reset();
    is_done = true;
  }

  const std::uint16_t port;
  SilentClients clients;
  std::vector<unsigned> counts;
  std::optional<Prepare> each_turn;
  std::atomic<bool> is_done{false};
};

TEST(ListenOptionCoverage, EachFunctionHonoursAcceptsPerTurn) {
  for (const Listening::Way& way : Listening::kAll) {
    SCOPED_TRACE(way.name);
    Listening listening(Address::any_ipv6(0), 1);
    const Result<Address> address = (listening.*way.open)({.accepts_per_turn = 2});
    ASSERT_TRUE(address) << address.error().message();
    AcceptingTurns turns(address->port());
    Loop& loop = listening.loop_that_accepts(way);
    EXPECT_TRUE(loop.post([&] { turns.begin(loop, *address, 7); }));
    while (!turns.is_done) {
      listening.loop().run(Run::no_wait);
      std::this_thread::yield();
    }
    EXPECT_EQ(turns.counts.front(), 7u);
    EXPECT_EQ(turns.counts.back(), 0u);
    for (std::size_t i = 1; i < turns.counts.size(); ++i)
      EXPECT_LE(turns.counts[i - 1] - turns.counts[i], 2u);
  }
}

// A socket file that no process has bound any more.
void leave_socket_file(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const sys::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

TEST(ListenOptionCoverage, EachFunctionHonoursReplacePath) {
  for (const Listening::Way& way : Listening::kAll) {
    SCOPED_TRACE(way.name);
    const std::string path = "/tmp/spate_option_pairs_" + std::to_string(::getpid()) + ".socket";
    leave_socket_file(path);
    const Address here = must(Address::path(path));
    {
      Listening listening(here);
      const Result<Address> refused = (listening.*way.open)({.replace_path = false});
      EXPECT_EQ(refusal_of(refused), std::errc::address_in_use);
    }
    Listening listening(here);
    EXPECT_TRUE((listening.*way.open)({.replace_path = true}));
    ::unlink(path.c_str());
  }
}

TEST(OptionPairsOfListening, EachFunctionAcceptsFromGivenSocket) {
  for (const Listening::Way& way : Listening::kAll) {
    SCOPED_TRACE(way.name);
    const sys::Descriptor socket(must(Listener::open(Address::loopback_ipv6(0))));
    Listening listening(Address::loopback_ipv6(1));  // Is ignored.
    const Result<Address> address = (listening.*way.open)({.socket = socket.get()});
    ASSERT_TRUE(address) << address.error().message();
    SilentClients clients;
    clients.connect(*address, 3);
    expect_waiting(listening, address->port(), 0);
  }
}

// ---- ProcessOptions

TEST(ProcessOptionCoverage, SpawnHonoursEachField) {
  const auto loop = must(Loop::create());
  ProcessOptions options;
  auto& [file, arguments, environment, directory, input, output, errors, listening, descriptors,
         new_group, new_session, kill_when_destroyed] = options;
  file = "sh";
  arguments = {"-c", "read line; echo $line $A $PWD; echo error >&2; exec sleep 1000"};
  environment = {"A=b", "PATH=/usr/bin:/bin"};
  directory = "/tmp";
  input = output = errors = Stdio::pipe();
  kill_when_destroyed = true;
  // streams/processes.cc covers these.
  std::ignore = std::tie(listening, descriptors);
  for (const bool is_session : {false, true}) {
    new_group = !is_session;
    new_session = is_session;
    Process process = must(spawn(*loop, options, [](const Child&) {}));
    const int pid = process.pid();
    Recorder said, complained;
    process.output.start(said);
    process.errors.start(complained);
    EXPECT_TRUE(process.input.write("line\n"));
    run_until(*loop, [&] { return complained.received == "error\n"; });
    EXPECT_EQ(said.received, "line b /tmp\n");
    EXPECT_EQ(::getpgid(pid), pid);
    EXPECT_EQ(::getsid(pid), is_session ? pid : ::getsid(0));
    process = {};
    run_until(*loop, [pid] { return ::kill(pid, 0) != 0; });
  }
}

}  // namespace
}  // namespace spate::testing
