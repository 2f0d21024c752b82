// ServiceManager: reports the state of the program to the service manager that started it, by the
// datagrams of sd_notify(3), and keeps its watchdog from restarting the program.
//
//   auto manager = must(ServiceManager::create(*loop));
//   must(manager.ready());
//
// Without a service manager (NOTIFY_SOCKET is unset or empty) all functions succeed and do nothing.
//
// If the manager's socket is full, up to 16 messages wait. The loop sends them later, in order. It
// also notifies the watchdog at half of its interval, but not more often than once a millisecond,
// from create() on. The manager therefore restarts a program whose loop is blocked.
//
// Ownership: a handle. Destroying it makes one more attempt to send the messages that wait, and
// ends the notifications of the watchdog: keep it until the program ends. The loop may be destroyed
// first. It does not keep the loop alive.
// Threads: the loop's thread only. There are no callbacks.
// In the child of a fork it sends nothing: functions return Error::loop_forked.
#pragma once

#include <memory>
#include <string_view>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/time.h"

namespace spate {

class Loop;
class ServiceManagerLink;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT ServiceManagerEnd {
  void operator()(ServiceManagerLink* link) const;
};

class SPATE_EXPORT ServiceManager {
 public:
  // Behaves as one without a service manager.
  ServiceManager() = default;

  // Reads NOTIFY_SOCKET (an absolute path, or an abstract name after an @), and WATCHDOG_USEC and
  // WATCHDOG_PID. The environment is not changed. The watchdog is off unless WATCHDOG_USEC is set,
  // and WATCHDOG_PID is unset or names this process. Errors: EINVAL for a value that has another
  // form; ENAMETOOLONG; EMFILE, ENFILE, ENOMEM.
  [[nodiscard("a discarded ServiceManager reports nothing")]]
  static Result<ServiceManager> create(Loop& loop);

  // Report a state. Errors: ENOENT or ECONNREFUSED when the manager's socket is gone; EACCES;
  // EAGAIN when the socket is full, and 16 messages wait or the loop was destroyed;
  // Error::loop_forked. The message is then not sent.

  // The program serves: after its start, and after reloading().
  std::error_code ready();
  // The program reads its configuration again; ready() must follow. Also sends the time, which
  // systemd's Type=notify-reload needs.
  std::error_code reloading();
  std::error_code stopping();
  // Reports a line for humans. It replaces one that waits. Errors: also EINVAL for text with a
  // newline or a NUL, EMSGSIZE.
  std::error_code status(std::string_view text);
  // Reports that another process is the service's main process from now on, such as a successor.
  // Errors: also EINVAL for `pid` < 1.
  std::error_code main_process(int pid);
  // Sends any other assignments of sd_notify(3), one a line: "EXTEND_TIMEOUT_USEC=5000000". Errors:
  // also EINVAL for an empty message, EMSGSIZE.
  std::error_code send(std::string_view message);

  // True if NOTIFY_SOCKET was set.
  bool is_present() const { return link_ != nullptr; }
  // Returns the watchdog's interval; zero if it is off.
  Nanos watchdog() const;
  // Returns the last error of a message that was sent later, or of a notification of the watchdog.
  std::error_code last_error() const;

 private:
  std::unique_ptr<ServiceManagerLink, ServiceManagerEnd> link_;
};

}  // namespace spate
