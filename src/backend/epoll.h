// epoll, level-triggered. Deadlines to the nanosecond with epoll_pwait2, where the kernel has it.
#pragma once

#include "backend/backend.h"
#include "sys/epoll.h"

namespace spate {

class Epoll : public Backend {
 public:
  std::string_view name() const override { return "epoll"; }
  bool knows_edges() const override { return true; }

  // Not the set itself, which may have to be thrown away, but one around it.
  Result<int> poll_fd() override;

  long modify(int fd, Events before, Events after, std::uint32_t generation) override;
  void closing(int, Events) override {}  // The kernel forgets a closed file by itself.
  long wait(Nanos timeout, ReadyList& ready) override;
  std::error_code reopen() override;
  std::error_code start_over() override;

 protected:
  const sys::Descriptor& set() const { return epoll_; }

 private:
  static constexpr std::size_t kFirstBatch = 256;
  static constexpr std::size_t kMaxBatch =
      512;  // More at a time would cost memory and win nothing.

  std::error_code surround();
  std::error_code put_into(const sys::Descriptor& around);
  long control(int operation, int fd, epoll_event& entry);
  long wait_for(Nanos timeout, std::size_t room);
  long wait_until(Nanos timeout, int capacity);
  long correct(long result, epoll_event& entry);
  long look_after(long error, std::size_t room);
  void make_larger_batches();

  sys::Descriptor epoll_;
  sys::Descriptor around_;  // For an outer loop to wait on; made when it is asked for.
  Array<epoll_event> buffer_;
  bool precise_ = true;
};

}  // namespace spate
