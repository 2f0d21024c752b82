// Ring: the two queues that are shared with the kernel. Entries that ask for something go in at one
// end; completions, which carry the `user_data` of their entry, come out at the other.
//
// A ring is bound to the thread that has opened it: from another one enter() answers -EEXIST. The
// kernel completes operations only within enter(), so that nothing changes under its caller's feet.
// It is of no use in the child of a fork, which does not have its memory: to be closed there.
#pragma once

#include <atomic>
#include <cstdint>
#include <system_error>
#include <utility>

#include "spate/time.h"
#include "sys/io_uring.h"

namespace spate::sys {

class Ring {
 public:
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { close(); }

  // Opens it, and proves that it works: a sandbox may forbid any of the calls. It has to be closed.
  std::error_code open(unsigned entries, unsigned completions);
  // What is in flight is cancelled, and nobody is told.
  void close();
  bool is_open() const { return fd_.is_open(); }
  // Open, and not by the parent of this process.
  bool is_ours() const;
  int fd() const { return fd_.get(); }

  // The next entry, all zero; nullptr as long as the kernel takes no more. What the entry points to
  // has to stay until the next enter(), a buffer until the last completion.
  io_uring_sqe* entry() {
    if (unsubmitted() == entries_ && submit() <= 0) return nullptr;
    io_uring_sqe& entry = sqes_[tail_++ & (entries_ - 1)];
    entry = {};
    return &entry;
  }
  unsigned unsubmitted() const { return tail_ - load(sq_head_); }

  // Hands over the entries that have been filled in. How many, or a negated errno.
  long submit() { return io_uring_submit(fd_.get(), publish()); }

  // The same, and waits for `least` completions, `timeout` at most. 0, or a negated
  // errno: -ETIME, -EINTR, -EEXIST, -EAGAIN and -EBUSY when the kernel is short of something.
  long enter(unsigned least, Nanos timeout) {
    const long result = io_uring_enter(fd_.get(), publish(), least, timeout);
    return result < 0 ? result : 0;
  }

  // Whether the kernel has something to complete, or has had no room for completions: to enter()
  // finishes it. It completes only some at a time, and only one after a sleep.
  bool is_behind() const {
    return (load(sq_flags_) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }
  // Whether enter() would find something without waiting.
  bool has_something_to_do() const {
    return unsubmitted() > 0 || is_behind() || *cq_head_ != load(cq_tail_);
  }

  // Calls `take(const io_uring_cqe&)`, which returns false to leave this one and the rest for
  // later. It must not use the ring.
  template <class Take>
  void for_each_completion(Take take) {
    const unsigned end = load(cq_tail_);
    unsigned head = *cq_head_;
    while (head != end && take(cqes_[head & completions_mask_])) ++head;
    store(cq_head_, head);
  }

 private:
  static unsigned load(unsigned* shared) {
    return std::atomic_ref(*shared).load(std::memory_order_acquire);
  }
  static void store(unsigned* shared, unsigned value) {
    std::atomic_ref(*shared).store(value, std::memory_order_release);
  }

  // Shows the kernel the entries that have been filled in; their number.
  unsigned publish() {
    store(sq_tail_, tail_);
    return unsubmitted();
  }
  std::error_code map(const io_uring_params& params);
  std::error_code prove();

  Descriptor fd_;
  std::uint32_t fork_generation_ = 0;
  unsigned entries_ = 0;  // A power of two.
  unsigned tail_ = 0;     // Where the next entry goes; the kernel's copy lags behind.
  unsigned completions_mask_ = 0;
  unsigned* sq_head_ = nullptr;
  unsigned* sq_tail_ = nullptr;
  unsigned* sq_flags_ = nullptr;
  unsigned* cq_head_ = nullptr;
  unsigned* cq_tail_ = nullptr;
  io_uring_sqe* sqes_ = nullptr;
  io_uring_cqe* cqes_ = nullptr;
  void* queues_ = nullptr;
  std::size_t queues_size_ = 0;
};

// Buffers that the kernel takes itself when there is something to be received, so that idle
// connections need none.
class BufferRing {
 public:
  BufferRing() = default;
  BufferRing(const BufferRing&) = delete;
  BufferRing& operator=(const BufferRing&) = delete;
  ~BufferRing();

  // `count`, a power of two of at most 32,768, of `size` bytes each. Once.
  std::error_code allocate(unsigned count, unsigned size);
  // Has `ring` take from these where an entry asks for buffers of the group. All of them are the
  // kernel's then. To be done for each ring anew that is opened; one ring at a time.
  std::error_code provide(Ring& ring, std::uint16_t group);

  unsigned count() const { return count_; }
  unsigned size() const { return size_; }
  std::byte* buffer(unsigned index) const { return memory_ + std::size_t{index} * size_; }
  // Which buffer a completion is about that carries one.
  static unsigned index_of(std::uint32_t flags) { return flags >> IORING_CQE_BUFFER_SHIFT; }

  // The kernel may fill it again; it knows once publish() has told it, of all at a time.
  void give_back(unsigned index) {
    io_uring_buf& place = ring_[tail_++ & (count_ - 1)];
    place.addr = reinterpret_cast<std::uintptr_t>(buffer(index));
    place.len = size_;
    place.bid = static_cast<__u16>(index);
  }
  void publish() {  // The first place's spare field is the end of the queue.
    std::atomic_ref(ring_->resv).store(tail_, std::memory_order_release);
  }

 private:
  io_uring_buf* ring_ = nullptr;
  std::byte* memory_ = nullptr;
  unsigned count_ = 0;
  unsigned size_ = 0;
  std::uint16_t tail_ = 0;
  std::uint32_t fork_generation_ = 0;
};

}  // namespace spate::sys
