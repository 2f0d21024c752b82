// Every kind of callback throws, each in a separate process. The process must end by
// std::terminate(), and print the kind of callback and the exception, in the standard handler's
// words.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "ending.h"
#include "spate/async.h"
#include "spate/child.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/loop.h"
#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/process.h"
#include "spate/net/relay.h"
#include "spate/net/resolver.h"
#include "spate/net/session.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/net/workers.h"
#include "spate/offload.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/stat.h"
#include "spate/timer.h"

namespace {

using namespace spate;

[[noreturn]] void fail() { throw std::runtime_error("thrown by the test"); }

struct ThrowingData final : StreamHandler {
  std::size_t on_data(Bytes) override { fail(); }
  void on_closed(std::error_code) override {}
  Stream stream;
};

struct ThrowingEnd final : StreamHandler {
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code) override { fail(); }
  Stream stream;
};

struct ThrowingPackets final : DatagramHandler {
  void on_packets(std::span<const Packet>) override { fail(); }
};

void run(Loop& loop) { loop.run(); }

void timer(Loop& loop) {
  Timer timer(loop, [] { fail(); });
  timer.start(Nanos{1});
  run(loop);
}

void measured(Loop& loop) {
  loop.measure_callbacks(true);
  timer(loop);
}

void nested(Loop& loop) {
  Async outer(loop, [&loop] { timer(loop); });
  outer.start();
  outer.send();
  run(loop);
}

void io(Loop& loop) {
  Io io(loop, STDERR_FILENO, Events::write, [] { fail(); });
  io.start();
  run(loop);
}

void async(Loop& loop) {
  Async async(loop, [] { fail(); });
  async.start();
  async.send();
  run(loop);
}

void signal(Loop& loop) {
  Signal signal(loop, [] { fail(); });
  (void)signal.start(SIGUSR1);
  (void)::raise(SIGUSR1);
  run(loop);
}

void periodic(Loop& loop) {
  Periodic periodic(loop, [] { fail(); });
  periodic.start_at(WallTime{});
  run(loop);
}

void periodic_function(Loop& loop) {
  Periodic periodic(loop, [] {});
  periodic.reschedule_with([](void*, WallTime) -> WallTime { fail(); });
}

template <class Hook>
void hook(Loop& loop) {
  Timer soon(loop, [] {});
  soon.start(Nanos{1});
  Hook hook(loop, [] { fail(); });
  hook.start();
  run(loop);
}

void cleanup(Loop&) {
  std::unique_ptr<Loop> loop = Loop::create().value();
  Cleanup cleanup(*loop, [] { fail(); });
  cleanup.start();
  loop.reset();
}

// Exits as this process's own child does.
void fork_hook(Loop& loop) {
  Fork hook(loop, [] { fail(); });
  hook.start();
  const int pid = ::fork();
  if (pid == 0) {
    (void)loop.after_fork();
    run(loop);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) (void)::raise(WTERMSIG(status));
}

void child(Loop& loop) {
  const int pid = ::fork();
  if (pid == 0) ::_exit(0);
  Child child(loop, [] { fail(); });
  (void)child.start(pid);
  run(loop);
}

void stat(Loop& loop) {
  char path[] = "/tmp/spate_exceptions_XXXXXX";
  const int file = ::mkstemp(path);
  Stat stat(loop, [] { fail(); });
  (void)stat.start(path);
  ::unlink(path);
  ::close(file);
  run(loop);
}

void fed(Loop& loop) {
  Timer timer(loop, [] { fail(); });
  timer.feed();
  run(loop);
}

void post(Loop& loop) {
  loop.post([] { fail(); });
  run(loop);
}

void once(Loop& loop) {
  (void)loop.once(STDERR_FILENO, Events::read, Nanos{1}, [](Events) { fail(); });
  run(loop);
}

void after(Loop& loop) {
  (void)loop.after(Nanos{1}, [] { fail(); });
  run(loop);
}

void deferred(Loop& loop) {
  loop.defer([] { fail(); });
  run(loop);
}

void on_signal(Loop& loop) {
  (void)loop.on_signal(SIGUSR1, [] { fail(); });
  ::raise(SIGUSR1);
  run(loop);
}

template <class Handler>
void stream(Loop& loop) {
  Result<std::pair<Stream, Stream>> pair = Stream::socket_pair(loop);
  Handler handler;
  handler.stream = std::move(pair->first);
  handler.stream.start(handler);
  pair->second.write("x");
  pair->second.end();
  handler.stream.end();
  run(loop);
}

void functions(Loop& loop) {
  Result<std::pair<Stream, Stream>> pair = Stream::memory_pair(loop);
  (void)pair->first.start({.on_data = [](Bytes) -> std::size_t { fail(); }});
  pair->second.write("x");
  run(loop);
}

struct ThrowingSession : Session {
  std::size_t on_data(Bytes) override { fail(); }
};

void session(Loop& loop) {
  Result<std::pair<Stream, Stream>> pair = Stream::memory_pair(loop);
  Sessions<ThrowingSession> sessions(loop);
  sessions.open(std::move(pair->first));
  pair->second.write("x");
  run(loop);
}

void drained(Loop& loop) {
  Sessions<ThrowingSession> sessions(loop);
  sessions.drain(Nanos{1}, [] { fail(); });
  run(loop);
}

void relayed(Loop& loop) {
  Result<std::pair<Stream, Stream>> one = Stream::memory_pair(loop);
  Result<std::pair<Stream, Stream>> two = Stream::memory_pair(loop);
  const Relaying relaying =
      relay(std::move(one->first), std::move(two->first), [](const RelayResult&) { fail(); });
  one->second.abort();
  run(loop);
}

// Without a context the handshake fails.
void secured(Loop& loop) {
  Result<std::pair<Stream, Stream>> pair = Stream::memory_pair(loop);
  const auto connecting =
      start_tls(std::move(pair->first), TlsContext(), "host", [](TlsResult<Stream>) { fail(); });
  run(loop);
}

void datagram(Loop& loop) {
  Datagram datagram = Datagram::create(loop, Address::loopback_ipv4(0)).value();
  ThrowingPackets handler;
  datagram.start(handler);
  const char byte = 'x';
  (void)datagram.send(std::as_bytes(std::span(&byte, 1)), datagram.local_address());
  run(loop);
}

void accept(Loop& loop) {
  const auto refuse = [](Stream, const Address&) { fail(); };
  Listener listener = Listener::create(loop, Address::loopback_ipv4(0), refuse).value();
  const auto connecting = connect(loop, listener.address(), [](Result<Stream>) {});
  run(loop);
}

void connected(Loop& loop) {
  const auto connecting = connect(loop, Address::loopback_ipv4(1), [](Result<Stream>) { fail(); });
  run(loop);
}

void connected_by_name(Loop& loop) {
  const auto connecting = connect(loop, "127.0.0.1", 1, [](Result<Stream>) { fail(); });
  run(loop);
}

void client(Loop& loop) {
  Client client =
      Client::create(loop, Address::loopback_ipv4(1), [](Result<Stream>) { fail(); }).value();
  client.connect();
  run(loop);
}

void resolved(Loop& loop) {
  const auto resolving = resolve(loop, "127.0.0.1", 1, [](auto) { fail(); });
  run(loop);
}

void resolved_each(Loop& loop) {
  const auto resolving =
      resolve_each(loop, "127.0.0.1", 1, [](auto&&...) { fail(); }, [](std::error_code) {});
  run(loop);
}

// Accepts on the thread of a worker.
void accept_on_a_worker(Loop& loop) {
  const std::unique_ptr<Workers> workers = Workers::create({.threads = 1}).value();
  const Address address =
      workers->listen(Address::loopback_ipv4(0), [](Stream, const Address&) { fail(); }).value();
  const auto connecting = connect(loop, address, [](Result<Stream>) {});
  loop.ref();
  run(loop);
}

void drained_worker(Loop&) {
  const std::unique_ptr<Workers> workers = Workers::create({.threads = 1}).value();
  workers->stop(Nanos{1'000'000'000}, [](Loop&) { fail(); });
}

void exited(Loop& loop) {
  const Process process = spawn(loop, {.file = "true"}, [](const Child&) { fail(); }).value();
  run(loop);
}

void offloaded(Loop& loop) {
  const Offloading job = offload(loop, [] { fail(); }, [] {}).value();
  run(loop);
}

void offloaded_and_done(Loop& loop) {
  const Offloading job = offload(loop, [] {}, [] { fail(); }).value();
  run(loop);
}

struct Case {
  const char* whose;
  void (*throws)(Loop& loop);
};

constexpr Case kCases[] = {
    {"Timer", timer},
    {"Timer", measured},
    {"Timer", nested},
    {"Io", io},
    {"Async", async},
    {"Signal", signal},
    {"Periodic", periodic},
    {"Periodic", periodic_function},
    {"Prepare", hook<Prepare>},
    {"Check", hook<Check>},
    {"Idle", hook<Idle>},
    {"Fork", fork_hook},
    {"Cleanup", cleanup},
    {"Child", child},
    {"Stat", stat},
    {"feed()", fed},
    {"post()", post},
    {"once()", once},
    {"after()", after},
    {"defer()", deferred},
    {"on_signal()", on_signal},
    {"StreamHandler", stream<ThrowingData>},
    {"StreamHandler", stream<ThrowingEnd>},
    {"StreamHandler", functions},
    {"StreamHandler", session},
    {"Sessions", drained},
    {"relay()", relayed},
    {"TLS", secured},
    {"DatagramHandler", datagram},
    {"Listener", accept},
    {"connect()", connected},
    {"connect()", connected_by_name},
    {"Client", client},
    {"resolve()", resolved},
    {"resolve()", resolved_each},
    {"Workers", accept_on_a_worker},
    {"Workers", drained_worker},
    {"spawn()", exited},
    {"offload()", offloaded},
    {"offload()", offloaded_and_done},
};

bool ends_as_it_should(const Case& what) {
  return testing::exception_ends(what.whose, [&] {
    const auto loop = Loop::create().value();
    try {
      what.throws(*loop);
    } catch (...) {
      ::_exit(2);  // The loop let the exception through.
    }
  });
}

}  // namespace

int main() {
  int wrong = 0;
  for (const Case& each : kCases) wrong += !ends_as_it_should(each);
  return wrong == 0 ? 0 : 1;
}
