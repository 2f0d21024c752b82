// System calls that fail on purpose, as a text says it: "recv.short=.3,accept.EMFILE@5..20".
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

// What the library asks of the system; each stands for all calls of its kind.
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
};
inline constexpr std::size_t kCallKinds = static_cast<std::size_t>(Call::write) + 1;
std::string_view name_of(Call call);

// Rules, one behind the other: <call>.<error> or <call>.short, then "=" and a share of all calls
// (0 ... 1), or "@" and the number of a call, or "@5..20"; with neither, all calls. The call is one
// of Call, or "*" for all that may report such an error.
class CallFaults {
 public:
  struct Rule {
    std::uint32_t calls = 0;  // A bit each.
    int error = 0;            // 0: it moves less than it was asked to.
    std::uint64_t first = 1;
    std::uint64_t last = UINT64_MAX;
    double share = 1;
  };
  using Rules = std::vector<Rule>;
  // At most 64 rules and 4,096 bytes. Else the reason, for a human being.
  static std::expected<Rules, std::string> parse(std::string_view text);

  CallFaults(Rules rules, std::uint64_t seed) : rules_(std::move(rules)), seed_(seed) {}

  // What befalls the next call of a kind: by its number and the seed alone.
  struct Verdict {
    int error = 0;
    // If it is to move less: of `size`, one at least, and not all unless it is one.
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

// "EINTR"; "short" for 0.
std::string_view name_of_error(int error);

}  // namespace spate::sim
