// io_uring without a library, for contestants that are loops by hand: a ring of one thread's, and a
// pool of buffers that the kernel chooses from.
#ifndef BENCH_HARNESS_RING_H
#define BENCH_HARNESS_RING_H

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>

#include "harness/server.h"

template <class T>
T load_acquire(T* at) {
  return std::atomic_ref(*at).load(std::memory_order_acquire);
}
template <class T>
void store_release(T* at, T value) {
  std::atomic_ref(*at).store(value, std::memory_order_release);
}

// The two queues, mapped.
class Ring {
 public:
  Ring(unsigned entries, unsigned completions) {
    io_uring_params p = {};
    p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
              IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE;
    p.cq_entries = completions;
    fd_ = int(syscall(SYS_io_uring_setup, entries, &p));
    if (fd_ < 0) bench_die("io_uring_setup");
    const std::size_t size = std::max(p.sq_off.array + p.sq_entries * sizeof(unsigned),
                                      p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe));
    char* queues = map(size, IORING_OFF_SQ_RING);
    const auto at = [&](unsigned offset) { return reinterpret_cast<unsigned*>(queues + offset); };
    entries_ =
        reinterpret_cast<io_uring_sqe*>(map(p.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
    sq_tail_ = at(p.sq_off.tail);
    sq_flags_ = at(p.sq_off.flags);
    sq_entries_ = p.sq_entries;
    for (unsigned i = 0; i < p.sq_entries; ++i) at(p.sq_off.array)[i] = i;
    cq_head_ = at(p.cq_off.head);
    cq_tail_ = at(p.cq_off.tail);
    cq_mask_ = p.cq_entries - 1;
    completions_ = reinterpret_cast<io_uring_cqe*>(queues + p.cq_off.cqes);
  }

  int fd() const { return fd_; }

  io_uring_sqe& next_entry() {
    if (asked_ == sq_entries_) enter(0, 0, nullptr);
    io_uring_sqe& entry = entries_[tail_++ & (sq_entries_ - 1)];
    ++asked_;
    entry = {};
    return entry;
  }

  // Returns whether the kernel holds completions that did not fit into the queue.
  bool has_more() const {
    return (std::atomic_ref(*sq_flags_).load(std::memory_order_relaxed) &
            (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }

  void submit_and_wait(unsigned count) { enter(count, IORING_ENTER_GETEVENTS, nullptr); }
  // As many as are there, `count` at most.
  void submit_and_fetch(unsigned count) {
    static __kernel_timespec none = {0, 0};
    enter(count, IORING_ENTER_GETEVENTS, &none);
  }

  template <class Function>
  unsigned each_completion(Function function) {
    unsigned head = *cq_head_;
    const unsigned tail = load_acquire(cq_tail_), count = tail - head;
    for (; head != tail; ++head) function(completions_[head & cq_mask_]);
    store_release(cq_head_, head);
    return count;
  }

 private:
  char* map(std::size_t size, off_t what) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, what);
    if (at == MAP_FAILED) bench_die("mmap");
    return static_cast<char*>(at);
  }

  void enter(unsigned wait, unsigned flags, const __kernel_timespec* timeout) {
    store_release(sq_tail_, tail_);
    io_uring_getevents_arg argument = {};
    argument.ts = reinterpret_cast<std::uint64_t>(timeout);
    const long count = timeout == nullptr
                           ? syscall(SYS_io_uring_enter, fd_, asked_, wait, flags, nullptr, 0)
                           : syscall(SYS_io_uring_enter, fd_, asked_, wait,
                                     flags | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
    if (count >= 0)
      asked_ -= unsigned(count);
    else if (errno == ETIME)
      asked_ = 0;
    else if (errno != EINTR && errno != EBUSY)
      bench_die("io_uring_enter");
  }

  int fd_;
  io_uring_sqe* entries_;
  unsigned *sq_tail_, *sq_flags_, sq_entries_, tail_ = 0, asked_ = 0;
  unsigned *cq_head_, *cq_tail_, cq_mask_;
  io_uring_cqe* completions_;
};

// Buffers that the kernel takes from the front of a ring, and that we give back at its end.
class Pool {
 public:
  Pool(const Ring& ring, unsigned count, unsigned size) : count_(count), size_(size) {
    const std::size_t list = (count * sizeof(io_uring_buf) + 4095) / 4096 * 4096;
    void* at = mmap(nullptr, list + std::size_t(count) * size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) bench_die("mmap");
    ring_ = static_cast<io_uring_buf_ring*>(at);
    entries_ = static_cast<io_uring_buf*>(at);
    bytes_ = static_cast<char*>(at) + list;
    io_uring_buf_reg registration = {};
    registration.ring_addr = reinterpret_cast<std::uint64_t>(at);
    registration.ring_entries = count;
    if (syscall(SYS_io_uring_register, ring.fd(), IORING_REGISTER_PBUF_RING, &registration, 1) != 0)
      bench_die("IORING_REGISTER_PBUF_RING");
    for (unsigned i = 0; i < count; ++i) put_back(i);
    publish();
  }

  char* buffer(unsigned i) { return bytes_ + std::size_t(i) * size_; }
  void put_back(unsigned i) {
    io_uring_buf& entry = entries_[tail_++ & (count_ - 1)];
    entry.addr = reinterpret_cast<std::uint64_t>(buffer(i));
    entry.len = size_;
    entry.bid = std::uint16_t(i);
  }
  // True if there are more than before.
  bool publish() {
    if (ring_->tail == tail_) return false;
    store_release(&ring_->tail, tail_);
    return true;
  }

 private:
  io_uring_buf_ring* ring_;
  io_uring_buf* entries_;  // Where the header's `bufs` is in C, and not in C++.
  char* bytes_;
  const unsigned count_, size_;
  std::uint16_t tail_ = 0;
};

#endif
