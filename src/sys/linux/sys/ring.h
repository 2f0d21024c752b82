// Ring: the submission and completion queues shared with the kernel.
//
// A ring is bound to the thread that has opened it: from another one wait() returns -EEXIST. The
// kernel completes operations only within wait(), so that nothing changes concurrently. In the
// child of a fork the ring is unusable, because its memory is not inherited, and must be closed.
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

  // Opens the ring, and tests it: a sandbox may forbid any of the calls. After an error it must be
  // closed.
  std::error_code open(unsigned entries, unsigned completions);
  void close();
  bool is_open() const { return fd_.is_open(); }

  // Returns the next entry, all zero; nullptr while the kernel takes no more. Memory that the entry
  // points to must stay valid until the next wait().
  io_uring_sqe* entry() {
    if (unsubmitted() == entries_ && submit() <= 0) return nullptr;
    io_uring_sqe& entry = sqes_[tail_++ & (entries_ - 1)];
    entry = {};
    return &entry;
  }

  // Submits the filled entries, and waits for a completion, at most `timeout`. Returns 0, or a
  // negated errno: -ETIME, -EINTR, -EEXIST; -EAGAIN and -EBUSY when the kernel is short of
  // resources.
  long wait(Nanos timeout) {
    const long result = io_uring_wait(fd_.get(), publish(), timeout);
    return result < 0 ? result : 0;
  }

  // Calls `take(const io_uring_cqe&)`, which must not use the ring.
  template <class Take>
  void for_each_completion(Take take) {
    const unsigned end = load(cq_tail_);
    for (unsigned head = *cq_head_; head != end; ++head) take(cqes_[head & completions_mask_]);
    store(cq_head_, end);
  }

 private:
  static unsigned load(unsigned* shared) {
    return std::atomic_ref(*shared).load(std::memory_order_acquire);
  }
  static void store(unsigned* shared, unsigned value) {
    std::atomic_ref(*shared).store(value, std::memory_order_release);
  }

  unsigned unsubmitted() const { return tail_ - load(sq_head_); }
  long submit() { return io_uring_submit(fd_.get(), publish()); }
  // Makes the filled entries visible to the kernel. Returns their number.
  unsigned publish() {
    store(sq_tail_, tail_);
    return unsubmitted();
  }
  // Returns whether it was opened, and by this process rather than its parent.
  bool is_ours() const;
  std::error_code map(const io_uring_params& params);
  std::error_code prove();

  Descriptor fd_;
  std::uint32_t fork_generation_ = 0;
  unsigned entries_ = 0;  // A power of two.
  unsigned tail_ = 0;     // The position of the next entry; the kernel's copy is updated later.
  unsigned completions_mask_ = 0;
  unsigned* sq_head_ = nullptr;
  unsigned* sq_tail_ = nullptr;
  unsigned* cq_head_ = nullptr;
  unsigned* cq_tail_ = nullptr;
  io_uring_sqe* sqes_ = nullptr;
  io_uring_cqe* cqes_ = nullptr;
  void* queues_ = nullptr;
  std::size_t queues_size_ = 0;
};

}  // namespace spate::sys
