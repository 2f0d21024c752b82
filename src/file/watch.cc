// Watch: reads from inotify, scans directories on the pool, and calls back.
#include "spate/watch.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <utility>

#include "base/abandonable.h"
#include "core/ownership.h"
#include "core/user_code.h"
#include "file/file_call.h"
#include "file/watch_batch.h"
#include "file/watch_scan.h"
#include "file/watch_tree.h"
#include "spate/assert.h"
#include "spate/hooks.h"
#include "spate/io.h"
#include "spate/named_callback.h"
#include "spate/timer.h"
#include "sys/inotify.h"

namespace spate {

namespace {

constexpr std::string_view kChangeNames[] = {"created",    "changed",  "written",
                                             "attributes", "removed",  "moved",
                                             "ready",      "overflow", "unwatched"};
static_assert(std::size(kChangeNames) == static_cast<std::size_t>(Change::unwatched) + 1);

// How much is read in a turn.
constexpr std::size_t kReadInTurn = std::size_t{16} << 10;
// How many reads may come between two scans. The kernel's queue is read before a scan, but changes
// without a pause must not prevent the scan.
constexpr int kReadsBetweenScans = 64;
// How long the second half of a move is waited for. The kernel queues both halves in one call.
constexpr Nanos kMovePatience{20'000'000};
constexpr std::size_t kMostHeld = std::size_t{256} << 10;

}  // namespace

std::string_view name_of(Change change) { return kChangeNames[static_cast<std::size_t>(change)]; }

class WatchState : public Abandonable<WatchState> {
 public:
  WatchState(Loop& loop, std::string root, std::string file, const WatchOptions& options,
             OnWatch on_watch)
      : loop_(loop),
        pool_(*options.pool),
        tree_(std::move(root), std::move(file), options),
        on_watch_(std::move(on_watch)),
        io_(loop, named<Io, ActiveKind::watch, describe>(bind<&WatchState::on_readable>(this))),
        step_(loop, named<Timer, ActiveKind::watch, describe>(bind<&WatchState::on_step>(this))),
        move_timer_(loop, named<Timer, ActiveKind::watch, describe>(
                              bind<&WatchState::on_move_timeout>(this))),
        fork_(loop, bind<&WatchState::on_fork>(this)) {}

  std::error_code start();
  // Called by the handle's destructor.
  void leave() {
    stop();
    abandon();
  }

  bool is_active() const { return fork_.is_active(); }
  bool is_paused() const { return is_paused_; }
  const std::string& root() const { return tree_.root(); }
  void pause();
  void resume();

 private:
  static void describe(const Node& node, ActiveInfo& info) {
    info.label = static_cast<const WatchState*>(node.context)->root();
  }

  std::error_code open();
  void stop();
  void on_readable();
  void on_step();
  void on_move_timeout();
  void on_fork();

  bool read(bool is_complete);
  void hold(std::string_view records);
  void drop_queue();
  void finish_reading();
  void start_scan();
  void on_scanned(std::vector<ScannedDirectory> results);
  void go_on();
  void wait();
  void deliver();
  void fail(std::error_code error);

  Loop& loop_;
  ThreadPool& pool_;
  WatchTree tree_;
  OnWatch on_watch_;
  std::shared_ptr<sys::Descriptor> inotify_;  // A running scan keeps it open.
  Io io_;
  Timer step_;        // The next turn: more is to do, whatever the kernel has queued.
  Timer move_timer_;  // Limits the wait for the second half of a move.
  Fork fork_;         // Active while the Watch is.
  FileOperation scan_;
  WatchBatch batch_;
  std::string held_;  // Records from the first half of a move on.
  int reads_ = 0;     // Since the last scan.
  bool is_scanning_ = false;
  bool is_paused_ = false;
  std::error_code error_;
};

std::error_code WatchState::start() {
  if (const std::error_code error = open()) return error;
  const long watch =
      sys::inotify_watch(inotify_->get(), tree_.root().c_str(), tree_.mask(), sys::Follow::yes);
  if (watch < 0) return sys::error_code(watch);
  if (!fork_.start() || !step_.start(Nanos{0})) {
    stop();
    return sys::error_code(-ENOMEM);
  }
  tree_.start(static_cast<int>(watch));
  return {};
}

std::error_code WatchState::open() {
  const long fd = sys::inotify_create();
  if (fd < 0) return sys::error_code(fd);
  inotify_ = std::make_shared<sys::Descriptor>(fd);
  io_.set(inotify_->get(), Events::read);
  return io_.start_now();
}

// A running scan closes the descriptor on its thread, so the kernel must forget it before.
void WatchState::stop() {
  io_.stop_now();
  step_.stop();
  move_timer_.stop();
  fork_.stop();
  scan_.cancel();
  is_scanning_ = false;
  inotify_.reset();
}

void WatchState::pause() {
  if (!is_active() || std::exchange(is_paused_, true)) return;
  io_.stop();
  step_.stop();
  move_timer_.stop();
}

void WatchState::resume() {
  if (!is_active() || !std::exchange(is_paused_, false)) return;
  if (!held_.empty()) hold(std::string(held_));
  io_.modify(Events::read);
  if (!io_.start() || !step_.start(Nanos{0})) fail(sys::error_code(-ENOMEM));
}

// ---- one turn

void WatchState::on_readable() {
  if (!io_.is_active()) return fail(io_.error());
  if (!read(false)) return wait();
  go_on();
}

// Handles a part of the results of the last scan, or reads. Starts the next scan when the kernel's
// queue is empty.
void WatchState::on_step() {
  if (error_) return deliver();
  if (tree_.has_results()) {
    tree_.read_results(batch_);
    return go_on();
  }
  const bool has_read = ++reads_ <= kReadsBetweenScans && read(false);
  if (!has_read && held_.empty() && !error_) finish_reading();
  go_on();
}

void WatchState::finish_reading() {
  reads_ = 0;
  if (tree_.has_scan()) {
    start_scan();
  } else if (!tree_.is_complete()) {
    tree_.complete(batch_);
  }
}

void WatchState::on_move_timeout() {
  read(true);
  go_on();
}

// Returns false if the queue is empty.
bool WatchState::read(bool is_complete) {
  char bytes[kReadInTurn];
  const long size = sys::read(inotify_->get(), bytes, sizeof(bytes));
  if (size < 0 && size != -EAGAIN && size != -EINTR) {
    error_ = sys::error_code(size);
    return true;
  }
  if (size <= 0 && (!is_complete || held_.empty())) return false;
  std::string_view records(bytes, static_cast<std::size_t>(std::max(size, 0L)));
  if (!held_.empty()) records = held_.append(records);
  const std::size_t used =
      tree_.read_records(records, is_complete || records.size() > kMostHeld, batch_);
  if (used > 0) move_timer_.stop();
  hold(records.substr(used));
  if (tree_.has_overflowed()) drop_queue();
  return true;
}

// The program, or the next scan, looks at the tree after an overflow was reported: older records
// are useless then. The number of reads is bounded, because changes may not pause.
void WatchState::drop_queue() {
  char bytes[kReadInTurn];
  int left = kReadsBetweenScans;
  while (left > 0 && sys::read(inotify_->get(), bytes, sizeof(bytes)) > 0) --left;
  tree_.begin_again(batch_);
}

// Keeps records for the next read.
void WatchState::hold(std::string_view records) {
  held_ = std::string(records);
  if (held_.empty() || move_timer_.is_active()) return;
  if (!move_timer_.start(kMovePatience)) error_ = sys::error_code(-ENOMEM);
}

void WatchState::start_scan() {
  Scan scan;
  scan.inotify = inotify_;
  tree_.fill(scan);
  is_scanning_ = true;
  const PathOptions options{.pool = &pool_};
  using Outcome = Result<std::vector<ScannedDirectory>>;
  scan_ = start_file_call<Outcome>(
      loop_, options,
      [scan = std::move(scan)](const Cancelled& is_cancelled) -> Outcome {
        return run_scan(scan, is_cancelled);
      },
      [this](Outcome results) {
        if (!results) return fail(results.error());
        on_scanned(*std::move(results));
      });
}

void WatchState::on_scanned(std::vector<ScannedDirectory> results) {
  is_scanning_ = false;
  tree_.take(std::move(results));
  if (!is_paused_) wait();
}

// Delivers, and waits for the next turn.
void WatchState::go_on() {
  if (!batch_.empty() || error_ || tree_.end()) return deliver();
  wait();
}

// While a scan runs nothing is read: the tree does not contain the new watches yet. No scan starts
// while half of a move is held, so a step would only be repeated until the other half is there.
void WatchState::wait() {
  if (!is_active() || is_paused_) return;
  const bool may_scan = held_.empty() && (tree_.has_scan() || !tree_.is_complete());
  const bool has_more = tree_.has_results() || may_scan;
  io_.modify(is_scanning_ || tree_.has_results() ? Events::none : Events::read);
  if (is_scanning_ || !has_more) return step_.stop();
  if (!step_.start(Nanos{0})) fail(sys::error_code(-ENOMEM));
}

// The state is complete before the call, because the callback may run the loop.
void WatchState::deliver() {
  const std::error_code end = error_ ? error_ : tree_.end();
  WatchBatch batch = std::move(batch_);
  if (end) {
    stop();
  } else {
    wait();
  }
  const bool is_left = call([&] {
    if (!batch.empty()) call_user("Watch", [&] { on_watch_(batch.events()); });
    if (end && !is_abandoned()) call_user("Watch", [&] { on_watch_(std::unexpected(end)); });
  });
  if (!is_left || !batch_.empty()) return;
  batch.clear();
  batch_ = std::move(batch);
}

// Reports the error from the loop. A fed event needs no memory.
void WatchState::fail(std::error_code error) {
  error_ = error;
  is_scanning_ = false;
  if (!step_.start(Nanos{0})) step_.feed(Events::timer);
}

// The inotify instance is the parent's, and so is the scan.
void WatchState::on_fork() {
  io_.stop();
  move_timer_.stop();
  scan_.cancel();
  is_scanning_ = false;
  held_.clear();
  reads_ = 0;
  if (const std::error_code error = open()) return fail(error);
  const long watch =
      sys::inotify_watch(inotify_->get(), tree_.root().c_str(), tree_.mask(), sys::Follow::yes);
  if (watch < 0) return fail(sys::error_code(watch));
  tree_.restart(static_cast<int>(watch), batch_);
  if (is_paused_) io_.stop();
  if (!is_paused_ && !step_.start(Nanos{0})) fail(sys::error_code(-ENOMEM));
}

void WatchStateEnd::operator()(WatchState* state) const { state->leave(); }

// ---- the handle

namespace {

// Makes a path absolute, without a slash at its end.
std::error_code complete(std::string& path) {
  if (path.empty() || path.find('\0') != path.npos) return sys::error_code(-EINVAL);
  if (path == ".") path.clear();
  if (const long result = sys::make_absolute(path); result < 0) return sys::error_code(result);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return {};
}

}  // namespace

Result<Watch> Watch::start(Loop& loop, std::string_view path, OnWatch on_watch,
                           const WatchOptions& options) {
  SPATE_ASSERT(may_touch(loop), kWrongThread);
  if (is_foreign(loop)) return std::unexpected(make_error_code(Error::loop_forked));
  std::string root(path);
  std::string file;
  if (options.scope == WatchScope::file) {
    const std::size_t slash = root.rfind('/');
    file = slash == root.npos ? root : root.substr(slash + 1);
    root = slash == root.npos ? "." : root.substr(0, slash + 1);
    if (!is_file_name(file)) return std::unexpected(sys::error_code(-EINVAL));
  }
  if (const std::error_code error = complete(root)) return std::unexpected(error);
  auto* state = new (std::nothrow)
      WatchState(loop, std::move(root), std::move(file), options, std::move(on_watch));
  if (state == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  Watch watch(state);
  if (const std::error_code error = state->start()) return std::unexpected(error);
  return watch;
}

bool Watch::is_active() const { return state_ != nullptr && state_->is_active(); }
bool Watch::is_paused() const { return state_ != nullptr && state_->is_paused(); }
std::string_view Watch::root() const {
  return state_ == nullptr ? std::string_view() : std::string_view(state_->root());
}

void Watch::pause() {
  if (state_ != nullptr) state_->pause();
}
void Watch::resume() {
  if (state_ != nullptr) state_->resume();
}

}  // namespace spate
