#include "spate/http/access_log.h"

#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "http/codec/system_error.h"
#include "http/middleware/access_line.h"
#include "http/middleware/log_file.h"
#include "http/server/exchange_state.h"
#include "spate/loop.h"

namespace spate::http {

class AccessLog::Core {
 public:
  explicit Core(const AccessLogOptions& options)
      : format_(options.format), file_(options.max_queued) {}

  void write(const AccessRecord& record) {
    std::string line;
    const WallTime now = ExchangeState::of(record.request).loop().wall_now();
    append_access_line(line, record, format_, now);
    file_.append(line);
  }
  LogFile& file() { return file_; }

 private:
  const AccessLogFormat format_;
  LogFile file_;
};

AccessLog::AccessLog() = default;
AccessLog::AccessLog(std::shared_ptr<Core> core) : core_(std::move(core)) {}
AccessLog::AccessLog(AccessLog&& other) noexcept = default;
AccessLog& AccessLog::operator=(AccessLog&& other) noexcept {
  AccessLog moved(std::move(other));
  std::swap(core_, moved.core_);
  return *this;
}

// The writers keep the Core, but not the thread.
AccessLog::~AccessLog() {
  if (core_ != nullptr) core_->file().finish();
}

Result<AccessLog> AccessLog::open(std::string path, const AccessLogOptions& options) {
  auto core = std::make_shared<Core>(options);
  if (const std::error_code error = core->file().start(std::move(path)))
    return std::unexpected(error);
  return AccessLog(std::move(core));
}

Result<AccessLog> AccessLog::to_descriptor(int descriptor, const AccessLogOptions& options) {
  auto core = std::make_shared<Core>(options);
  if (const std::error_code error = core->file().start(descriptor)) return std::unexpected(error);
  return AccessLog(std::move(core));
}

std::function<void(const AccessRecord& record)> AccessLog::writer() const {
  return [core = core_](const AccessRecord& record) {
    if (core != nullptr) core->write(record);
  };
}

void AccessLog::write(const AccessRecord& record) const {
  if (core_ != nullptr) core_->write(record);
}

void AccessLog::reopen() {
  if (core_ != nullptr) core_->file().reopen();
}

std::uint64_t AccessLog::dropped() const {
  return core_ == nullptr ? 0 : core_->file().dropped();
}

std::error_code AccessLog::error() const {
  return core_ == nullptr ? std::error_code() : core_->file().error();
}

}  // namespace spate::http
