// epoll, level-triggered. Timeouts have nanoseconds with epoll_pwait2, if the kernel has it.
#pragma once

#include "backend/backend.h"
#include "sys/epoll.h"

namespace spate {

class Epoll : public Backend {
 public:
  std::string_view name() const override { return "epoll"; }
  bool knows_edges() const override { return true; }

  // Returns an outer epoll set around the inner one, which start_over() may replace.
  Result<int> poll_fd() override;

  long modify(int fd, Events before, Events after, std::uint32_t generation) override;
  void closing(int, Events) override {}  // The kernel removes a closed file from its sets.
  long wait(Nanos timeout, ReadyList& ready) override;
  std::error_code reopen() override;
  std::error_code start_over() override;

 protected:
  const sys::Descriptor& set() const { return epoll_; }

 private:
  static constexpr std::size_t kFirstBatch = 256;
  static constexpr std::size_t kMaxBatch = 512;  // Larger batches cost memory without a gain.

  std::error_code surround();
  std::error_code put_into(const sys::Descriptor& around);
  long control(int operation, int fd, epoll_event& entry);
  long wait_for(Nanos timeout, std::size_t room);
  long wait_until(Nanos timeout, int capacity);
  long correct(long result, epoll_event& entry);
  long look_after(long error, std::size_t room);
  void make_larger_batches();

  sys::Descriptor epoll_;
  sys::Descriptor around_;  // For an outer loop to wait on; made on request.
  Array<epoll_event> buffer_;
  bool precise_ = true;
};

}  // namespace spate
