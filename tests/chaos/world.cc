// The execution of a program: its steps, those that callbacks perform, nested runs.
#include "chaos/world.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "chaos/verdict.h"

namespace spate::chaos {

namespace {

constexpr int kMaxVisits = 4;
constexpr int kMaxRuns = 3;
constexpr std::size_t kMaxLaidOut = 24;

}  // namespace

Ground::Ground(std::string_view backend) {
  LoopOptions options;
  options.backend = backend;
  options.clock = &clock;
  auto made = Loop::create(options);
  if (!made) fail("loop_is_made", made.error().message().c_str());
  loop = std::move(*made);
}

void Ground::use_all_buckets() {
  constexpr int kTickBits = 20;
  constexpr int kDigitBits = 6;
  constexpr int kLevels = 6;  // Others are years away.
  // Only digits above those of the clock are used, so the clock is set to zeros.
  const Nanos whole{std::int64_t{1} << (kTickBits + kLevels * kDigitBits)};
  clock.advance(whole - clock.monotonic() % whole);
  loop->update_now();
  for (int level = 0; level < kLevels; ++level) {
    for (std::int64_t digit = 1; digit < 1 << kDigitBits; ++digit) {
      Timer timer(*loop, [](Timer&) {});
      check(timer.start(Nanos{digit << (kTickBits + level * kDigitBits)}), "timer_starts", "no");
    }
  }
}

Token::~Token() {
  if (number_ != nullptr) world_->on_dropped();
}

namespace {

Ground& ground_of(const Surroundings& around, std::unique_ptr<Ground>& own) {
  if (around.ground != nullptr) return *around.ground;
  own = std::make_unique<Ground>(around.backend);
  return *own;
}

// Calls that may destroy the functions of a stream, and leave the others alone.
bool may_drop(Op op) {
  return op == Op::functions || op == Op::start_again || op == Op::abort || op == Op::destroy ||
         op == Op::release;
}

// Gives a variable another value while it exists.
template <class T>
class Noted {
 public:
  Noted(T& place, T value) : place_(place), before_(std::exchange(place, value)) {}
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;
  ~Noted() { place_ = before_; }

 private:
  T& place_;
  const T before_;
};

}  // namespace

World::World(const Surroundings& surroundings)
    : around_(surroundings),
      clock_(ground_of(around_, own_ground_).clock),
      loop_((own_ground_ != nullptr ? own_ground_.get() : around_.ground)->loop),
      neighbour_(*this, surroundings.backend) {}

World::~World() = default;

void World::run(const Program& program) {
  weather_ = program.weather;
  install_weather(program);
  for (const Step& step : program.steps) do_step(step);
  faults_.reset();
  if (program.loop_goes_first) {
    lose_loop();
  } else {
    finish();
  }
}

void World::tell(const char* format, ...) {
  if (!around_.is_told) return;
  std::fprintf(stderr, "%*s", 2 + 2 * visits_, "");
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
}

// ---- steps

void World::do_step(const Step& step) {
  has_stopped_ = false;
  if (step.where == Where::outside) return act(step, {});
  if (laid_out_.size() == kMaxLaidOut) laid_out_.erase(laid_out_.begin());
  laid_out_.push_back(step);
}

std::vector<Step>::iterator World::laid_out_for(Where where) {
  return std::ranges::find(laid_out_, where, &Step::where);
}

void World::visit(const Visit& visit, Running running) {
  if (visits_ == kMaxVisits) return;
  ++visits_;
  if (running == Running::no) ++holds_;
  for (int done = 0; done < 4; ++done) {
    auto next = laid_out_for(visit.where);
    if (next == laid_out_.end()) next = laid_out_for(Where::anywhere);
    if (next == laid_out_.end()) break;
    const Step step = *next;
    laid_out_.erase(next);
    act(step, visit);
    if (!step.more) break;
  }
  if (running == Running::no) --holds_;
  --visits_;
}

namespace {

// Returns whether it is left out, alone or in this callback.
bool is_step_left_out(Op op, Where where) {
  static const auto left_out = [] {
    std::vector<std::uint8_t> all(static_cast<std::size_t>(kOps * kWheres));
    for (int i = 0; i < kOps * kWheres; ++i) {
      const auto one = static_cast<Op>(i / kWheres);
      const std::string name = name_of(one);
      all[static_cast<std::size_t>(i)] =
          is_left_out(name) || is_left_out(name + "@" + name_of(static_cast<Where>(i % kWheres)));
    }
    return all;
  }();
  return left_out[static_cast<std::size_t>(static_cast<int>(op) * kWheres +
                                           static_cast<int>(where))] != 0;
}

// Whether an operation is counted by the object that it acts on.
bool counts_itself(Op op) {
  return (op >= Op::after && op <= Op::process) || (op >= Op::sessions && op <= Op::relaying);
}

}  // namespace

// A destructor that is called inside a call to one stream acts on the others.
void World::on_dropped() {
  if (!has_loop() || is_friendly_ || laid_out_.empty()) return;
  if (acts_ > 0 && !may_drop(acting_)) return;
  const Noted dropping(is_dropping_, true);
  visit({.where = Where::dropped}, acts_ > 0 ? Running::no : Running::yes);
}

void World::act(const Step& step, const Visit& visit) {
  if (is_step_left_out(step.op, visit.where)) return;
  const bool is_inside = acts_ > 0 && visit.where == Where::dropped;
  const Noted deeper(acts_, acts_ + 1);
  const Noted acting(acting_, step.op);
  if (step.op >= Op::write && step.op < Op::peer_send) return act_on_end(step, visit);
  if (is_inside) return;
  if (step.op < Op::peer_send || step.op > Op::peer_close) return act_on_world(step, visit);
  if (!raws_.empty()) act_on_raw(step, visit);
}

void World::act_on_end(const Step& step, const Visit& visit) {
  if (ends_.empty()) return;
  const bool is_self = visit.end != nullptr && step.target < 160;
  End& end = is_self ? *visit.end : *ends_[step.target % ends_.size()];
  if (!end.has_handle() || end.is_acting()) return;
  const Noted busy(end.acting(), true);
  count(step.op, static_cast<int>(end.kind), visit.where);
  tell("%s: end %u (%s): %s a=%u b=%u", name_of(visit.where), end.number,
       kKindNames[static_cast<int>(end.kind)], name_of(step.op), step.a, step.b);
  end.act(step, visit);
}

void World::act_on_raw(const Step& step, const Visit& visit) {
  Raw& raw = *raws_[step.target % raws_.size()];
  if (!raw.is_open()) return;
  count(step.op, static_cast<int>(raw.kind), visit.where);
  raw.act(step);
}

void World::act_on_world(const Step& step, const Visit& visit) {
  if (!counts_itself(step.op)) count(step.op, Coverage::kNone, visit.where);
  if (step.op != Op::turn)
    tell("%s: %s a=%u b=%u", name_of(visit.where), name_of(step.op), step.a, step.b);
  switch (step.op) {
    case Op::link:
      return make_link(step);
    case Op::turn:
      for (std::uint32_t i = 0; i <= step.a % 4; ++i) turn();
      return;
    case Op::advance:
      return advance(step);
    case Op::run:
      return run_nested(step);
    case Op::run_for:
      return run_for(step);
    case Op::stop:
      has_stopped_ = true;
      return step.a % 2 == 0 ? loop_->stop() : loop_->stop_all();
    case Op::post:
      return post();
    case Op::timer:
      return use_timer(step);
    case Op::group:
      return use_group(step);
    case Op::publish:
      return publish(step);
    case Op::fork:
      return fork(step);
    case Op::ask:
      return neighbour_.act(step);
    case Op::after:
    case Op::defer:
    case Op::signal:
    case Op::offload:
    case Op::offloading:
      return chores_.act(step, visit);
    case Op::spawn:
    case Op::process:
    case Op::relaying:
      return couriers_.act(step, visit);
    case Op::handshake:
      return handshakes_.act(step);
    case Op::sessions:
    case Op::sessions_change:
      return guests_.act(step, visit);
    default:
      return step.op >= Op::packets ? packets_.act(step, visit) : doors_.act(step, visit);
  }
}

void World::advance(const Step& step) {
  static constexpr std::int64_t kSpans[16] = {
      1'000,         900'000,       2'000'000,      2'000'000,     6'000'000,  6'000'000,
      6'000'000,     60'000'000,    60'000'000,     60'000'000,    60'000'000, 1'100'000'000,
      1'000'000'000, 5'000'000'000, 11'000'000'000, 40'000'000'000};
  clock_.advance(Nanos{kSpans[step.a % 16]});
  if (step.b % 4 == 0) loop_->update_now();
}

// Messages to all subscribers, each in the memory of the one before.
void World::publish(const Step& step) {
  static constexpr std::size_t kMax[4] = {4, 100, 1000, 5000};
  for (std::uint32_t i = 0; i <= step.b % 6; ++i) {
    const std::size_t size = 1 + (step.a >> i) % kMax[(step.a >> i / 2) % 4];
    const Bytes bytes = pattern(kPublished, published_, size);
    message_.assign(bytes.begin(), bytes.end());
    for (std::size_t end = 0; end < ends_.size(); ++end)
      ends_[end]->publish(message_, kPublished, published_);
    published_ += size;
  }
}

// ---- forks

// A child drops its copies of everything, before or after after_fork(). The parent must not notice.

void World::fork(const Step& step) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  check(child >= 0, "forks", "fork() has failed");
  if (child == 0) {
    ::alarm(20);
    live_as_child(step);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check(status == 0, "child_lives", "the child of a fork ends with status %x", status);
}

void World::live_as_child(const Step& step) {
  laid_out_.clear();
  faults_.reset();
  const bool is_early = step.a % 2 == 0;
  if (is_early) check(!loop_->after_fork(), "after_fork", "refused");
  if (is_early) neighbour_.after_fork();
  neighbour_.close();
  close_handles();
  tickers_.clear();
  groups_.clear();
  if (!is_early) check(!loop_->after_fork(), "after_fork", "refused");
  for (int i = 0; i < 3; ++i) check(!loop_->run(Run::no_wait), "run_succeeds", "in a child");
  loop_.reset();
}

// ---- turns

void World::turn() {
  for (const auto& raw : raws_) raw->go_on();
  chores_.wait_for_jobs();
  tell("turn at %lld ns", static_cast<long long>(clock_.monotonic().count()));
  const std::error_code error = loop_->run(Run::no_wait);
  check(!error || is_stormy(), "run_succeeds", "%s", error.message().c_str());
  after_turn();
}

void World::after_turn() {
  neighbour_.turn();
  guests_.look();
  couriers_.look();
  chores_.look();
  bool must_live = false;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    ends_[i]->look();
    ends_[i]->check_time(now());
    must_live = must_live || ends_[i]->keeps_loop_alive();
  }
  check(!must_live || loop_->active_count() > 0 || loop_->pending_count() > 0 || is_stormy(),
        "streams_keep_alive", "a stream waits for bytes, and nothing keeps run() from returning");
}

void World::run_nested(const Step& step) {
  if (runs_ == kMaxRuns || holds_ > 0) return;
  const Noted innermost(acts_, 0);
  ++runs_;
  for (const auto& end : ends_) end->note_run();
  bool is_ready = false;
  switch (step.a % 5) {
    case 0:
      for (std::uint32_t i = 0; i < 1 + step.b % 3; ++i) loop_->run(Run::no_wait);
      break;
    case 1:  // Never without a pending event: time does not pass by itself.
      is_ready = loop_->post([] {});
      if (is_ready) loop_->run(Run::once);
      break;
    case 2:
      run_until_told(kForever);
      break;
    default:
      for (const auto& raw : raws_) raw->go_on();
      loop_->run(Run::no_wait);
  }
  --runs_;
}

namespace {

struct Wait {
  Loop* loop;
  int depth;
  bool is_over = false;
};

// A task that was queued for an outer run() waits for it in its loop.
struct TellToStop {
  std::shared_ptr<Wait> wait;
  void operator()() const {
    if (wait->is_over) return;
    if (wait->loop->depth() == wait->depth) return wait->loop->stop();
    while (!wait->loop->post(*this)) {  // In a storm, allocations fail now and then.
    }
  }
};

}  // namespace

void World::run_until_told(Nanos span) {
  const auto wait = std::make_shared<Wait>(loop_.get(), loop_->depth() + 1);
  if (loop_->post(TellToStop{wait})) span < kForever ? loop_->run_for(span) : loop_->run();
  wait->is_over = true;
}

// Runs the loop inside a callback: for no time, until it is stopped, or for a while.
void World::run_for(const Step& step) {
  static constexpr std::int64_t kSpans[4] = {-1, 1, 3'000'000, 80'000'000};
  if (runs_ == kMaxRuns || holds_ > 0) return;
  const Noted innermost(acts_, 0);
  ++runs_;
  for (const auto& end : ends_) end->note_run();
  for (const auto& raw : raws_) raw->go_on();
  const Nanos span{kSpans[step.b % 4]};
  const Nanos end = loop_->now() + span;
  if (step.a % 3 == 0) {
    loop_->run_for(std::min(span, Nanos{0}));
  } else if (step.a % 3 == 1) {
    run_until_told(std::max(span, Nanos{1'000'000'000}));
  } else if (loop_->post([this, span] { clock_.advance(std::max(span, Nanos{0})); })) {
    const std::error_code error = loop_->run_for(span);
    check(!error || is_stormy(), "run_succeeds", "%s", error.message().c_str());
    if (!error) count(Event::ran_for);
    check(error || has_stopped_ || now() >= end || !loop_->has_work() || loop_->depth() > 0,
          "runs_for_its_time", "run_for() returns %lld ns early",
          static_cast<long long>((end - now()).count()));
  }
  --runs_;
}

// ---- posts, timers, groups

void World::post() {
  const std::uint64_t number_of_this = posts_made_;
  if (loop_->post([this, number_of_this] { on_post(number_of_this); })) {
    ++posts_made_;
  } else {
    check(is_stormy(), "post_is_taken", "post() refused");
  }
}

void World::on_post(std::uint64_t number_of_this) {
  moved();
  check(number_of_this == posts_called_, "posts_in_order", "post %llu after %llu",
        static_cast<unsigned long long>(number_of_this),
        static_cast<unsigned long long>(posts_called_));
  ++posts_called_;
  visit({.where = Where::post});
}

void World::use_timer(const Step& step) {
  static constexpr std::int64_t kDelays[8] = {-5,      0,         1,          1,
                                              500'000, 3'000'000, 70'000'000, INT64_MAX};
  const std::size_t choice = step.b % 8;
  if (tickers_.size() < 4 && (choice < 3 || tickers_.empty()))
    tickers_.push_back(std::make_unique<Ticker>(*loop_, spate::bind<&World::on_timer>(this)));
  if (tickers_.empty()) return;
  const std::size_t i = step.target % tickers_.size();
  Ticker& ticker = *tickers_[i];
  if (choice == 7)
    return static_cast<void>(tickers_.erase(tickers_.begin() + static_cast<long>(i)));
  if (choice == 6) return ticker.timer.stop();
  const Nanos delay{kDelays[step.a % 8]};
  const Nanos repeat{choice == 5 ? 1'000'000 : 0};
  if (!ticker.timer.start(delay, repeat)) check(is_stormy(), "timer_starts", "start() refused");
  ticker.due = ticker.timer.deadline();
}

void World::on_timer(Timer& timer) {
  moved();
  for (const auto& ticker : tickers_) {
    if (&ticker->timer != &timer) continue;
    check(now() >= ticker->due, "timer_not_early", "%lld ns early",
          static_cast<long long>((ticker->due - now()).count()));
    if (timer.repeat() > Nanos{0}) ticker->due += timer.repeat();
    return visit({.where = Where::timer});
  }
  fail("stopped_timer_is_silent", "a timer that is gone was called");
}

RateGroup* World::group(std::size_t choice) {
  return groups_.empty() ? nullptr : groups_[choice % groups_.size()].get();
}

void World::use_group(const Step& step) {
  static constexpr std::uint64_t kRates[4] = {0, 40'000, 1'000'000, 50'000'000};
  const RateLimits limits{{kRates[step.a % 4], 2000 * (step.b % 3)},
                          {kRates[(step.a >> 2) % 4], 2000 * (step.b % 5)}};
  const std::size_t choice = (step.a >> 4) % 4;
  if (groups_.size() < 2 && (choice < 2 || groups_.empty()))
    return static_cast<void>(groups_.push_back(std::make_unique<RateGroup>(limits)));
  const std::size_t i = step.target % groups_.size();
  if (choice == 3) {
    groups_.erase(groups_.begin() + static_cast<long>(i));
  } else {
    groups_[i]->set_limits(limits);
  }
}

End* World::other_end(std::size_t choice, const End* than) {
  End* end = ends_.empty() ? nullptr : ends_[choice % ends_.size()].get();
  return end == than || end == nullptr || end->is_acting() ? nullptr : end;
}

}  // namespace spate::chaos
