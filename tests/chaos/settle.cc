// The end of a program: all parties turn friendly, all pending events must come, and nothing may be
// left.
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "chaos/verdict.h"
#include "chaos/world.h"
#include "spate/active.h"

namespace spate::chaos {

namespace {

constexpr int kMaxTurns = 200'000;
constexpr int kMaxSpins = 1000;
// The limit for ends that wait for no timeout: less than any timeout of the library.
constexpr Nanos kPromptly = std::chrono::seconds{3};
// Turns without progress before the loop counts as idle.
constexpr int kStillTurns = 3;

}  // namespace

void World::install_weather(const Program& program) {
  if (program.weather == Weather::fair) return;
  plan_ = std::make_unique<FaultPlan>();
  const std::uint64_t seed = program.weather_seed;
  for (const SystemCall call : {SystemCall::read, SystemCall::write, SystemCall::receive,
                                SystemCall::send, SystemCall::send_file}) {
    plan_->shorten_share(call, 0.2, 1 + seed % 100, seed);
    plan_->fail_share(call, 0.05, EAGAIN, seed + 1);
    plan_->fail_share(call, 0.05, EINTR, seed + 2);
  }
  if (program.weather == Weather::stormy) {
    const double share = 0.002 * static_cast<double>(1 + seed % 20);
    plan_->fail_share(SystemCall::allocate, share, ENOMEM, seed + 3);
    plan_->fail_share(SystemCall::receive, share / 2, ECONNRESET, seed + 4);
    plan_->fail_share(SystemCall::send, share / 2, EPIPE, seed + 5);
    plan_->fail_share(SystemCall::send, share / 2, ENOBUFS, seed + 6);
    plan_->fail_share(SystemCall::send_file, share, EIO, seed + 7);
    plan_->fail_share(SystemCall::epoll_ctl, share, ENOMEM, seed + 8);
    plan_->fail_share(SystemCall::duplicate, share, EMFILE, seed + 9);
    plan_->fail_share(SystemCall::accept, share * 4, EMFILE, seed + 10);
    plan_->fail_share(SystemCall::socket, share, ENFILE, seed + 11);
    plan_->fail_share(SystemCall::connect, share, ECONNREFUSED, seed + 12);
  }
  faults_.emplace(*plan_);
}

// Runs turns until nothing moves. Advances the clock if only that helps, by `patience` at most.
bool World::settle(Nanos patience) {
  const Nanos end = clock_.monotonic() + patience;
  int still = 0;
  int spins = 0;
  int naps = 0;
  for (int turns = 0; turns < kMaxTurns; ++turns) {
    has_moved_ = false;
    for (const auto& raw : raws_) raw->read_all();
    chores_.wait_for_jobs();
    const std::size_t queued = total_queued();
    const std::error_code error = loop_->run(Run::no_wait);
    check(!error, "run_succeeds", "%s", error.message().c_str());
    after_turn();
    if (has_moved_ || total_queued() != queued) {
      still = spins = 0;
      continue;
    }
    const Nanos wait = loop_->prepare_to_wait();
    if (wait == Nanos{0}) {
      check(++spins < kMaxSpins, "no_spin", "a thousand turns, and nothing has come of it");
      continue;
    }
    if (++still < kStillTurns) continue;
    if (naps < max_naps(wait)) {
      ::poll(nullptr, 0, ++naps / 10);
      still = 0;
      continue;
    }
    if (wait >= kForever || clock_.monotonic() + wait > end) return true;
    clock_.advance(wait);
    still = spins = 0;
    if (has_connecting()) naps = 0;  // The next address may be slow again.
  }
  return false;
}

std::size_t World::total_queued() const {
  std::size_t total = 0;
  for (const auto& end : ends_) {
    if (end->has_handle()) total += end->stream().queued();
  }
  return total;
}

// Returns how often to wait for the kernel: TCP may delay bytes until the other side has
// acknowledged earlier ones. The number is small where only the clock helps.
int World::max_naps(Nanos wait) const {
  constexpr int kFew = 12;
  constexpr int kMany = 100;
  constexpr int kPatient = 400;  // On a busy machine.
  if (has_offloaded() || couriers_.has_busy_process()) return kPatient;
  if (has_connecting()) return wait < kForever ? kFew : kMany;
  if (has_bytes_on_the_way()) return wait < std::chrono::seconds{1} ? kFew : kMany;
  return is_parting_ && has_tcp_untold() ? kMany : 0;
}

// True if a thread works for the loop: also one that reads a file into memory for a Stream.
bool World::has_offloaded() const {
  bool has_one = false;
  for_each_active(*loop_,
                  [&](const ActiveInfo& info) { has_one |= info.kind == ActiveKind::offload; });
  return has_one;
}

// True if another process or the kernel carries the bytes, at its own pace.
bool World::is_slow(Kind kind) const {
  return kind == Kind::tcp || couriers_.has_tcp() ||
         (kind == Kind::pipe && couriers_.has_process());
}

bool World::has_connecting() const {
  return doors_.has_attempts() || std::ranges::any_of(ends_, [](const auto& end) {
           return end->has_handle() && end->stream().is_connecting();
         });
}

bool World::has_bytes_on_the_way() const {
  if (handshakes_.has_slow()) return true;
  for (const auto& channel : channels_) {
    if (is_slow(channel->kind()) && !channel->is_lossy() && !channel->is_whole()) return true;
  }
  for (const auto& end : ends_) {
    if (is_slow(end->kind) && end->has_handle() && end->stream().queued() > 0) return true;
  }
  return false;
}

bool World::has_tcp_untold() const {
  for (const auto& end : ends_) {
    if (end->kind == Kind::tcp && !end->is_over()) return true;
  }
  for (const auto& raw : raws_) {
    if (raw->kind == Kind::tcp && raw->awaits_end()) return true;
  }
  return false;
}

void World::settle_all(Nanos patience, const char* what) {
  check(settle(patience), "comes_to_rest", "%s: no rest after many turns", what);
}

void World::finish() {
  tell("everybody turns friendly");
  is_friendly_ = true;
  laid_out_.clear();
  tickers_.clear();
  groups_.clear();
  doors_.make_friendly();
  packets_.make_friendly();
  chores_.make_friendly();
  for (const auto& raw : raws_) raw->make_friendly();
  make_friendly_again();
  tell("what should have come?");
  check(posts_called_ == posts_made_, "posts_are_called", "%llu of %llu posts",
        static_cast<unsigned long long>(posts_called_),
        static_cast<unsigned long long>(posts_made_));
  doors_.check_settled();
  packets_.check_settled();
  guests_.check_settled();
  chores_.check_settled();
  handshakes_.check_settled();
  neighbour_.check_settled();
  neighbour_.close();
  for (const End* end : lost_callers_) end->out->lose("nobody was there");
  for (auto& [port, half] : halves_) half.party->out->lose("nobody was there");
  for (const auto& end : ends_) end->check_settled();
  for (const auto& raw : raws_) raw->check_settled();
  part();
  check_empty();
}

// Makes Ends friendly that were accepted or connected meanwhile.
void World::make_friendly_again() {
  std::size_t known;
  do {
    known = ends_.size();
    for (std::size_t i = 0; i < known; ++i) {
      if (ends_[i]->has_handle()) ends_[i]->make_friendly();
    }
    settle_all(std::chrono::seconds{60}, "friendly");
  } while (known < ends_.size());
}

// Ends all connections, and checks that each reports it: promptly, since both sides end. One that
// has lost bytes may linger for ten seconds.
void World::part() {
  tell("everybody ends");
  is_parting_ = true;
  for (const auto& end : ends_) {
    if (end->has_handle() && !end->is_over()) end->finish();
  }
  for (const auto& raw : raws_) raw->end();
  settle_all(kPromptly, "parting");
  for (const auto& end : ends_) end->check_told_promptly();
  settle_all(std::chrono::seconds{60}, "parting");
  for (const auto& end : ends_) end->check_told();
  for (const auto& raw : raws_) raw->check_told();
  for (const auto& end : ends_) end->destroy();
  settle_all(std::chrono::seconds{60}, "after the end");
  guests_.check_empty();
  couriers_.check_empty();
  doors_.check_empty();
  guests_.close();
  doors_.close();
  packets_.close();
  settle_all(std::chrono::seconds{1}, "after the doors");
  for (const auto& raw : raws_) raw->close();
}

// Afterwards nothing keeps the loop from returning.
void World::check_empty() {
  check(loop_->active_count() == 0, "nothing_is_left", "%lld still active",
        static_cast<long long>(loop_->active_count()));
  check(loop_->pending_count() == 0, "nothing_is_left", "%zu still pending",
        loop_->pending_count());
  // The timer for all deadlines of Streams may fire early, without effect.
  check(loop_->metrics().active_timers <= 1, "nothing_is_left", "%zu timers",
        loop_->metrics().active_timers);
  couriers_.close();
  handshakes_.close();
  chores_.close();
  if (around_.ground == nullptr) loop_.reset();
  check_tokens();
}

void World::check_tokens() {
  check(number_.use_count() == 1, "callables_are_destroyed", "%ld are left",
        number_.use_count() - 1);
}

// The loop is destroyed first: Streams are closed without a callback.
void World::lose_loop() {
  tell("the loop goes first");
  laid_out_.clear();
  chores_.on_loop_gone();
  loop_.reset();
  neighbour_.close();
  for (const auto& end : ends_) end->on_loop_gone();
  close_handles();
  chores_.close();
  tickers_.clear();
  groups_.clear();
  check_tokens();
}

void World::close_handles() {
  guests_.close();
  for (const auto& end : ends_) end->destroy();
  doors_.close();
  packets_.close();
  couriers_.close();
  handshakes_.close();
}

}  // namespace spate::chaos
