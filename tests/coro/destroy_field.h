// The operations of the destroy matrix: each that can be awaited, except those of HTTP.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <latch>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "spate/coro/callback_awaiter.h"
#include "spate/coro/channel.h"
#include "spate/coro/child.h"
#include "spate/coro/connect.h"
#include "spate/coro/datagram.h"
#include "spate/coro/generator.h"
#include "spate/coro/listener.h"
#include "spate/coro/mailbox.h"
#include "spate/coro/offload.h"
#include "spate/coro/on_loop.h"
#include "spate/coro/or_return.h"
#include "spate/coro/scope.h"
#include "spate/coro/signals.h"
#include "spate/coro/stream.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"
#include "spate/coro/when.h"
#include "tests/coro/destroy_moments.h"
#include "tests/coro/mark.h"
#include "tests/support/scripted.h"

namespace spate::testing::destroying {

using namespace std::chrono_literals;
using coro::Task;

struct Sink final : StreamHandler {
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code) override {}
};

inline Task<void> sleeper(int* live) {
  const Mark mark(live);
  co_await coro::sleep(1h);
}

// A listener that never accepts, so that connecting to it never finishes.
struct Silence {
  explicit Silence(Loop& loop)
      : listener(
            must(spate::Listener::create(loop, Address::loopback_ipv4(0), {}, {.backlog = 0}))) {
    listener.pause();
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(crowd.emplace_back().connect(loop, address(), sink));
  }
  Address address() const { return listener.address(); }

  spate::Listener listener;
  Sink sink;
  std::list<spate::Stream> crowd;  // More than the backlog takes.
};

// A child process that waits to be killed.
class Sleeping {
 public:
  Sleeping() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  ~Sleeping() {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeping(const Sleeping&) = delete;
  Sleeping& operator=(const Sleeping&) = delete;

  int pid() const { return pid_; }
  void kill() const { ::kill(pid_, SIGKILL); }

 private:
  int pid_;
};

// Work on another thread, which ends on request.
struct Work {
  ~Work() { end(); }
  void end() {
    if (!std::exchange(may_end, true)) gate.count_down();
  }

  std::latch gate{1};
  bool may_end = false;
  ThreadPool pool;
};

// A pair of unix sockets; one end is not read until it is drained.
struct Narrow {
  explicit Narrow(Loop& loop) : Narrow(loop, ends()) {}
  Narrow(Loop& loop, std::pair<int, int> fds)
      : from(must(spate::Datagram::adopt(loop, fds.first))), to(fds.second) {}
  ~Narrow() { ::close(to); }
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;

  static std::pair<int, int> ends() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    return {fds[0], fds[1]};
  }
  void fill() {
    while (!from.datagram().send(bytes_of("x"))) {
    }
  }
  void empty() const {
    char byte = 0;
    while (::recv(to, &byte, 1, 0) >= 0) {
    }
  }

  coro::Datagram from;
  int to;
};

// The objects that the operations wait for, and counters. The clock stands still unless it is
// advanced.
struct Field {
  explicit Field(std::string_view backend)
      : loop(must(Loop::create({.backend = backend, .clock = &clock}))) {}

  void turns(int count) {
    for (int i = 0; i < count && resumed == 0; ++i) loop->run(Run::no_wait);
  }
  // The peer reads, which makes room.
  void read_at_the_peer() {
    if (!std::exchange(peer_reads, true)) peer.start(sink);
  }

  ScriptedClock clock;
  std::unique_ptr<Loop> loop;
  std::unique_ptr<Loop> other_loop = must(Loop::create());
  int live = 0;
  int resumed = 0;  // Tasks that were resumed.
  Sink sink;
  bool peer_reads = false;
  std::pair<spate::Stream, spate::Stream> pair = must(spate::Stream::memory_pair(*loop));
  spate::Stream peer{std::move(pair.first)};
  coro::Stream stream{std::move(pair.second)};
  coro::Datagram packets{must(spate::Datagram::create(*loop, Address::loopback_ipv4(0)))};
  coro::Channel<int> channel{1};
  coro::Semaphore semaphore{0};
  coro::Mutex mutex;
  coro::Mutex::Lock lock = mutex.try_lock();
  coro::Event event;
  coro::Mailbox<int> mailbox{*loop, 1};
  // Objects that only some operations need:
  std::optional<coro::Listener> listener;
  std::list<spate::Stream> newcomers;
  std::optional<Silence> silence;
  std::optional<Narrow> narrow;
  std::optional<coro::Signals> signals;
  std::optional<Sleeping> child;
  std::optional<Work> work;

  coro::Scope others{*loop};
  std::optional<coro::Scope> scope{*loop};
};

// ---- tasks that wait

inline Task<void> sleeps(Field* field) {
  const Mark mark(&field->live);
  co_await coro::sleep(1h);
  ++field->resumed;
}
inline Task<void> reads_some(Field* field) {
  const Mark mark(&field->live);
  co_await field->stream.read_some();
  ++field->resumed;
}
inline Task<void> reads_exactly(Field* field) {
  const Mark mark(&field->live);
  co_await field->stream.read_exactly(3);
  ++field->resumed;
}
inline Task<void> reads_a_line(Field* field) {
  const Mark mark(&field->live);
  co_await field->stream.read(Delimiter{});
  ++field->resumed;
}
inline Task<void> reads_its_own(Field* field) {
  const Mark mark(&field->live);
  auto pair = must(spate::Stream::memory_pair(*field->loop));
  field->peer = std::move(pair.first);
  coro::Stream own(std::move(pair.second));
  co_await own.read_some();
  ++field->resumed;
}
inline Task<void> sends(Field* field) {
  const Mark mark(&field->live);
  const std::string much(3'000'000, 'x');
  co_await field->stream.send(much);
  ++field->resumed;
}
inline Task<void> waits_for_room(Field* field) {
  const Mark mark(&field->live);
  const std::string much(3'000'000, 'x');
  field->stream.write(much);
  co_await field->stream.drained();
  ++field->resumed;
}
inline Task<void> finishes(Field* field) {
  const Mark mark(&field->live);
  co_await field->stream.finish();
  ++field->resumed;
}
inline Task<void> receives_a_packet(Field* field) {
  const Mark mark(&field->live);
  co_await field->packets.receive();
  ++field->resumed;
}
inline Task<void> receives_packets(Field* field) {
  const Mark mark(&field->live);
  co_await field->packets.receive_some();
  ++field->resumed;
}
// Fills the socket's buffer first, so that the next packet must wait.
inline Task<void> sends_a_packet(Field* field) {
  const Mark mark(&field->live);
  if (!field->narrow) field->narrow.emplace(*field->loop);
  field->narrow->fill();
  co_await field->narrow->from.send("x");
  ++field->resumed;
}
inline Task<void> receives(Field* field) {
  const Mark mark(&field->live);
  co_await field->channel.receive();
  ++field->resumed;
}
inline Task<void> receives_until_stop(Field* field) {
  const Mark mark(&field->live);
  co_await coro::until_stop(field->channel.receive());
  ++field->resumed;
}
inline Task<void> puts(Field* field) {
  const Mark mark(&field->live);
  field->channel.try_send(1);
  co_await field->channel.send(2);
  ++field->resumed;
}
inline coro::Generator<int> gives_after_an_hour(int* live) {
  const Mark mark(live);
  co_yield 1;
  co_await coro::sleep(1h);
  co_yield 2;
}
inline Task<void> asks_a_generator(Field* field) {
  const Mark mark(&field->live);
  coro::Generator<int> values = gives_after_an_hour(&field->live);
  co_await values.next();
  co_await values.next();
  ++field->resumed;
}
inline Task<void> acquires(Field* field) {
  const Mark mark(&field->live);
  const coro::Semaphore::Permit permit(co_await field->semaphore.acquire());
  ++field->resumed;
}
inline Task<void> locks(Field* field) {
  const Mark mark(&field->live);
  const coro::Mutex::Lock lock(co_await field->mutex.lock());
  ++field->resumed;
}
inline Task<void> waits_for_an_event(Field* field) {
  const Mark mark(&field->live);
  co_await field->event.wait();
  ++field->resumed;
}
inline Task<void> joins(Field* field) {
  const Mark mark(&field->live);
  field->others.spawn(sleeper(&field->live));
  co_await field->others.join();
  ++field->resumed;
}
inline Task<void> joins_with_grace(Field* field) {
  const Mark mark(&field->live);
  field->others.spawn(sleeper(&field->live));
  co_await field->others.join(1h);
  ++field->resumed;
}
inline Task<void> awaits_a_task(Field* field) {
  const Mark mark(&field->live);
  co_await sleeper(&field->live);
  ++field->resumed;
}
inline Task<void> awaits_all(Field* field) {
  const Mark mark(&field->live);
  co_await coro::when_all(sleeper(&field->live), sleeper(&field->live));
  ++field->resumed;
}
inline Task<void> awaits_any(Field* field) {
  const Mark mark(&field->live);
  co_await coro::when_any(sleeper(&field->live), sleeper(&field->live));
  ++field->resumed;
}
inline Task<void> awaits_for_a_time(Field* field) {
  const Mark mark(&field->live);
  co_await coro::with_deadline(2h, sleeper(&field->live));
  ++field->resumed;
}
inline Task<void> reads_until_stop(Field* field) {
  const Mark mark(&field->live);
  co_await coro::until_stop(field->stream.read_some());
  ++field->resumed;
}
inline Task<Result<void>> reads_or_returns(Field* field) {
  const Mark mark(&field->live);
  co_await coro::or_return(field->stream.read_some());
  co_return Result<void>();
}
inline Task<void> awaits_or_return(Field* field) {
  co_await reads_or_returns(field);
  ++field->resumed;
}
inline Task<void> gets_mail(Field* field) {
  const Mark mark(&field->live);
  co_await field->mailbox.receive();
  ++field->resumed;
}
inline Task<void> accepts(Field* field) {
  const Mark mark(&field->live);
  if (!field->listener) {
    field->listener.emplace(must(coro::Listener::create(*field->loop, Address::loopback_ipv4(0))));
  }
  co_await field->listener->accept();
  ++field->resumed;
}
inline Task<void> connects(Field* field) {
  const Mark mark(&field->live);
  if (!field->silence) field->silence.emplace(*field->loop);
  const Address address = field->silence->address();
  co_await coro::connect(address, {.timeout = 1h});
  ++field->resumed;
}
inline Task<void> connects_by_name(Field* field) {
  const Mark mark(&field->live);
  if (!field->silence) field->silence.emplace(*field->loop);
  const std::uint16_t port = field->silence->address().port();
  co_await coro::connect("127.0.0.1", port, {.timeout = 1h});
  ++field->resumed;
}
inline Task<void> waits_for_a_signal(Field* field) {
  const Mark mark(&field->live);
  if (!field->signals) {
    EXPECT_FALSE(field->signals.emplace(*field->loop).add(SIGUSR1));
  }
  co_await field->signals->next();
  ++field->resumed;
}
inline Task<void> waits_for_a_child(Field* field) {
  const Mark mark(&field->live);
  if (!field->child) field->child.emplace();
  co_await coro::exit_of(field->child->pid());
  ++field->resumed;
}
inline Task<void> calls_on_another_loop(Field* field) {
  const Mark mark(&field->live);
  co_await coro::on(*field->other_loop, [] { return 1; });
  ++field->resumed;
}
inline Task<void> waits_for_work(Field* field) {
  const Mark mark(&field->live);
  if (!field->work) field->work.emplace();
  const auto work = [gate = &field->work->gate] { gate->wait(); };
  co_await coro::offload(work, field->work->pool);
  ++field->resumed;
}
inline Task<void> waits_for_an_answer(Field* field) {
  const Mark mark(&field->live);
  co_await coro::CallbackAwaiter<Result<void>>::of([](Loop& loop, auto reply) {
    auto timer = std::make_unique<Timer>(loop, reply);
    EXPECT_TRUE(timer->start(1h));
    return timer;
  });
  ++field->resumed;
}

// ---- completing them

inline void let_time_pass(Field& field) { field.clock.advance(1h); }
inline void write_at_the_peer(Field& field) { field.peer.write("abc\n"); }
inline void read_at_the_peer(Field& field) { field.read_at_the_peer(); }
inline void end_at_the_peer(Field& field) {
  field.read_at_the_peer();
  field.peer.end();
}
inline void send_a_packet(Field& field) {
  const Address to = field.packets.datagram().local_address();
  spate::Datagram from = must(spate::Datagram::create(*field.other_loop, Address::any_ipv4(0)));
  EXPECT_FALSE(from.send(bytes_of("x"), to));
}
inline void make_room(Field& field) {
  if (field.narrow) field.narrow->empty();
}
inline void put(Field& field) { field.channel.try_send(1); }
inline void take(Field& field) { field.channel.try_receive(); }
inline void release(Field& field) { field.semaphore.release(); }
inline void unlock(Field& field) { field.lock.release(); }
inline void set(Field& field) { field.event.set(); }
inline void cancel_others(Field& field) { field.others.cancel(); }
inline void post_mail(Field& field) { field.mailbox.post(1); }
inline void make_a_connection(Field& field) {
  if (!field.listener) return;
  const Address to = field.listener->listener().address();
  EXPECT_FALSE(field.newcomers.emplace_back().connect(*field.loop, to, field.sink));
}
inline void raise_a_signal(Field& field) {
  if (field.signals) std::raise(SIGUSR1);
}
inline void kill_the_child(Field& field) {
  if (field.child) field.child->kill();
}
inline void run_the_other_loop(Field& field) { field.other_loop->run(Run::no_wait); }
inline void let_work_end(Field& field) {
  if (field.work) field.work->end();
}
inline void stop_its_scope(Field& field) {
  if (field.scope) field.scope->stop();
}

inline const Operation<Field> kOperations[] = {
    {"sleep", sleeps, let_time_pass},
    {"read_some", reads_some, write_at_the_peer},
    {"read_exactly", reads_exactly, write_at_the_peer},
    {"read_framed", reads_a_line, write_at_the_peer},
    {"read_of_its_own", reads_its_own, write_at_the_peer},
    {"send", sends, read_at_the_peer},
    {"drained", waits_for_room, read_at_the_peer},
    {"finish", finishes, end_at_the_peer},
    {"datagram_receive", receives_a_packet, send_a_packet},
    {"datagram_receive_some", receives_packets, send_a_packet},
    {"datagram_send", sends_a_packet, make_room},
    {"receive", receives, put},
    {"until_stop_receive", receives_until_stop, put},
    {"channel_send", puts, take},
    {"acquire", acquires, release},
    {"lock", locks, unlock},
    {"event", waits_for_an_event, set},
    {"join", joins, cancel_others},
    {"join_with_grace", joins_with_grace, let_time_pass},
    {"task", awaits_a_task, let_time_pass},
    {"generator_next", asks_a_generator, let_time_pass},
    {"when_all", awaits_all, let_time_pass},
    {"when_any", awaits_any, let_time_pass},
    {"with_deadline", awaits_for_a_time, let_time_pass},
    {"until_stop", reads_until_stop, write_at_the_peer},
    {"until_stop_and_stopped", reads_until_stop, stop_its_scope, false},
    {"or_return", awaits_or_return, write_at_the_peer},
    {"mailbox_receive", gets_mail, post_mail},
    {"accept", accepts, make_a_connection},
    {"connect", connects, let_time_pass},
    {"connect_by_name", connects_by_name, let_time_pass},
    {"signals_next", waits_for_a_signal, raise_a_signal},
    {"exit_of", waits_for_a_child, kill_the_child},
    {"on", calls_on_another_loop, run_the_other_loop},
    {"offload", waits_for_work, let_work_end},
    {"answer", waits_for_an_answer, let_time_pass},
};

}  // namespace spate::testing::destroying
