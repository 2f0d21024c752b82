#include "chaos/couriers.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "chaos/end.h"
#include "chaos/verdict.h"
#include "chaos/world.h"

namespace spate::chaos {

namespace {

// How long a closed Stream waits for its peer, less the time that passed before it was closed.
constexpr Nanos kLinger{9'990'000'000};
constexpr std::size_t kMaxRelays = 3;
constexpr std::size_t kMaxChildren = 2;

bool is_reset(std::error_code error) {
  return error == std::error_code(ECONNRESET, std::system_category()) ||
         error == std::error_code(EPIPE, std::system_category());
}

}  // namespace

// ---- forwarding

Courier::Courier(World& world, Ways ways)
    : world_(world), ways_(ways), first_(world, *this), second_(world, *this) {}

void Courier::replace(End& end, Side& side) {
  side.peer = end.peer;
  end.peer->peer = &side;
  side.in = end.in;
  side.out = end.out;
  side.from = end.reads_from();
  side.may_show_end = end.may_show_end;
  side.may_show_cut = end.may_show_cut;
  side.may_show_error = end.may_show_error;
}

void Courier::take_over(End& from, End& to) {
  replace(from, first_);
  replace(to, second_);
  second_.out->follow(*first_.in, first_.from);
  if (ways_ == Ways::both) {
    first_.out->follow(*second_.in, second_.from);
  } else if (second_.in != nullptr) {
    second_.in->lose("thrown away by copy()");
  }
}

void Courier::stand_between(End& writer, End& reader) {
  first_.peer = &writer;
  second_.peer = &reader;
  writer.peer = &first_;
  reader.peer = &second_;
  first_.in = writer.out = world_.make_channel(Kind::pipe);
  second_.out = reader.in = world_.make_channel(Kind::pipe);
  second_.out->follow(*first_.in, 0);
}

// If one fails, so does the other.
void Courier::fail(const char* why) {
  has_failed_ = true;
  for (Side* side : {&first_, &second_}) {
    side->may_show_end = side->may_show_cut = side->may_show_error = true;
    for (Channel* channel : {side->in, side->out}) {
      if (channel != nullptr) channel->lose(why);
    }
  }
}

void Courier::pass_on(Side& from, Side& to) {
  if (from.peer->may_show_end) to.may_show_end = true;
  if (from.peer->may_show_cut || from.peer->may_show_error) fail("its courier's other side failed");
}

void Courier::catch_up() {
  if (has_failed_ || is_catching_up_) return;
  is_catching_up_ = true;
  first_.peer->catch_up();
  second_.peer->catch_up();
  is_catching_up_ = false;
  pass_on(first_, second_);
  if (ways_ == Ways::both) {
    pass_on(second_, first_);
    return;
  }
  if (second_.peer->may_show_cut || second_.peer->may_show_error) fail("nobody takes it");
  if (!first_.peer->may_show_end) return;
  // It closes both when all has been sent; unsent bytes are dropped in the end.
  first_.may_show_end = first_.may_show_error = second_.may_show_error = true;
  Channel& out = *second_.out;
  if (out.left_alone_at == Nanos{0}) out.last_progress = out.left_alone_at = world_.now();
  const Nanos since = world_.is_friendly() ? out.last_progress : out.left_alone_at;
  if (world_.time() - since >= kLinger && !out.is_whole()) fail("nobody took it for ten seconds");
}

// Returns whether couriers lead to `party`.
bool Courier::reaches(const Party& party) const {
  for (const Side* side : {&first_, &second_}) {
    if (side->peer == &party) return true;
  }
  return false;
}

bool Courier::is_lossy() const {
  for (const Side* side : {&first_, &second_}) {
    for (const Channel* channel : {side->in, side->out}) {
      if (channel != nullptr && channel->is_lossy()) return true;
    }
  }
  return false;
}

std::uint64_t Courier::forth() { return first_.in->accepted() - first_.from; }
std::uint64_t Courier::back() { return second_.in->accepted() - second_.from; }

// ---- relay() and copy()

struct Couriers::Relay {
  Relay(World& world, Courier::Ways its_ways) : courier(world, its_ways), ways(its_ways) {}

  Courier courier;
  const Courier::Ways ways;
  Relaying handle;
  bool in_relay = true;
  bool is_over = false;  // Told, or cancelled.
  bool is_cancelled = false;
  bool may_fail = false;
  bool has_limits = false;  // Limits of the Streams.
  bool has_tcp = false;     // One of its sides is TCP.
  Nanos idle{0};
  Nanos since{0};
};

// A process that copies its input to its output, and has two pipes; or one that just ends.
struct Couriers::Child {
  explicit Child(World& world) : courier(world, Courier::Ways::one) {}

  Courier courier;
  Process process;
  int pid = -1;
  bool in_spawn = true;
  bool is_copying = false;
  bool is_over = false;  // Its result arrived, or its handle was destroyed.
  bool is_gone = false;  // Let go.
  bool may_be_killed = false;
  bool dies_with_its_handle = false;
};

Couriers::Couriers(World& world) : world_(world) {}
Couriers::~Couriers() = default;

// A ring of relays would carry its bytes round without end.
void Couriers::relay(End& end, const Step& step) {
  End* const other = world_.other_end(step.b, &end);
  if (other == nullptr || relays_.size() == kMaxRelays) return;
  const bool is_copy = step.a % 3 == 0 || end.out == nullptr || other->in == nullptr;
  if (!end.may_be_relayed() || !other->may_be_relayed()) return;
  if (end.in == nullptr || other->out == nullptr || end.peer == other) return;
  if (!world_.has_met(*end.peer) || !world_.has_met(*other->peer)) return;
  for (const auto& one : relays_) {
    if (one->courier.reaches(end) || one->courier.reaches(*other)) return;
  }
  for (const auto& one : children_) {
    if (one->is_copying && one->courier.reaches(end) && one->courier.reaches(*other)) return;
  }
  if (step.a / 4 % 4 != 0) {
    end.make_plain();
    other->make_plain();
  }
  end.catch_up();
  other->catch_up();
  Relay& relay = *relays_.emplace_back(
      std::make_unique<Relay>(world_, is_copy ? Courier::Ways::one : Courier::Ways::both));
  RelayOptions options;
  if (step.a / 16 % 4 == 0) options.idle_timeout = relay.idle = Nanos{40'000'000};
  relay.has_limits = !end.is_plain() || !other->is_plain();
  relay.has_tcp = end.kind == Kind::tcp || other->kind == Kind::tcp;
  relay.may_fail = relay.idle > Nanos{0} || relay.has_limits;
  relay.since = world_.now();
  world_.tell("  %s of end %u and end %u", is_copy ? "copy" : "relay", end.number, other->number);
  relay.courier.take_over(end, *other);
  if (relay.may_fail) relay.courier.fail("by a relay that may fail");
  std::unique_ptr<Stream> first = end.pass_away();
  std::unique_ptr<Stream> second = other->pass_away();
  const auto callback = [this, &relay, token = world_.token()](const RelayResult& result) {
    on_relayed(relay, result);
  };
  relay.handle = is_copy ? copy(std::move(*first), std::move(*second), callback, options)
                         : spate::relay(std::move(*first), std::move(*second), callback, options);
  relay.in_relay = false;
}

void Couriers::on_relayed(Relay& relay, const RelayResult& result) {
  world_.moved();
  world_.tell("[relayed: %s, %llu and %llu bytes]", result.error.message().c_str(),
              static_cast<unsigned long long>(result.forth),
              static_cast<unsigned long long>(result.back));
  check(!relay.in_relay, "not_from_inside", "the callback inside relay()");
  check(!relay.is_cancelled, "cancelled_hears_nothing", "a relay that was cancelled");
  check(!relay.is_over, "one_result", "a second result of relay()");
  relay.is_over = true;
  relay.courier.catch_up();
  if (result.error == Error::idle_timeout) {
    check(relay.may_fail, "right_error", "a relay is idle, and may be");
    check(relay.has_limits || world_.now() - relay.since >= relay.idle || world_.is_stormy(),
          "right_error", "a relay is idle too early");
    world_.count(Event::relay_idle);
  } else if (result.error) {
    // copy() closes at the end, and a closed Stream waits that long for its peer.
    const bool was_patient =
        result.error == Error::write_timeout && world_.now() - relay.since >= kLinger;
    // Over TLS, a connection that is cut, by a file that is too short, is not always a reset.
    const bool is_cut = is_reset(result.error) || result.error == Error::tls_truncated;
    check(
        relay.may_fail || was_patient || (is_cut && relay.courier.is_lossy()) || world_.is_stormy(),
        "right_error", "a relay fails: %s", result.error.message().c_str());
    world_.count(Event::relay_failed);
  } else {
    world_.count(Event::relayed);
    const bool is_whole = relay.courier.is_lossy() || world_.is_stormy();
    check(is_whole || result.forth == relay.courier.forth(), "relay_counts", "%llu of %llu forth",
          static_cast<unsigned long long>(result.forth),
          static_cast<unsigned long long>(relay.courier.forth()));
    check(is_whole || relay.ways == Courier::Ways::one || result.back == relay.courier.back(),
          "relay_counts", "%llu bytes back", static_cast<unsigned long long>(result.back));
  }
  if (relay.ways == Courier::Ways::one)
    check(result.back == 0, "relay_counts", "%llu bytes back of a copy",
          static_cast<unsigned long long>(result.back));
  if (result.error) relay.courier.fail("its relay has failed");
  world_.visit({.where = Where::done});
}

// ---- processes

void Couriers::spawn(const Step& step) {
  if (children_.size() == kMaxChildren || !world_.has_room()) return;
  Child& child = *children_.emplace_back(std::make_unique<Child>(world_));
  child.is_copying = children_.size() == 1 && step.a % 4 != 0;  // Two could be made a ring.
  ProcessOptions options;
  options.file = child.is_copying ? "/bin/cat" : step.a / 4 % 2 == 0 ? "/bin/true" : "/bin/false";
  options.environment.emplace();
  options.input = child.is_copying ? Stdio::pipe() : Stdio::null();
  options.output = child.is_copying ? Stdio::pipe() : Stdio::null();
  options.errors = step.a / 8 % 2 == 0 ? Stdio::null() : Stdio::output();
  options.kill_when_destroyed = child.dies_with_its_handle = step.a / 16 % 2 == 0;
  options.new_group = step.a / 32 % 2 == 0;
  auto made = spate::spawn(world_.loop(), options,
                           [this, &child, token = world_.token()](const spate::Child& status) {
                             on_exit(child, status);
                           });
  check(made.has_value() || world_.is_stormy(), "spawns", "%s",
        made ? "" : made.error().message().c_str());
  child.in_spawn = false;
  if (!made) {
    child.is_over = child.is_gone = true;
    return;
  }
  child.process = std::move(*made);
  child.pid = child.process.pid();
  check(child.process.is_running() && child.pid > 0, "process_runs", "pid %d", child.pid);
  world_.tell("  process %d: %s", child.pid, options.file.c_str());
  if (!child.is_copying) return;
  End& writer = world_.add_end(Kind::pipe, std::move(child.process.input));
  End& reader = world_.add_end(Kind::pipe, std::move(child.process.output));
  child.courier.stand_between(writer, reader);
  writer.start();
  reader.start();
}

void Couriers::on_exit(Child& child, const spate::Child& status) {
  world_.moved();
  world_.tell("[process %d has ended: status %d]", child.pid, status.status());
  check(!child.in_spawn, "not_from_inside", "on_exit() inside spawn()");
  check(!child.is_gone, "gone_hears_nothing", "a process that was let go");
  check(!child.is_over, "one_result", "on_exit() once more");
  check(!child.process.is_running(), "reaped_runs_no_more", "it is running");
  check(child.process.kill(SIGTERM) == std::error_code(ESRCH, std::system_category()),
        "reaped_runs_no_more", "kill() of one that has ended");
  check(status.pid() == child.pid, "own_process", "%d, not %d", status.pid(), child.pid);
  child.is_over = true;
  if (child.is_copying) child.courier.catch_up();
  const bool ended_by_itself = status.exited() && (!child.is_copying || status.exit_code() == 0);
  const bool was_killed = status.signaled() && child.may_be_killed;
  const bool had_no_reader =
      child.is_copying && status.signaled() && status.term_signal() == SIGPIPE;
  check(ended_by_itself || was_killed || had_no_reader, "right_status", "status %d",
        status.status());
  world_.count(was_killed ? Event::killed : Event::exited);
  world_.visit({.where = Where::done});
}

void Couriers::use_process(Child& child, const Step& step) {
  switch (step.a % 4) {
    case 0:
      child.may_be_killed = true;
      if (child.is_copying) child.courier.fail("its process is killed");
      check(!child.process.kill(step.b % 2 == 0 ? SIGKILL : SIGTERM) || !child.process.is_running(),
            "kills", "process %d", child.pid);
      return;
    case 1: {
      Process moved = std::move(child.process);
      child.process = std::move(moved);
      return;
    }
    default: {
      if (step.b % 3 == 0) return;
      world_.count(Event::process_let_go);
      if (child.is_copying) child.courier.fail("its process is let go");
      child.may_be_killed = child.may_be_killed || child.dies_with_its_handle;
      child.is_over = child.is_gone = true;
      const Process last = std::move(child.process);
      child.process = Process();
    }
  }
}

// ---- all of them

void Couriers::act(const Step& step, const Visit& visit) {
  if (step.op == Op::spawn) {
    world_.count(step.op, Coverage::kNone, visit.where);
    return spawn(step);
  }
  if (step.op == Op::process) {
    if (children_.empty()) return;
    Child& child = *children_[step.target % children_.size()];
    if (child.is_gone) return;
    world_.count(step.op, Coverage::kNone, visit.where);
    return use_process(child, step);
  }
  if (relays_.empty()) return;
  Relay& relay = *relays_[step.target % relays_.size()];
  if (relay.in_relay || relay.is_cancelled) return;
  world_.count(step.op, Coverage::kNone, visit.where);
  if (step.b % 4 == 0) {
    relay.handle = Relaying(std::move(relay.handle));
    return;
  }
  if (!relay.is_over) {
    world_.count(Event::relay_cancelled);
    relay.courier.fail("its relay is cancelled");
  }
  relay.is_over = relay.is_cancelled = true;
  relay.handle.cancel();
}

void Couriers::look() {
  for (const auto& relay : relays_) relay->courier.catch_up();
  for (const auto& child : children_) {
    if (child->is_copying && child->pid > 0) child->courier.catch_up();
  }
}

// A detached child runs on until the loop has reaped it.
bool Couriers::is_running(const Child& child) {
  return child.pid > 0 && (!child.is_over || (child.is_gone && ::kill(child.pid, 0) == 0));
}

bool Couriers::has_tcp() const {
  return std::ranges::any_of(relays_, [](const auto& relay) { return relay->has_tcp; });
}

bool Couriers::has_process() const {
  for (const auto& child : children_) {
    if (is_running(*child)) return true;
  }
  return false;
}

// A process that is asleep has finished with the bytes that it was sent, and does not end by
// itself.
bool Couriers::has_busy_process() const {
  for (const auto& child : children_) {
    if (!is_running(*child)) continue;
    std::ifstream file("/proc/" + std::to_string(child->pid) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t name_end = text.rfind(") ");
    if (name_end != std::string::npos && text[name_end + 2] != 'S') return true;
  }
  return false;
}

void Couriers::check_empty() {
  // A relay that had no memory to schedule the end of its rate limit waits for the next event.
  if (world_.is_stormy()) return cancel_relays();
  for (const auto& relay : relays_)
    check(relay->is_over, "relay_is_answered", "relay() has no result");
  for (const auto& child : children_)
    check(child->is_over, "exit_is_told", "process %d has ended, and nobody was told", child->pid);
}

void Couriers::cancel_relays() {
  for (const auto& relay : relays_) {
    relay->is_cancelled = relay->is_over = true;
    relay->handle.cancel();
  }
}

// Cancels everything that only the loop would have waited for.
void Couriers::close() {
  cancel_relays();
  for (const auto& child : children_) {
    child->is_gone = true;
    child->process = Process();
    if (child->pid > 0 && ::waitpid(child->pid, nullptr, WNOHANG) == 0) {
      ::kill(child->pid, SIGKILL);
      ::waitpid(child->pid, nullptr, 0);
    }
  }
}

}  // namespace spate::chaos
