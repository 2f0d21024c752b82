#include "sys/ring.h"

#include <cerrno>

#include "sys/process.h"

namespace spate::sys {

namespace {

// All available since Linux 6.1. The kernel completes operations in wait() only, and wakes the
// thread only when enough are complete.
constexpr unsigned kFlags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                            IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
constexpr unsigned kFeatures = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP |
                               IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_EXT_ARG |
                               IORING_FEAT_CQE_SKIP;

template <class T>
T* at(void* queues, unsigned offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(queues) + offset);
}

}  // namespace

std::error_code Ring::open(unsigned entries, unsigned completions) {
  io_uring_params params{};
  params.flags = kFlags;
  params.cq_entries = completions;
  const long fd = io_uring_setup(entries, params);
  if (fd < 0) return error_code(fd);
  fd_ = Descriptor(fd);
  std::error_code error = map(params);
  if (!error) error = prove();
  if (error) close();
  return error;
}

std::error_code Ring::map(const io_uring_params& params) {
  if ((params.features & kFeatures) != kFeatures) return error_code(-ENOSYS);
  fork_generation_ = sys::fork_generation();
  entries_ = params.sq_entries;
  queues_size_ = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
  const std::size_t indices_end = params.sq_off.array + entries_ * sizeof(unsigned);
  if (queues_size_ < indices_end) queues_size_ = indices_end;
  queues_ = map_unshared(queues_size_, fd_.get(), IORING_OFF_SQ_RING);
  if (queues_ == nullptr) return error_code(-errno);
  void* const sqes = map_unshared(entries_ * sizeof(io_uring_sqe), fd_.get(), IORING_OFF_SQES);
  if (sqes == nullptr) return error_code(-errno);
  sqes_ = static_cast<io_uring_sqe*>(sqes);
  sq_head_ = at<unsigned>(queues_, params.sq_off.head);
  sq_tail_ = at<unsigned>(queues_, params.sq_off.tail);
  cq_head_ = at<unsigned>(queues_, params.cq_off.head);
  cq_tail_ = at<unsigned>(queues_, params.cq_off.tail);
  cqes_ = at<io_uring_cqe>(queues_, params.cq_off.cqes);
  completions_mask_ = params.cq_entries - 1;
  tail_ = 0;
  // Each entry stays at its own position in the queue.
  unsigned* const indices = at<unsigned>(queues_, params.sq_off.array);
  for (unsigned i = 0; i < entries_; ++i) indices[i] = i;
  return {};
}

std::error_code Ring::prove() {
  prepare_nop(*entry());
  long result = wait(Nanos{0});
  if (result == -EINTR) result = wait(Nanos{0});
  if (result < 0) return error_code(result);
  if (*cq_head_ == load(cq_tail_)) return error_code(-ENOSYS);
  for_each_completion([](const io_uring_cqe&) {});
  return {};
}

bool Ring::is_ours() const { return is_open() && fork_generation_ == sys::fork_generation(); }

// In the child of a fork the addresses are unmapped, or belong to other memory.
void Ring::close() {
  if (is_ours()) {
    if (sqes_ != nullptr) ::munmap(sqes_, entries_ * sizeof(io_uring_sqe));
    if (queues_ != nullptr) ::munmap(queues_, queues_size_);
  }
  sqes_ = nullptr;
  queues_ = nullptr;
  {
    const Descriptor closed = std::move(fd_);
  }
}

}  // namespace spate::sys
