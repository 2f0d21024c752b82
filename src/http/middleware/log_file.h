// LogFile: a file, and the thread that writes to it. Lines are appended to a queue of bounded size,
// whose lock is never held during a system call on the file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "sys/descriptor.h"
#include "sys/process.h"
#include "sys/thread.h"

namespace spate::http {

class LogFile {
 public:
  explicit LogFile(std::size_t max_queued) : max_queued_(max_queued) {}
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  // Writes the queued lines.
  ~LogFile() { finish(); }

  // Start the thread; one of them, once.
  std::error_code start(std::string path);
  std::error_code start(int descriptor);

  // ---- any thread

  void append(std::string_view line);
  void reopen();
  // Writes the queued lines, ends the thread, and closes the file. Further lines are ignored.
  void finish();
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  std::error_code error() const;

 private:
  // False in the child of a fork, which does not have the thread; the lock may be held for ever.
  bool is_ours() const { return fork_generation_ == sys::fork_generation(); }
  std::error_code start_thread();
  void run();
  void write(std::string_view lines);
  // Leaves in `text` the rest that was not written.
  std::error_code write_all(std::string_view& text);
  long write_some(std::string_view text);
  // Waits for room in a pipe. False if the log is being finished, and the reader does not read.
  bool wait_for_room();
  void open_again();
  void set_error(std::error_code error);

  const std::size_t max_queued_;
  const std::uint32_t fork_generation_ = sys::fork_generation();
  std::string path_;  // Empty: the descriptor is the caller's.
  sys::Descriptor file_;
  int descriptor_ = -1;
  bool is_cut_ = false;  // The file ends inside a line. For the thread only.
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<bool> is_finishing_{false};  // Set under the lock.
  mutable std::mutex mutex_;               // Guards the following members.
  std::condition_variable news_;
  std::string queue_;
  std::error_code error_;
  std::optional<std::size_t> reopen_at_;  // After this much of the queue.
  sys::Thread thread_;
};

}  // namespace spate::http
