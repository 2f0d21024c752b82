#include "chaos/chores.h"

#include <poll.h>

#include <condition_variable>
#include <csignal>

#include "chaos/verdict.h"
#include "chaos/world.h"

namespace spate::chaos {

namespace {

constexpr int kSignals[] = {SIGUSR1, SIGUSR2, SIGWINCH};
constexpr std::size_t kMaxSignals = 3;
constexpr std::size_t kMaxJobs = 12;
constexpr std::size_t kMaxQueued = 1;

}  // namespace

// Jobs that must not finish at once wait for it.
struct Chores::Gate {
  void pass() {
    std::unique_lock lock(mutex);
    opens.wait(lock, [this] { return is_open; });
  }
  void open(bool on) {
    const std::scoped_lock lock(mutex);
    is_open = on;
    opens.notify_all();
  }

  std::mutex mutex;
  std::condition_variable opens;
  bool is_open = true;
};

struct Chores::Job {
  Offloading handle;
  std::atomic<int> calls{0};  // How often its work ran.
  bool in_offload = true;
  bool is_held = false;  // Waits at the gate.
  bool is_over = false;  // Its result was delivered, cancelled or refused.
  bool is_cancelled = false;
};

Chores::Chores(World& world) : world_(world), gate_(std::make_shared<Gate>()) {}
Chores::~Chores() = default;

void Chores::act(const Step& step, const Visit& visit) {
  const bool is_done = step.op == Op::after     ? after(step)
                       : step.op == Op::defer   ? defer()
                       : step.op == Op::signal  ? use_signal(step)
                       : step.op == Op::offload ? offload(step)
                                                : use_offloading(step);
  if (is_done) world_.count(step.op, Coverage::kNone, visit.where);
}

// ---- after() and defer()

bool Chores::after(const Step& step) {
  static constexpr std::int64_t kDelays[6] = {-1, 0, 1, 2'000'000, 60'000'000, 3'000'000'000};
  const Nanos delay{kDelays[step.a % 6]};
  const Nanos due = world_.now() + std::max(delay, Nanos{0});
  const std::error_code error =
      world_.loop().after(delay, [this, due, token = world_.token()] { on_after(due); });
  check(!error || world_.is_stormy(), "after_is_taken", "%s", error.message().c_str());
  if (!error) ++after_asked_;
  check(world_.loop().after(kForever, [] {}) == std::error_code(EINVAL, std::system_category()),
        "after_forever", "after() takes for ever");
  return !error;
}

void Chores::on_after(Nanos due) {
  world_.moved();
  world_.count(Event::called_after);
  check(world_.now() >= due, "after_not_early", "%lld ns early",
        static_cast<long long>((due - world_.now()).count()));
  ++after_called_;
  world_.visit({.where = Where::done});
}

bool Chores::defer() {
  in_defer_ = true;
  const bool is_taken = world_.loop().defer([this, token = world_.token()] {
    check(!in_defer_, "not_from_inside", "called inside defer()");
    world_.moved();
    world_.count(Event::deferred);
    ++defer_called_;
    world_.visit({.where = Where::done});
  });
  in_defer_ = false;
  check(is_taken || world_.is_stormy(), "defer_is_taken", "refused");
  if (!is_taken) return false;
  ++deferred_;
  return true;
}

// ---- on_signal()

bool Chores::use_signal(const Step& step) {
  if (signals_.size() < kMaxSignals && (signals_.empty() || step.b % 4 == 0)) {
    const int number = kSignals[step.a % std::size(kSignals)];
    const std::size_t which = signals_.size();
    const std::error_code error = world_.loop().on_signal(
        number, [this, which, token = world_.token()] { on_signal(which); });
    check(!error || world_.is_stormy(), "signal_is_watched", "%s", error.message().c_str());
    if (error) return false;
    Signal made{.number = number};
    for (const Signal& one : signals_)  // A signal on its way may be delivered to the new watcher.
      if (one.number == number && one.is_due) made.raised = 1;
    signals_.push_back(made);
    return true;
  }
  if (signals_.empty()) return false;
  const int number = signals_[step.a % signals_.size()].number;
  for (Signal& one : signals_) {
    if (one.number != number) continue;
    ++one.raised;
    one.is_due = true;
  }
  ::raise(number);
  return true;
}

// Signals that arrive before the callback runs are merged.
void Chores::on_signal(std::size_t which) {
  world_.moved();
  world_.count(Event::signalled);
  Signal& one = signals_[which];
  ++one.called;
  one.is_due = false;
  check(one.called <= one.raised, "own_signals", "signal %d: told %u times, raised %u times",
        one.number, one.called, one.raised);
  world_.visit({.where = Where::done});
}

// ---- offload()

bool Chores::offload(const Step& step) {
  if (jobs_.size() == kMaxJobs) return false;
  if (pool_ == nullptr) {
    ThreadPoolOptions options;
    options.max_threads = 1 + step.b / 2 % 2;
    options.max_queued = kMaxQueued;
    pool_ = std::make_unique<ThreadPool>(options);
  }
  if (step.a % 4 == 0) gate_->open(false);
  Job& job = *jobs_.emplace_back(std::make_unique<Job>());
  job.is_held = step.a % 4 < 3;
  const int value = static_cast<int>(step.a);
  auto made = spate::offload(
      world_.loop(),
      [gate = job.is_held ? gate_ : nullptr, value, &job, token = world_.quiet_token()] {
        if (gate != nullptr) gate->pass();
        ++job.calls;
        return std::make_unique<int>(value);
      },
      [this, &job, value, token = world_.token()](std::unique_ptr<int> result) {
        check(*result == value, "own_result", "%d, not %d", *result, value);
        on_done(job, value);
      },
      *pool_);
  job.in_offload = false;
  if (!made) {
    job.is_over = job.is_cancelled = true;
    world_.count(Event::offload_refused);
    check(made.error() == Error::queue_full || world_.is_stormy(), "right_error", "offload(): %s",
          made.error().message().c_str());
    check(made.error() != Error::queue_full || jobs_.size() > kMaxQueued, "right_error",
          "the pool is full with %zu jobs", jobs_.size() - 1);
    return true;
  }
  job.handle = std::move(*made);
  check(world_.loop().active_count() > 0, "offload_keeps_alive", "nothing keeps the loop alive");
  return true;
}

void Chores::on_done(Job& job, int) {
  world_.moved();
  world_.count(Event::offloaded);
  check(!job.in_offload, "not_from_inside", "done inside offload()");
  check(!job.is_cancelled, "cancelled_hears_nothing", "a job that was cancelled");
  check(!job.is_over, "one_result", "a second result of offload()");
  check(job.calls == 1, "work_once", "work was called %d times", job.calls.load());
  job.is_over = true;
  world_.visit({.where = Where::done});
}

bool Chores::use_offloading(const Step& step) {
  if (jobs_.empty()) return false;
  Job& job = *jobs_[step.target % jobs_.size()];
  if (step.a % 4 == 0) return gate_->open(step.b % 2 == 0), true;
  if (step.a % 4 == 1) {
    job.handle = Offloading(std::move(job.handle));
    return true;
  }
  if (!job.is_over) world_.count(Event::offload_cancelled);
  if (!job.is_over) job.is_cancelled = job.is_over = true;
  job.handle.cancel();
  return true;
}

// Does not wait for jobs that are held, nor for jobs queued after them.
void Chores::wait_for_jobs() {
  if (pool_ == nullptr || !gate_->is_open) return;
  for (int naps = 0; naps < 200; ++naps) {
    bool is_waiting = false;
    for (const auto& job : jobs_) is_waiting = is_waiting || (!job->is_over && job->calls == 0);
    if (!is_waiting) return;
    ::poll(nullptr, 0, naps < 20 ? 0 : 1);
  }
}

// ---- invariants

void Chores::look() {
  check(defer_called_ >= defer_due_, "defer_is_called", "%u of %u, a turn later", defer_called_,
        defer_due_);
  defer_due_ = deferred_;
}

void Chores::make_friendly() { gate_->open(true); }

void Chores::check_settled() {
  check(after_called_ == after_asked_, "after_is_called", "%u of %u", after_called_, after_asked_);
  check(defer_called_ == deferred_, "defer_is_called", "%u of %u", defer_called_, deferred_);
  for (const Signal& one : signals_)
    check(!one.is_due, "signal_is_told", "signal %d was raised", one.number);
  for (const auto& job : jobs_) check(job->is_over, "offload_is_answered", "a job has no result");
}

void Chores::on_loop_gone() {
  for (const auto& job : jobs_) job->is_over = job->is_cancelled = true;
}

// Runs the jobs that were not cancelled first.
void Chores::close() {
  gate_->open(true);
  for (const auto& job : jobs_) job->handle.cancel();
  pool_.reset();
  jobs_.clear();
}

}  // namespace spate::chaos
