// offload() and ThreadPool, implemented with a Team and the loop's LoopOffload.
#include "spate/offload.h"
#include "core/active_list.h"
#include "spate/named_callback.h"

#include <new>

#include "base/list.h"
#include "core/loop_local.h"
#include "core/ownership.h"
#include "core/user_code.h"
#include "offload/team.h"
#include "spate/assert.h"
#include "spate/hooks.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

class LoopOffload;

}  // namespace

// The state behind an Offloading. Its destructor cancels.
class OffloadJob : public Linked<OffloadJob> {
 public:
  OffloadJob(LoopOffload& loop_offload, Team& team, Tasks::iterator task, Job done);
  OffloadJob(const OffloadJob&) = delete;
  OffloadJob& operator=(const OffloadJob&) = delete;
  ~OffloadJob();

  // Calls `done`, which may destroy this.
  void finish();
  // Called when the loop is destroyed, and after a fork: `done` will not be called.
  void forget();

 private:
  LoopOffload* loop_offload_;  // nullptr when the job is no longer in progress.
  Team& team_;
  Tasks::iterator task_;  // Valid while there is a loop_offload.
  Job done_;
};

namespace {

// The jobs of a loop that are in progress, and their results.
class LoopOffload final : public LoopLocal {
 public:
  // Returns the loop's LoopOffload, created on first use. nullptr when memory runs out.
  static LoopOffload* of(Loop& loop) { return local_of<LoopOffload>(loop); }
  explicit LoopOffload(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  // Makes a new one in the child of a fork.
  const std::shared_ptr<Mailbox>& mailbox() {
    if (!mailbox_->is_ours()) start_anew();
    return mailbox_;
  }
  void add(OffloadJob& job);
  void remove(OffloadJob& job);

 private:
  bool open() override;
  void on_loop_end() override;
  // A callback that runs the loop gets the results that follow its own.
  void on_handover() override {
    if (!finished_.empty()) wakeup_.feed();
  }

  void list_active(ActiveList& list) override {
    jobs_.for_each(
        [&](const OffloadJob& job) { list.add({.kind = ActiveKind::offload, .id = &job}); });
  }

  void deliver();
  void start_anew();
  void forget_all() {
    while (OffloadJob* job = jobs_.first()) job->forget();
  }

  Async wakeup_{loop(),
                named<Async, ActiveKind::offload, hide_active>(bind<&LoopOffload::deliver>(this))};
  Fork forked_{loop(), [this] { mailbox(); }};
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>(wakeup_);
  Tasks finished_;  // Taken from the mailbox; `done` not called yet.
  List<OffloadJob> jobs_;
};

// Jobs keep the loop alive, the bell does not.
bool LoopOffload::open() {
  if (!forked_.start() || !wakeup_.start()) return false;
  loop().unref();
  return true;
}

void LoopOffload::add(OffloadJob& job) {
  jobs_.push_front(job);
  loop().ref();
}

void LoopOffload::remove(OffloadJob& job) {
  jobs_.remove(job);
  loop().unref();
}

void LoopOffload::deliver() {
  finished_.splice(finished_.end(), mailbox()->take());
  while (mailbox_->is_ours() && !finished_.empty()) {  // A job's `done` may fork.
    const Tasks one = take_first(finished_);
    if (OffloadJob* job = one.front().job) job->finish();
  }
}

// Jobs in progress are the parent's. A thread that does not exist here may hold the lock of its
// mailbox.
void LoopOffload::start_anew() {
  mailbox_ = std::make_shared<Mailbox>(wakeup_);
  finished_.clear();
  forget_all();
}

void LoopOffload::on_loop_end() {
  forget_all();
  if (mailbox_->is_ours()) mailbox_->close();
  loop().ref();
  wakeup_.stop();
}

}  // namespace

// ---- jobs

OffloadJob::OffloadJob(LoopOffload& loop_offload, Team& team, Tasks::iterator task, Job done)
    : loop_offload_(&loop_offload), team_(team), task_(task), done_(std::move(done)) {
  task_->job = this;
  team_.enter();
  loop_offload_->add(*this);
}

OffloadJob::~OffloadJob() {
  if (loop_offload_ != nullptr) forget();
  team_.leave();
}

void OffloadJob::finish() {
  std::exchange(loop_offload_, nullptr)->remove(*this);
  Job done = std::move(done_);
  call_user("offload()", done);
}

void OffloadJob::forget() {
  const Job gone = std::exchange(done_, nullptr);  // Destroyed last: it may own the handle.
  std::exchange(loop_offload_, nullptr)->remove(*this);
  if (!team_.is_ours()) return;
  const Tasks taken = team_.take_out(task_);
  if (taken.empty()) task_->job = nullptr;
}

void OffloadJobEnd::operator()(OffloadJob* job) const { delete job; }

// ---- the pool

ThreadPool& ThreadPool::shared() {
  static constinit std::atomic<ThreadPool*> shared{nullptr};
  ThreadPool* pool = shared.load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  auto made = std::make_unique<ThreadPool>();
  if (shared.compare_exchange_strong(pool, made.get())) return *made.release();
  return *pool;
}

ThreadPool::ThreadPool(const ThreadPoolOptions& options) : options_(options) {
  SPATE_ASSERT(options.max_threads > 0);
}

ThreadPool::~ThreadPool() {
  Team* team = this->team();
  if (team == nullptr) return;
  // In every build: the job would continue in a destroyed team.
  if (team->is_calling())
    rule_broken(std::source_location::current(), "a job does not destroy its ThreadPool",
                "the destructor waits for all jobs: destroy it on another thread");
  team->finish();
  team->leave();
}

// nullptr if there is no team, or only that of the parent process.
Team* ThreadPool::team() const {
  Team* team = team_.load(std::memory_order_acquire);
  return team != nullptr && team->is_ours() ? team : nullptr;
}

// Several threads may call it at once. The parent's team is not touched.
Team* ThreadPool::make_team() {
  Team* before = team_.load(std::memory_order_acquire);
  if (before != nullptr && before->is_ours()) return before;
  Team* made = new (std::nothrow) Team(options_);
  if (made == nullptr || team_.compare_exchange_strong(before, made)) return made;
  made->leave();
  return before;
}

unsigned ThreadPool::threads() const { return team() == nullptr ? 0 : team()->threads(); }
std::size_t ThreadPool::queued() const { return team() == nullptr ? 0 : team()->queued(); }

Result<Offloading> ThreadPool::start(Loop& loop, Job work, Job done) {
  SPATE_ASSERT(may_touch(loop), kWrongThread);
  if (is_foreign(loop)) return std::unexpected(make_error_code(Error::loop_forked));
  LoopOffload* loop_offload = LoopOffload::of(loop);
  Team* team = make_team();
  if (loop_offload == nullptr || team == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  Tasks task;
  task.push_back({.work = std::move(work), .mailbox = loop_offload->mailbox(), .job = nullptr});
  const Tasks::iterator place = task.begin();
  if (const std::error_code error = team->add(task)) return std::unexpected(error);
  return Offloading(new OffloadJob(*loop_offload, *team, place, std::move(done)));
}

}  // namespace spate
