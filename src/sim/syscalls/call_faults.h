// Injected faults of system calls, described by a text: "recv.short=.3,accept.EMFILE@5..20".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/error.h"

namespace spate::sim {

// Kinds of system calls; each stands for all calls of the kind.
enum class Call : std::uint8_t {
  accept,
  bind,
  connect,
  epoll_create,
  epoll_ctl,
  epoll_wait,
  eventfd,
  getrandom,
  listen,
  open,
  poll,
  read,
  recv,
  select,
  send,
  sendfile,
  setsockopt,
  shutdown,
  socket,
  spawn,
  thread,
  timerfd,
  write,
  fsync,
  rename,
};
inline constexpr std::size_t kCallKinds = static_cast<std::size_t>(Call::rename) + 1;
std::string_view name_of(Call call);

// A list of rules: <call>.<error> or <call>.short, then "=" and a share of all calls (0 ... 1), or
// "@" and the number of a call, or "@5..20"; with neither, all calls. The call is one of Call, or
// "*" for all that may report the error.
class CallFaults {
 public:
  struct Rule {
    std::uint32_t calls = 0;  // A bit per call.
    int error = 0;            // 0: a short transfer.
    std::uint64_t first = 1;
    std::uint64_t last = UINT64_MAX;
    double share = 1;
  };
  using Rules = std::vector<Rule>;
  // Parses at most 64 rules and 4,096 bytes. Otherwise returns a message for the user.
  static std::expected<Rules, std::string> parse(std::string_view text);

  CallFaults(Rules rules, std::uint64_t seed) : rules_(std::move(rules)), seed_(seed) {}

  // The fault of the next call of a kind, decided by its number and the seed alone.
  struct Verdict {
    int error = 0;
    // For a short transfer: at least one byte of `size`, and not all unless it is one.
    std::optional<std::uint64_t> drawn;
    std::size_t shortened(std::size_t size) const {
      return !drawn || size < 2 ? size : 1 + static_cast<std::size_t>(*drawn % (size - 1));
    }
    explicit operator bool() const { return error != 0 || drawn.has_value(); }
  };
  Verdict decide(Call call);
  std::uint64_t calls(Call call) const { return counts_[static_cast<std::size_t>(call)]; }

 private:
  Rules rules_;
  std::uint64_t seed_;
  std::atomic<std::uint64_t> counts_[kCallKinds] = {};
};

// Returns "EINTR", for example; "short" for 0.
std::string_view name_of_error(int error);

}  // namespace spate::sim
