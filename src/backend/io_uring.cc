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
    if (!around || bell_.is_open() || !ring().is_open()) return around;
    if (const std::error_code error = hang_bell(*around)) return std::unexpected(error);
    return around;
  }

  // As long as nothing is under way, or the ring is lost, the set is all that can become ready.
  long wait(Nanos timeout, ReadyList& ready) override {
    if (operations_.has_completed()) timeout = Nanos{0};
    if (operations_.is_idle()) return Epoll::wait(timeout, ready);
    if (timeout > Nanos{0}) return sleep(timeout, ready);
    if (ring().has_something_to_do()) enter(0, Nanos{0});
    return Epoll::wait(Nanos{0}, ready);
  }

  // Only the first ring has to be had; after a fork the new process may be forbidden to have one.
  std::error_code reopen() override {
    const bool is_first = operations_.generation() == 0;
    const std::error_code error = operations_.open();
    if (error && is_first) return error;
    is_watched_ = false;
    bell_ = sys::Descriptor();
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
  static constexpr int kRounds = 16;        // So often the kernel may go on completing in a turn.
  static constexpr Nanos kDoze{1'000'000};  // Before it is asked again when it is short of memory.

  sys::Ring& ring() { return operations_.ring(); }

  long sleep(Nanos timeout, ReadyList& ready) {
    const long result = watch_set() ? enter(1, timeout) : -EAGAIN;
    if (is_short(result) && !operations_.has_completed())
      return Epoll::wait(std::min(timeout, kDoze), ready);
    const bool has_slept = result >= 0 || result == -ETIME;
    return has_slept && is_watched_ ? 0 : Epoll::wait(Nanos{0}, ready);
  }

  // Once: what is then left in the set is found by the next poll.
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
    for (int round = 0; round < kRounds && result >= 0 && ring().is_behind(); ++round) {
      ++calls_.wait;
      result = ring().enter(0, Nanos{0});
      collect(result);
    }
    if (bell_.is_open()) silence_bell();
    if (is_fatal(result)) replace_ring(result);
    return result;
  }

  // A poll that is refused is an error of the wait.
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
  // lost a completion. Where there is no other ring to be had, the set does alone.
  void replace_ring(long error) {
    is_watched_ = false;
    operations_.close(error == -EEXIST ? -ECANCELED : static_cast<int>(error));
    if (operations_.open() || !bell_.is_open()) return;
    if (tie_bell() < 0) operations_.close(-ECANCELED);  // No outer loop would be told of it.
  }

  // The ring's own descriptor does not tell of what waits to be completed.
  std::error_code hang_bell(int around) {
    const long fd = sys::create_eventfd();
    if (fd < 0) return sys::error_code(fd);
    bell_ = sys::Descriptor(fd);
    epoll_event event{.events = EPOLLIN, .data = {}};
    long result = sys::epoll_ctl(around, EPOLL_CTL_ADD, bell_.get(), event);
    if (result >= 0) result = tie_bell();
    if (result == -EEXIST) return replace_ring(result), std::error_code();
    if (result < 0) bell_ = sys::Descriptor();
    return sys::error_code(result);
  }
  long tie_bell() {
    const int bell = bell_.get();
    return sys::io_uring_register(ring().fd(), IORING_REGISTER_EVENTFD, &bell, 1);
  }
  // What has come about meanwhile is seen before the outer loop waits.
  void silence_bell() {
    std::uint64_t count;
    sys::read(bell_.get(), &count, sizeof(count));
  }

  sys::Operations operations_;
  bool is_watched_ = false;
  std::uint64_t watch_ = 3;  // The user_data of the poll of this set; odd, as it is no operation's.
  sys::Descriptor bell_;     // For an outer loop: readable when the ring has something to do.
};

}  // namespace

std::unique_ptr<Backend> make_io_uring() {
  return std::unique_ptr<Backend>(new (std::nothrow) IoUring);
}

}  // namespace spate
