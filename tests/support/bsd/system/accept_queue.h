// The queue of accepted connections of a listening socket. These systems have no common way to see
// it.
#pragma once

namespace spate::testing {

inline constexpr bool kShowsAcceptQueue = false;

struct AcceptQueue {
  unsigned waiting;
  unsigned limit;
};

inline AcceptQueue accept_queue(int) { return {}; }

}  // namespace spate::testing
