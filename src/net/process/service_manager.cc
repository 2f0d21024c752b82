// ServiceManager: reads the environment, and composes the messages.
#include "spate/net/service_manager.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <new>
#include <string>

#include "core/ownership.h"
#include "net/process/service_manager_link.h"
#include "spate/assert.h"
#include "sys/process.h"
#include "sys/socket.h"

namespace spate {

namespace {

std::unexpected<std::error_code> error_of(int number) {
  return std::unexpected(sys::error_code(-number));
}

// Reads a positive decimal number; EINVAL for anything else.
template <class Number>
Result<Number> parse(std::string_view text) {
  Number number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && stop == text.data() + text.size();
  if (!is_whole || number <= 0) return error_of(EINVAL);
  return number;
}

Result<Address> parse_socket(std::string_view name) {
  if (name.starts_with('/')) return Address::path(name);
  if (name.starts_with('@') && name.size() > 1) return Address::abstract(name.substr(1));
  return error_of(EINVAL);
}

// Returns zero if the watchdog is off, or another process must notify it.
Result<Nanos> read_watchdog() {
  const std::string_view interval = sys::environment_value("WATCHDOG_USEC");
  if (interval.empty()) return Nanos{0};
  const Result<std::int64_t> micros = parse<std::int64_t>(interval);
  if (!micros) return std::unexpected(micros.error());
  if (*micros > kForever.count() / 1000) return error_of(EINVAL);
  const std::string_view process = sys::environment_value("WATCHDOG_PID");
  if (!process.empty()) {
    const Result<int> pid = parse<int>(process);
    if (!pid) return std::unexpected(pid.error());
    if (*pid != sys::process_id()) return Nanos{0};
  }
  return Nanos{*micros * 1000};
}

// Asserts the thread; nullptr without a service manager.
template <class Link>
auto* own(const Link& link) {
  SPATE_ASSERT(link == nullptr || link->may_be_touched(), kWrongThread);
  return link.get();
}

}  // namespace

void ServiceManagerEnd::operator()(ServiceManagerLink* link) const { delete link; }

Result<ServiceManager> ServiceManager::create(Loop& loop) {
  SPATE_ASSERT(may_touch(loop), kWrongThread);
  ServiceManager made;
  const std::string_view name = sys::environment_value("NOTIFY_SOCKET");
  if (name.empty()) return made;
  const Result<Address> manager = parse_socket(name);
  if (!manager) return std::unexpected(manager.error());
  const Result<Nanos> watchdog = read_watchdog();
  if (!watchdog) return std::unexpected(watchdog.error());
  sys::Descriptor socket(sys::open_socket(AF_UNIX, SOCK_DGRAM));
  if (!socket.is_open()) return std::unexpected(sys::error_code(socket.get()));
  made.link_.reset(new (std::nothrow)
                       ServiceManagerLink(loop, std::move(socket), *manager, *watchdog));
  if (made.link_ == nullptr || !made.link_->start()) return error_of(ENOMEM);
  return made;
}

std::error_code ServiceManager::ready() { return send("READY=1"); }
std::error_code ServiceManager::stopping() { return send("STOPPING=1"); }

std::error_code ServiceManager::reloading() {
  const auto micros = system_clock().monotonic().count() / 1000;
  return send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(micros));
}

std::error_code ServiceManager::status(std::string_view text) {
  auto* link = own(link_);
  constexpr std::string_view kEnds("\n\0", 2);
  if (text.find_first_of(kEnds) != std::string_view::npos) return sys::error_code(-EINVAL);
  if (link == nullptr) return {};
  constexpr std::string_view kName = "STATUS=";
  return link->replace(kName, std::string(kName).append(text));
}

std::error_code ServiceManager::main_process(int pid) {
  if (pid < 1) return sys::error_code(-EINVAL);
  return send("MAINPID=" + std::to_string(pid));
}

std::error_code ServiceManager::send(std::string_view message) {
  auto* link = own(link_);
  if (message.empty()) return sys::error_code(-EINVAL);
  return link == nullptr ? std::error_code() : link->send(message);
}

Nanos ServiceManager::watchdog() const {
  return link_ == nullptr ? Nanos{0} : own(link_)->watchdog();
}

std::error_code ServiceManager::last_error() const {
  return link_ == nullptr ? std::error_code() : own(link_)->last_error();
}

}  // namespace spate
