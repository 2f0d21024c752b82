#include "http/middleware/log_file.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/time.h"
#include "sys/file.h"
#include "sys/poll.h"

namespace spate::http {

namespace {

// At the end, a reader that takes nothing for this long is not waited for.
constexpr Nanos kLastWait{1'000'000'000};

}  // namespace

std::error_code LogFile::start(std::string path) {
  const long opened = sys::open_to_append(path.c_str());
  if (opened < 0) return sys::error_code(opened);
  path_ = std::move(path);
  file_ = sys::Descriptor(opened);
  descriptor_ = file_.get();
  return start_thread();
}

std::error_code LogFile::start(int descriptor) {
  if (!sys::is_open(descriptor)) return system_error(EBADF);
  descriptor_ = descriptor;
  return start_thread();
}

std::error_code LogFile::start_thread() {
  const long result =
      thread_.start([](void* self) { static_cast<LogFile*>(self)->run(); }, this);
  if (result < 0) return sys::error_code(result);
  thread_.set_name("spate-log");
  return {};
}

// ---- any thread

void LogFile::append(std::string_view line) {
  if (!is_ours()) return;
  const std::scoped_lock lock(mutex_);
  if (is_finishing_) return;
  if (line.size() > max_queued_ - std::min(queue_.size(), max_queued_)) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  queue_ += line;
  news_.notify_one();
}

void LogFile::reopen() {
  if (!is_ours() || path_.empty()) return;
  const std::scoped_lock lock(mutex_);
  reopen_at_ = queue_.size();
  news_.notify_one();
}

void LogFile::finish() {
  if (!is_ours()) return;
  {
    const std::scoped_lock lock(mutex_);
    is_finishing_ = true;
    news_.notify_one();
  }
  thread_.join();
  file_ = {};  // The writers keep this object.
}

std::error_code LogFile::error() const {
  if (!is_ours()) return {};
  const std::scoped_lock lock(mutex_);
  return error_;
}

void LogFile::set_error(std::error_code error) {
  const std::scoped_lock lock(mutex_);
  error_ = error;
}

// ---- the thread

void LogFile::run() {
  std::string batch;
  for (;;) {
    std::optional<std::size_t> reopen_at;
    {
      std::unique_lock lock(mutex_);
      news_.wait(lock, [this] { return !queue_.empty() || reopen_at_ || is_finishing_; });
      if (queue_.empty() && !reopen_at_) return;
      batch.clear();
      std::swap(batch, queue_);
      reopen_at = std::exchange(reopen_at_, {});
    }
    const std::string_view lines = batch;
    write(lines.substr(0, reopen_at.value_or(lines.size())));
    if (!reopen_at) continue;
    open_again();
    write(lines.substr(*reopen_at));
  }
}

// After an error the rest is dropped. The next lines begin after the end of the line that was cut.
void LogFile::write(std::string_view lines) {
  if (lines.empty()) return;
  std::string_view end = is_cut_ ? "\n" : "";
  std::error_code error = write_all(end);
  if (!error) error = write_all(lines);
  const auto lost = std::ranges::count(lines, '\n');
  dropped_.fetch_add(static_cast<std::uint64_t>(lost), std::memory_order_relaxed);
  set_error(error);
}

std::error_code LogFile::write_all(std::string_view& text) {
  while (!text.empty()) {
    const long written = write_some(text);
    if (written == -EINTR) continue;
    if (written < 0) return sys::error_code(written);
    const auto size = static_cast<std::size_t>(written);
    if (size > 0) is_cut_ = text[size - 1] != '\n';
    text.remove_prefix(size);
  }
  return {};
}

// A pipe with room takes PIPE_BUF bytes without blocking, whether or not O_NONBLOCK is set. So the
// end of the log is not blocked by a reader that never reads.
long LogFile::write_some(std::string_view text) {
  if (!path_.empty()) return sys::write(descriptor_, text.data(), text.size());
  if (!wait_for_room()) return -EAGAIN;
  const std::size_t size = std::min<std::size_t>(text.size(), PIPE_BUF);
  const long written = sys::write(descriptor_, text.data(), size);
  return written == -EAGAIN ? -EINTR : written;
}

bool LogFile::wait_for_room() {
  for (;;) {
    const long ready = sys::wait_for_output(descriptor_, kLastWait);
    if (ready != 0 && ready != -EINTR) return true;  // write() returns the error, if there is one.
    if (ready == 0 && is_finishing_) return false;
  }
}

void LogFile::open_again() {
  sys::Descriptor file(sys::open_to_append(path_.c_str()));
  if (!file.is_open()) return set_error(sys::error_code(file.get()));
  file_ = std::move(file);
  descriptor_ = file_.get();
  is_cut_ = false;
  set_error({});
}

}  // namespace spate::http
