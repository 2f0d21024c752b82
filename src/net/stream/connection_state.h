// State: the states of a connection, and their transition table, which is also in
// docs/special-problems.md.
//
// The states describe our side. The peer's end is a separate condition, since neither side's end
// implies the other's. The connection ends when both have ended.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spate {

enum class State : std::uint8_t {
  open,       // Can be written to.
  ending,     // Our side ends once the queue is sent.
  ended,      // Our side has ended; the peer's may continue.
  broken,     // Sending failed. Input that the peer sent before is read first.
  closing,    // As `ending`; input is discarded.
  lingering,  // As `ended`; input is discarded.
  failed,     // Must be closed with an error; nothing is sent or read.
  closed,     // Closed; only on_closed() is due.
  over,       // on_closed() was called.
};

// The events that change the state.
enum class Turn : std::uint8_t {
  end,      // end(), or the peer's end.
  close,    // close(), or the Stream was destroyed.
  sent,     // The queue is empty.
  refused,  // Sending failed.
  give_up,  // Local end: abort(), too much queued or unread.
  shut,     // Its descriptor was closed or released.
  told,     // on_closed() was called, or never will be.
};

namespace detail {
using enum State;
inline constexpr State kAfter[][7] = {
    // end      close      sent       refused  give_up  shut    told
    {ending, closing, open, broken, failed, closed, open},                 // open
    {ending, closing, ended, broken, failed, closed, ending},              // ending
    {ended, lingering, ended, broken, failed, closed, ended},              // ended
    {broken, failed, broken, broken, failed, closed, broken},              // broken
    {closing, closing, lingering, failed, failed, closed, closing},        // closing
    {lingering, lingering, lingering, failed, failed, closed, lingering},  // lingering
    {failed, failed, failed, failed, failed, closed, failed},              // failed
    {closed, closed, closed, closed, closed, closed, over},                // closed
    {over, over, over, over, over, over, over},                            // over
};
}  // namespace detail

constexpr State after(State state, Turn turn) {
  return detail::kAfter[static_cast<std::size_t>(state)][static_cast<std::size_t>(turn)];
}

}  // namespace spate
