#include "core/post_queue.h"

#include <new>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "core/user_code.h"
#include "sys/process.h"
#include "sys/thread.h"

namespace spate {

namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::uint64_t kSegmentTasks = 128;
constexpr std::size_t kBurst = 4;
constexpr int kBurstPauses = 32;  // From 0.3 to 2 us, as the processor takes them.

std::atomic<std::uint64_t> next_id{1};

}  // namespace

struct PostQueue::Segment {
  Segment* next;
  alignas(Job) std::byte storage[kSegmentTasks * sizeof(Job)];

  static Segment* make() {
    auto* segment = static_cast<Segment*>(reallocate(nullptr, sizeof(Segment)));
    if (segment != nullptr) segment->next = nullptr;
    return segment;
  }
  Job* place(std::uint64_t number) {
    return reinterpret_cast<Job*>(storage) + number % kSegmentTasks;
  }
};

// The tasks of one thread for one loop (an SPSC queue). The thread and the loop each hold it; the
// last one to release it frees it.
class PostQueue::Lane {
 public:
  // nullptr when memory runs out.
  static Lane* make() {
    Segment* segment = Segment::make();
    auto* lane = segment == nullptr ? nullptr : new (std::nothrow) Lane(segment);
    if (lane == nullptr) deallocate(segment);
    return lane;
  }

  // ---- the thread's side
  Job* place() {
    if (pushed_ == room_ && !append_segment()) return nullptr;
    return last_->place(pushed_);
  }
  // Sequentially consistent, because the caller reads the announcement of sleep next (wakeup.h). A
  // release store could become visible after that read, and a loop would sleep with a task queued.
  void publish() { published_.store(++pushed_); }
  void abandon() {
    abandoned_.store(true, std::memory_order_release);
    release();
  }
  bool is_of_this_thread() const { return thread_ == sys::thread_identity(); }
  bool is_loop_gone() const { return holders_.load(std::memory_order_relaxed) == 1; }

  // ---- the loop's side
  bool has_tasks() const { return published_.load() != taken_; }
  bool is_abandoned() const { return abandoned_.load(std::memory_order_acquire) && !has_tasks(); }
  // Calls tasks in place. A task that runs the loop enters again (`nested`): the segments that it
  // empties are still needed by its callers.
  std::size_t run(std::size_t limit, bool nested) {
    std::uint64_t available = published_.load(std::memory_order_acquire);
    const bool is_own = is_of_this_thread();
    std::size_t count = 0;
    while (taken_ < available && count < limit) {
      Job* task = next_task(nested);
      ++count;
      call_user("post()", *task);
      task->~Job();
      // Tasks posted by this thread meanwhile are cheap to see. Reading another thread's counter
      // would move its cache line back and forth, so that is left to the next turn.
      if (taken_ >= available && is_own) available = published_.load(std::memory_order_relaxed);
    }
    if (!nested) release_chain(retired_);
    return count;
  }
  // Removes and returns a task; empty if the lane has none.
  Job take() {
    if (!has_tasks()) return {};
    Job* task = next_task(false);
    Job taken = std::move(*task);
    task->~Job();
    return taken;
  }
  void release() {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  Lane* next = nullptr;  // The link of the loop's list.

 private:
  explicit Lane(Segment* segment) : last_(segment), first_(segment) {}
  ~Lane() {
    deallocate(spare_.load(std::memory_order_relaxed));
    deallocate(first_);  // Empty, and therefore the only one.
  }

  bool append_segment() {
    Segment* segment = spare_.exchange(nullptr, std::memory_order_acquire);
    if (segment == nullptr) segment = Segment::make();
    if (segment == nullptr) return false;
    segment->next = nullptr;
    last_->next = segment;
    last_ = segment;
    room_ += kSegmentTasks;
    return true;
  }

  Job* next_task(bool nested) {
    if (taken_ % kSegmentTasks == 0 && taken_ > 0) {
      Segment* used = first_;
      first_ = used->next;
      if (nested) {
        used->next = retired_;
        retired_ = used;
      } else {
        deallocate(spare_.exchange(used, std::memory_order_release));
      }
    }
    return first_->place(taken_++);
  }

  static void release_chain(Segment*& chain) {
    while (chain != nullptr) deallocate(std::exchange(chain, chain->next));
  }

  const std::uintptr_t thread_ = sys::thread_identity();
  alignas(kCacheLine) Segment* last_;
  std::uint64_t pushed_ = 0;
  std::uint64_t room_ = kSegmentTasks;  // The end of the last segment.
  alignas(kCacheLine) std::atomic<std::uint64_t> published_{0};
  std::atomic<Segment*> spare_{nullptr};
  std::atomic<int> holders_{2};
  std::atomic<bool> abandoned_{false};
  alignas(kCacheLine) Segment* first_;
  Segment* retired_ = nullptr;
  std::uint64_t taken_ = 0;
};

// The calling thread's lanes to all loops. They exist until the thread can post no more, so that
// destructors of its thread_locals and of statics may post.
class PostQueue::LanesOfThread final : public sys::ThreadEnd {
 public:
  // nullptr when memory runs out.
  static LanesOfThread* get() {
    if (current_ != nullptr) return current_;
    current_ = new (std::nothrow) LanesOfThread;
    if (current_ != nullptr) current_->attach();
    return current_;
  }

  Lane* find(std::uint64_t queue) const {
    for (const Entry& entry : entries_) {
      if (entry.queue == queue) return (recent_ = entry).lane;
    }
    return nullptr;
  }
  void add(std::uint64_t queue, Lane* lane) {
    std::erase_if(entries_, [](const Entry& entry) {
      if (!entry.lane->is_loop_gone()) return false;
      entry.lane->release();
      return true;
    });
    recent_ = entries_.emplace_back(queue, lane);
  }

  // A cache of one entry: threads mostly post to one loop.
  struct Entry {
    std::uint64_t queue;
    Lane* lane;
  };
  static thread_local constinit Entry recent_;

 private:
  void end() override {
    for (const Entry& entry : entries_) entry.lane->abandon();
    recent_ = {};
    current_ = nullptr;
    delete this;
  }

  static thread_local constinit LanesOfThread* current_;
  std::vector<Entry> entries_;
};

thread_local constinit PostQueue::LanesOfThread::Entry PostQueue::LanesOfThread::recent_{};
thread_local constinit PostQueue::LanesOfThread* PostQueue::LanesOfThread::current_ = nullptr;

PostQueue::PostQueue() : id_(next_id.fetch_add(1, std::memory_order_relaxed)) {}

PostQueue::~PostQueue() {
  close();
  for (Lane* lane = lanes_.load(std::memory_order_acquire); lane != nullptr;) {
    Lane* next = lane->next;
    lane->release();
    lane = next;
  }
}

PostQueue::Lane* PostQueue::find_or_make_lane() {
  LanesOfThread* lanes = LanesOfThread::get();
  if (lanes == nullptr) return nullptr;
  Lane* lane = lanes->find(id_);
  if (lane != nullptr) return lane;
  lane = Lane::make();
  if (lane == nullptr) return nullptr;
  lanes->add(id_, lane);
  lane->next = lanes_.load(std::memory_order_relaxed);
  while (!lanes_.compare_exchange_weak(lane->next, lane, std::memory_order_seq_cst,
                                       std::memory_order_relaxed)) {
  }
  return lane;
}

PostQueue::Lane* PostQueue::lane_of_this_thread() {
  const LanesOfThread::Entry& recent = LanesOfThread::recent_;
  return recent.queue == id_ ? recent.lane : find_or_make_lane();
}

Job* PostQueue::place_in(Lane& lane) { return lane.place(); }
void PostQueue::publish(Lane& lane) {
  lane.publish();
  if (is_closed_.load()) [[unlikely]]
    drop_tasks(lane);
}

// A thread that did not see the flag has published its task before the search here.
void PostQueue::close() {
  is_closed_.store(true);
  for (Lane* lane = lanes_.load(); lane != nullptr; lane = lane->next) drop_tasks(*lane);
}

// A task's destructor may post, also to this queue, so it runs outside of the lock.
void PostQueue::drop_tasks(Lane& lane) {
  for (bool is_left = true; is_left;) {
    Job task;
    const std::lock_guard lock(dropping_);
    is_left = lane.has_tasks();
    task = lane.take();
  }
}

bool PostQueue::find_posts() const {
  for (const Lane* lane = lanes_.load(); lane != nullptr; lane = lane->next) {
    if (lane->has_tasks()) return true;
  }
  return false;
}

std::size_t PostQueue::run(std::size_t limit) {
  ++running_;
  std::size_t count = 0;
  std::size_t of_others = 0;
  bool saw_abandoned = false;
  for (Lane* lane = lanes_.load(std::memory_order_acquire); lane != nullptr; lane = lane->next) {
    const std::size_t called = lane->run(limit - count, running_ > 1);
    count += called;
    if (!lane->is_of_this_thread()) of_others += called;
    saw_abandoned = saw_abandoned || (called == 0 && lane->is_abandoned());
  }
  if (--running_ == 0 && saw_abandoned) remove_abandoned();
  // A thread that posts many tasks gets time to write the next ones. The loop would otherwise be
  // faster, and fall asleep after every few tasks. Each time, that thread would have to wake it by
  // a system call.
  if (of_others >= kBurst) sys::pause_processor(kBurstPauses);
  return count;
}

// Threads add new lanes at the head; only the loop removes lanes.
void PostQueue::remove_abandoned() {
  Lane* previous = nullptr;
  for (Lane* lane = lanes_.load(std::memory_order_acquire); lane != nullptr;) {
    Lane* next = lane->next;
    Lane* expected = lane;
    if (!lane->is_abandoned()) {
      previous = lane;
    } else if (previous != nullptr) {
      previous->next = next;
      lane->release();
    } else if (lanes_.compare_exchange_strong(expected, next, std::memory_order_acq_rel)) {
      lane->release();
    } else {
      previous = lane;  // Another lane was added before it meanwhile: it is removed the next time.
    }
    lane = next;
  }
}

}  // namespace spate
