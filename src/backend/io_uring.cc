// io_uring: an epoll backend that sleeps in a ring. Descriptors are watched by an epoll set, and
// the set by a poll request of the ring. A poll request per descriptor would keep a file open after
// the program has closed it, so that its peer would not notice.
#include <algorithm>
#include <cerrno>
#include <new>

#include "backend/epoll.h"
#include "backend/registry.h"
#include "sys/ring.h"

namespace spate {

namespace {

class IoUring final : public Epoll {
 public:
  std::string_view name() const override { return "io_uring"; }

  // Without sleeping, or when the ring is lost, only the set is used.
  long wait(Nanos timeout, ReadyList& ready) override {
    if (timeout <= Nanos{0} || !ring_.is_open()) return Epoll::wait(timeout, ready);
    const long result = watch_set() ? sleep(timeout) : -EAGAIN;
    if (is_short(result)) return Epoll::wait(std::min(timeout, kDoze), ready);
    const bool has_slept = result >= 0 || result == -ETIME;
    return has_slept && is_watched_ ? 0 : Epoll::wait(Nanos{0}, ready);
  }

  // Only the first ring is required; after a fork the new process may be forbidden to have one.
  std::error_code reopen() override {
    ring_.close();
    if (const std::error_code error = Epoll::reopen()) return error;
    const std::error_code error = open_ring();
    if (error && !was_open_) return error;
    was_open_ = true;
    return {};
  }

  // The old set is not watched any more, and the new one not yet.
  std::error_code start_over() override {
    const std::error_code error = Epoll::start_over();
    if (!error && ring_.is_open()) open_ring();
    return error;
  }

 private:
  static constexpr unsigned kEntries = 1;
  static constexpr unsigned kCompletions = 2;
  static constexpr Nanos kDoze{1'000'000};  // The pause before a retry when the kernel is short of
                                            // resources.

  std::error_code open_ring() {
    is_watched_ = false;
    ring_.close();
    return ring_.open(kEntries, kCompletions);
  }

  // One-shot: events that stay in the set are found by the next poll request.
  bool watch_set() {
    if (is_watched_) return true;
    io_uring_sqe* const entry = ring_.entry();
    if (entry == nullptr) return false;
    sys::prepare_poll(*entry, set().get(), POLLIN);
    return is_watched_ = true;
  }

  long sleep(Nanos timeout) {
    ++calls_.wait;
    long result = ring_.wait(timeout);
    // A refused poll request is an error of the wait.
    ring_.for_each_completion([&](const io_uring_cqe& completion) {
      is_watched_ = false;
      if (completion.res < 0) result = completion.res;
    });
    // Another thread runs the loop now, or a sandbox was set up, or the kernel has lost a
    // completion. If no other ring can be opened, only the set is used.
    if (is_fatal(result)) open_ring();
    return result;
  }

  static bool is_short(long result) {
    return result == -EAGAIN || result == -EBUSY || result == -ENOMEM;
  }
  static bool is_fatal(long result) {
    return result < 0 && result != -ETIME && result != -EINTR && !is_short(result);
  }

  sys::Ring ring_;
  bool was_open_ = false;
  bool is_watched_ = false;
};

}  // namespace

std::unique_ptr<Backend> make_io_uring() {
  return std::unique_ptr<Backend>(new (std::nothrow) IoUring);
}

}  // namespace spate
