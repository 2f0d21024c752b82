// Operations: what the kernel is asked to do while the loop turns, and tells of when it is done.
//
// An Operation is a member of whatever begins it. From begin() to its last completion the kernel
// knows its address: it must stay where it is, and so must the buffer that its entry names. Who
// loses interest in one calls cancel() and leaves it where it is (an owner that goes away leaves it
// behind, with another callback); the last completion comes in any case, and it may say anything:
// cancelling comes too late often enough.
//
// Each begin() is answered by exactly one last completion, also if the loop ends, is run by another
// thread, or finds itself in the child of a fork: -ECANCELED then means that nothing has been done,
// and that it may be begun again. Any other error leaves open what has been done.
#pragma once

#include <cstdint>
#include <system_error>

#include "base/array.h"
#include "sys/ring.h"

namespace spate::sys {

struct Operation {
  // Called by the loop, in the thread that runs it, right after the wait and before any user code.
  // It must not call user code itself, but may feed a node, begin operations, and free this one if
  // the completion is its last. `result` is the kernel's, zero or more or a negated errno; `flags`
  // are the completion's: IORING_CQE_F_BUFFER, IORING_CQE_F_SOCK_NONEMPTY ...
  using Callback = void (*)(void* context, Operation& operation, int result, std::uint32_t flags);

  Callback callback = nullptr;
  void* context = nullptr;
  bool is_begun = false;  // Until its last completion is told.

  static bool is_last(std::uint32_t flags) { return (flags & IORING_CQE_F_MORE) == 0; }

  Operation* next = nullptr;  // A circle of those that the kernel has.
  Operation* previous = nullptr;
};

// One a loop, for the loop's thread alone.
class Operations {
 public:
  Operations() { all_.next = all_.previous = &all_; }
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  // ---- for who wants something done

  // The entry that says what is to be done, all zero: to be filled in by one of the prepare_...()
  // of sys/io_uring.h. Its user_data is not the caller's. The kernel sees it at the next wait.
  // nullptr if there is no ring, the kernel takes no more, or memory runs out: then nothing is
  // begun.
  io_uring_sqe* begin(Operation& operation);
  // Asks the kernel to make an end of it. False if it does not listen now.
  bool cancel(Operation& operation);
  // Where BufferRings are provided; they have to be anew when generation() has changed.
  Ring& ring() { return ring_; }
  std::uint32_t generation() const { return generation_; }

  // ---- for the backend

  // Opens a ring, or another one.
  std::error_code open();
  // Cancels what is in flight, as far as it is not done; that is told `error`, a negated errno.
  void close(int error);
  // Whether there is nothing that the ring would have to be asked for.
  bool is_idle() const {
    return in_flight_ == 0 && !(ring_.is_open() && ring_.has_something_to_do());
  }
  // Notes what is complete. Completions of entries that are the backend's own, with an odd
  // user_data other than kNobody, are handed to `take`. Without memory the rest is noted later.
  template <class Take>
  void collect(Take take);
  static constexpr std::uint64_t kNobody = 1;  // Whose completion is of no interest.

  // ---- for the loop

  // Has the kernel see what has been begun, since an outer loop waits next. False if there is
  // something to be collected before.
  bool submit() {
    if (!ring_.is_open()) return completed_.empty();
    if (ring_.unsubmitted() > 0) ring_.submit();
    return completed_.empty() && !ring_.has_something_to_do();
  }
  bool has_completed() const { return !completed_.empty(); }
  // Calls the callbacks of what has been noted.
  void tell();
  // Cancels everything, and tells. Nothing can be begun any more.
  void end();

 private:
  struct Completion {
    Operation* operation;
    int result;
    std::uint32_t flags;
  };
  static constexpr unsigned kEntries = 256;
  static constexpr unsigned kCompletions = 4096;
  static constexpr int kPatience = 64;        // So often, and each time for so long,
  static constexpr Nanos kMoment{1'000'000};  // the end of what was cancelled is waited for.

  bool note(const io_uring_cqe& completion);
  void link(Operation& operation);
  void unlink(Operation& operation);

  Ring ring_;
  std::uint32_t generation_ = 0;
  Operation all_;
  std::size_t in_flight_ = 0;  // There is room for as many in:
  Array<Completion> completed_;
};

template <class Take>
void Operations::collect(Take take) {
  ring_.for_each_completion([&](const io_uring_cqe& completion) {
    if ((completion.user_data & 1) == 0) return note(completion);
    if (completion.user_data != kNobody) take(completion);
    return true;
  });
}

}  // namespace spate::sys
