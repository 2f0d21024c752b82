// io_uring: operations, and readiness beside them. Descriptors are watched by epoll's set, and the
// set by a poll of the ring's: it is the ring that is waited for. A poll for each descriptor would
// hold a file open that the program has closed, so that its peer does not learn of it.
#include <algorithm>
#include <cerrno>
#include <new>

#include "backend/epoll.h"
#include "backend/registry.h"
#include "sys/operations.h"

namespace spate {

namespace {

class IoUring final : public Epoll {
 public:
  std::string_view name() const override { return "io_uring"; }

  sys::Operations* operations() override { return &operations_; }

  Result<int> poll_fd() override {
    const Result<int> around = Epoll::poll_fd();
    if (around) join_around();
    return around;
  }

  // A ring that has been lost stays lost: the set does without it.
  long wait(Nanos timeout, ReadyList& ready) override {
    if (!ring().is_open()) return Epoll::wait(timeout, ready);
    if (timeout > Nanos{0} && !operations_.has_completed()) return sleep(timeout, ready);
    if (ring().has_something_to_do()) {
      const long result = enter(0, Nanos{0});
      if (is_fatal(result)) replace_ring(result);
    }
    return Epoll::wait(Nanos{0}, ready);
  }

  // Only the first has to be a success; after a fork the new process may be forbidden to have one.
  std::error_code reopen() override {
    const bool is_first = operations_.generation() == 0;
    const std::error_code error = operations_.open();
    if (error && is_first) return error;
    is_watched_ = false;
    return Epoll::reopen();
  }

  // The set that is thrown away would live on in the poll.
  std::error_code start_over() override {
    io_uring_sqe* const entry = is_watched_ ? ring().entry() : nullptr;
    if (entry != nullptr) {
      sys::prepare_cancel(*entry, watch_);
      entry->user_data = sys::Operations::kNobody;
    }
    is_watched_ = false;
    watch_ += 2;
    return Epoll::start_over();
  }

 private:
  static constexpr int kRounds = 16;  // So often the kernel may go on completing in a turn.
  static constexpr Nanos kDoze{
      1'000'000};  // Until a kernel that is short of memory is asked again.

  sys::Ring& ring() { return operations_.ring(); }

  long sleep(Nanos timeout, ReadyList& ready) {
    const long result = watch_set() ? enter(1, timeout) : -EAGAIN;
    if (is_fatal(result)) {
      replace_ring(result);
    } else if (is_short(result) && !operations_.has_completed()) {
      return Epoll::wait(std::min(timeout, kDoze), ready);
    } else if (is_watched_ && result != -EINTR) {
      return 0;  // Nothing of the set is ready.
    }
    return Epoll::wait(Nanos{0}, ready);
  }

  // Once: what is not taken out of the set is found by the next poll.
  bool watch_set() {
    if (is_watched_) return true;
    io_uring_sqe* const entry = ring().entry();
    if (entry == nullptr) return false;
    sys::prepare_poll(*entry, set().get(), POLLIN);
    entry->user_data = watch_;
    return is_watched_ = true;
  }

  // The kernel completes one operation after a sleep, and then some at a time.
  long enter(unsigned least, Nanos timeout) {
    ++calls_.wait;
    long result = ring().enter(least, timeout);
    collect(result);
    for (int round = 0; round < kRounds && ring().is_behind(); ++round) {
      ++calls_.wait;
      if (ring().enter(0, Nanos{0}) < 0) break;
      collect(result);
    }
    return result;
  }

  void collect(long& result) {
    operations_.collect([&](const io_uring_cqe& completion) {
      if (completion.user_data != watch_) return;
      is_watched_ = false;
      if (completion.res < 0) result = completion.res;
    });
  }

  static bool is_short(long result) {
    return result == -EAGAIN || result == -EBUSY || result == -ENOMEM;
  }
  static bool is_fatal(long result) {
    return result < 0 && result != -ETIME && result != -EINTR && !is_short(result);
  }

  // The loop is run by another thread now, or a sandbox has closed around it, or the kernel has
  // lost a completion.
  void replace_ring(long error) {
    operations_.open_after(error == -EEXIST ? -ECANCELED : static_cast<int>(error));
    is_watched_ = false;
    join_around();
  }

  void join_around() {
    if (!around().is_open() || !ring().is_open()) return;
    sys::epoll_ctl(around().get(), EPOLL_CTL_ADD, ring().fd(), EPOLLIN, 0);
  }

  sys::Operations operations_;
  bool is_watched_ = false;
  std::uint64_t watch_ = 3;  // The user_data of the poll of this set; odd, as it is no operation's.
};

}  // namespace

std::unique_ptr<Backend> make_io_uring() {
  return std::unique_ptr<Backend>(new (std::nothrow) IoUring);
}

}  // namespace spate
