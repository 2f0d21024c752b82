// offload() and ThreadPool, over a Team and the loop's OffloadDesk.
#include "spate/offload.h"

#include <new>

#include "base/chain.h"
#include "core/loop_local.h"
#include "core/ownership.h"
#include "core/user_code.h"
#include "pool/team.h"
#include "spate/assert.h"
#include "spate/hooks.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

class OffloadDesk;

}  // namespace

// The object behind an Offloading. Its destructor cancels.
class OffloadJob : public Linked<OffloadJob> {
 public:
  OffloadJob(OffloadDesk& desk, Team& team, Tasks::iterator task, Job done);
  OffloadJob(const OffloadJob&) = delete;
  OffloadJob& operator=(const OffloadJob&) = delete;
  ~OffloadJob();

  // Calls `done`, which may destroy us.
  void finish();
  // The loop is being destroyed, or this is a fork: `done` will not be called.
  void forget();

 private:
  OffloadDesk* desk_;  // nullptr when the job is no longer in flight.
  Team& team_;
  Tasks::iterator task_;  // While there is a desk.
  Job done_;
};

namespace {

// A loop's jobs in flight, and their results.
class OffloadDesk final : public LoopLocal {
 public:
  // The loop's, created on first use. nullptr when memory runs out.
  static OffloadDesk* of(Loop& loop) { return local_of<OffloadDesk>(loop); }
  explicit OffloadDesk(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  // A new one in the child of a fork.
  const std::shared_ptr<Mailbox>& mailbox() {
    if (!mailbox_->is_ours()) start_anew();
    return mailbox_;
  }
  void add(OffloadJob& job);
  void remove(OffloadJob& job);

 private:
  bool open() override;
  void on_loop_end() override;
  // A callback that runs the loop gets the results behind its own.
  void on_handover() override {
    if (!finished_.empty()) bell_.feed();
  }

  void deliver();
  void start_anew();
  void forget_all() {
    while (OffloadJob* job = jobs_.first()) job->forget();
  }

  Async bell_{loop(), bind<&OffloadDesk::deliver>(this)};
  Fork forked_{loop(), [this] { mailbox(); }};
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>(bell_);
  Tasks finished_;  // Taken from the mailbox; `done` not called yet.
  Chain<OffloadJob> jobs_;
};

// Jobs keep the loop alive, the bell does not.
bool OffloadDesk::open() {
  if (!forked_.start() || !bell_.start()) return false;
  loop().unref();
  return true;
}

void OffloadDesk::add(OffloadJob& job) {
  jobs_.add(job);
  loop().ref();
}

void OffloadDesk::remove(OffloadJob& job) {
  jobs_.remove(job);
  loop().unref();
}

void OffloadDesk::deliver() {
  finished_.splice(finished_.end(), mailbox()->take());
  while (mailbox_->is_ours() && !finished_.empty()) {  // One of them may fork.
    const Tasks one = take_first(finished_);
    if (OffloadJob* job = one.front().job) job->finish();
  }
}

// Jobs in flight are the parent's, and so is the lock of its mailbox.
void OffloadDesk::start_anew() {
  mailbox_ = std::make_shared<Mailbox>(bell_);
  finished_.clear();
  forget_all();
}

void OffloadDesk::on_loop_end() {
  forget_all();
  if (mailbox_->is_ours()) mailbox_->close();
  loop().ref();
  bell_.stop();
}

}  // namespace

// ---- a job

OffloadJob::OffloadJob(OffloadDesk& desk, Team& team, Tasks::iterator task, Job done)
    : desk_(&desk), team_(team), task_(task), done_(std::move(done)) {
  task_->job = this;
  team_.enter();
  desk_->add(*this);
}

OffloadJob::~OffloadJob() {
  if (desk_ != nullptr) forget();
  team_.leave();
}

void OffloadJob::finish() {
  std::exchange(desk_, nullptr)->remove(*this);
  Job done = std::move(done_);
  call_user("offload()", done);
}

void OffloadJob::forget() {
  std::exchange(desk_, nullptr)->remove(*this);
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
  // In every build: the job would go on in a team that is gone.
  if (team->is_calling())
    rule_broken(std::source_location::current(), "a job does not destroy its ThreadPool",
                "the destructor waits for all jobs: destroy it on another thread");
  team->finish();
  team->leave();
}

// nullptr if there is none, or only that of the process that forked.
Team* ThreadPool::team() const {
  Team* team = team_.load(std::memory_order_acquire);
  return team != nullptr && team->is_ours() ? team : nullptr;
}

// Several threads may come here at once. The team of the process that forked stays where it is.
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
  OffloadDesk* desk = OffloadDesk::of(loop);
  Team* team = make_team();
  if (desk == nullptr || team == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  Tasks task;
  task.push_back({.work = std::move(work), .mailbox = desk->mailbox(), .job = nullptr});
  const Tasks::iterator place = task.begin();
  if (const std::error_code error = team->add(task)) return std::unexpected(error);
  return Offloading(new OffloadJob(*desk, *team, place, std::move(done)));
}

}  // namespace spate
