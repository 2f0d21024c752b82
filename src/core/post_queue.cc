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
constexpr std::size_t kBusy = 16;

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

// What one thread has posted to one loop. The thread and the loop each hold it; the last to let go
// frees it, whichever ends first.
class PostQueue::Lane {
 public:
  // Null when memory runs out.
  static Lane* make() {
    Segment* segment = Segment::make();
    auto* lane = segment == nullptr ? nullptr : new (std::nothrow) Lane(segment);
    if (lane == nullptr) deallocate(segment);
    return lane;
  }

  // The thread's side.
  Job* place() {
    if (pushed_ == room_ && !append_segment()) return nullptr;
    return last_->place(pushed_);
  }
  void publish() { published_.store(++pushed_); }
  void abandon() {
    abandoned_.store(true, std::memory_order_release);
    release();
  }
  bool is_loop_gone() const { return holders_.load(std::memory_order_relaxed) == 1; }

  // The loop's side.
  bool has_tasks() const { return published_.load() != taken_; }
  bool is_abandoned() const { return abandoned_.load(std::memory_order_acquire) && !has_tasks(); }
  // Calls in place. A task that runs the loop comes here again (`nested`): the arrays that it
  // empties are still needed by those it was called from.
  std::size_t run(std::size_t limit, bool nested) {
    std::uint64_t available = published_.load(std::memory_order_acquire);
    const bool is_own = thread_ == sys::thread_identity();
    std::size_t count = 0;
    while (taken_ < available && count < limit) {
      Job* task = next_task(nested);
      ++count;
      call_user("post()", *task);
      task->~Job();
      // What this very thread posts meanwhile costs nothing to look for. Another's count would be
      // pulled back and forth between two caches, and is left to the next turn.
      if (taken_ >= available && is_own) available = published_.load(std::memory_order_relaxed);
    }
    if (!nested) release_chain(retired_);
    return count;
  }
  void drop_tasks() {
    while (has_tasks()) next_task(false)->~Job();
  }
  void release() {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  Lane* next = nullptr;  // The loop's list.

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
  std::uint64_t room_ = kSegmentTasks;  // Up to where the last array reaches.
  alignas(kCacheLine) std::atomic<std::uint64_t> published_{0};
  std::atomic<Segment*> spare_{nullptr};
  std::atomic<int> holders_{2};
  std::atomic<bool> abandoned_{false};
  alignas(kCacheLine) Segment* first_;
  Segment* retired_ = nullptr;
  std::uint64_t taken_ = 0;
};

// The lanes that the calling thread has, whatever loops they lead to. They are there until the
// thread can post no more, so that the destructors of its thread_locals may, and those of statics.
class PostQueue::LanesOfThread final : public sys::ThreadEnd {
 public:
  // Null when memory runs out.
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

  // Most threads post to one loop most of the time.
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
  for (Lane* lane = lanes_.load(std::memory_order_acquire); lane != nullptr;) {
    Lane* next = lane->next;
    lane->drop_tasks();
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
  while (!lanes_.compare_exchange_weak(lane->next, lane, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
  return lane;
}

PostQueue::Lane* PostQueue::lane_of_this_thread() {
  const LanesOfThread::Entry& recent = LanesOfThread::recent_;
  return recent.queue == id_ ? recent.lane : find_or_make_lane();
}

Job* PostQueue::place_in(Lane& lane) { return lane.place(); }
void PostQueue::publish(Lane& lane) { lane.publish(); }

bool PostQueue::find_posts() const {
  for (const Lane* lane = lanes_.load(); lane != nullptr; lane = lane->next) {
    if (lane->has_tasks()) return true;
  }
  return false;
}

std::size_t PostQueue::run(std::size_t limit) {
  ++running_;
  std::size_t count = 0;
  bool saw_abandoned = false;
  for (Lane* lane = lanes_.load(std::memory_order_acquire); lane != nullptr; lane = lane->next) {
    const std::size_t called = lane->run(limit - count, running_ > 1);
    count += called;
    saw_abandoned = saw_abandoned || (called == 0 && lane->is_abandoned());
  }
  if (--running_ == 0 && saw_abandoned) remove_abandoned();
  is_busy_ = count > kBusy;
  return count;
}

// New lanes are put at the head by their threads; only the loop takes lanes out.
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
      previous = lane;  // Another has come before it meanwhile: it goes the next time.
    }
    lane = next;
  }
}

}  // namespace spate
