#include "sys/operations.h"

#include <cerrno>

#include "spate/assert.h"

namespace spate::sys {

io_uring_sqe* Operations::begin(Operation& operation) {
  SPATE_ASSERT(!operation.is_begun, "an operation was begun that has not been told its end");
  if (!ring_.is_open() || !completed_.reserve(completed_.size() + in_flight_ + 1)) return nullptr;
  io_uring_sqe* const entry = ring_.entry();
  if (entry == nullptr) return nullptr;
  entry->user_data = reinterpret_cast<std::uintptr_t>(&operation);
  link(operation);
  return entry;
}

// Should the address be another operation's by the time the kernel sees this, that one stands
// behind it in the queue, and is not known yet.
bool Operations::cancel(Operation& operation) {
  if (!operation.is_begun) return true;
  io_uring_sqe* const entry = ring_.is_open() ? ring_.entry() : nullptr;
  if (entry == nullptr) return false;
  prepare_cancel(*entry, reinterpret_cast<std::uintptr_t>(&operation));
  entry->user_data = kNobody;
  return true;
}

std::error_code Operations::open() {
  close(-ECANCELED);
  ++generation_;
  return ring_.open(kEntries, kCompletions);
}

void Operations::end() {
  close(-ECANCELED);
  tell();
}

// What the kernel has done meanwhile counts. From another thread than the ring's nothing can be
// waited for: closing the ring cancels it.
void Operations::close(int error) {
  if (ring_.is_ours() && in_flight_ > 0) {
    if (io_uring_sqe* const entry = ring_.entry()) {
      prepare_cancel_all(*entry);
      entry->user_data = kNobody;
    }
    for (int tries = 0; in_flight_ > 0 && tries < kPatience; ++tries) {
      ring_.enter(1, kMoment);
      collect([](const io_uring_cqe&) {});
    }
  }
  ring_.close();
  while (all_.next != &all_) {
    completed_.push_reserved({all_.next, error, 0});
    unlink(*all_.next);
  }
}

// By index: a callback may make the list grow.
void Operations::tell() {
  for (std::size_t i = 0; i < completed_.size(); ++i) {
    const Completion done = completed_[i];
    Operation& operation = *done.operation;
    if (Operation::is_last(done.flags)) operation.is_begun = false;
    operation.callback(operation.context, operation, done.result, done.flags);
  }
  completed_.clear();
}

// The last completion of each has its room.
bool Operations::note(const io_uring_cqe& completion) {
  auto& operation = *reinterpret_cast<Operation*>(completion.user_data);
  if (Operation::is_last(completion.flags)) {
    unlink(operation);
  } else if (!completed_.reserve(completed_.size() + in_flight_ + 1)) {
    return false;
  }
  completed_.push_reserved({&operation, completion.res, completion.flags});
  return true;
}

void Operations::link(Operation& operation) {
  operation.is_begun = true;
  operation.next = &all_;
  operation.previous = all_.previous;
  operation.previous->next = &operation;
  all_.previous = &operation;
  ++in_flight_;
}

void Operations::unlink(Operation& operation) {
  operation.previous->next = operation.next;
  operation.next->previous = operation.previous;
  --in_flight_;
}

}  // namespace spate::sys
