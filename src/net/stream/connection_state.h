// State: where a connection is in its life, and the one table of what becomes of it. The same table
// is in docs/special-problems.md.
//
// It is about our side. That the peer has ended its own is a condition beside it: neither side's
// end is the other's. Together they are the end of the connection.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spate {

enum class State : std::uint8_t {
  open,       // Written to.
  ending,     // Our side ends once the queue has been sent.
  ended,      // Our side has ended; the peer's may go on.
  broken,     // Sending has failed. What the peer sent before that is read first.
  closing,    // As `ending`; what comes is thrown away.
  lingering,  // As `ended`; what comes is thrown away.
  failed,     // To be closed with an error; nothing is sent or read any more.
  closed,     // Nothing is left but to tell so.
  over,       // Nothing at all.
};

// What happens to it.
enum class Turn : std::uint8_t {
  end,      // end(), or the peer's end.
  close,    // close(), or the Stream is destroyed.
  sent,     // The queue is empty.
  refused,  // Sending has failed.
  give_up,  // We cut it short ourselves: abort(), too much queued or unread.
  shut,     // Its descriptor is closed, or was given away.
  told,     // on_closed() is called, or never will be.
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
