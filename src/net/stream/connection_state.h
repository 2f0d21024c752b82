// Lifecycle: the state of a connection, and the error with which it ends. Only take() changes the
// state, by a transition table, which is also in docs/special-problems.md.
//
// The states describe our side. The peer's end is a separate condition, since neither side's end
// implies the other's. The connection ends when both have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

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
  give_up,  // Local end: too much queued or unread.
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

class Lifecycle {
 public:
  // False if the state stays the same.
  bool take(Turn turn) {
    const State old = std::exchange(state_, after(state_, turn));
    return old != state_;
  }
  State state() const { return state_; }
  bool is(State state) const { return state_ == state; }
  // Returns whether our side ends once the queue is sent.
  bool is_ending() const { return is(State::ending) || is(State::closing); }
  bool has_ended() const { return is(State::ended) || is(State::lingering); }
  // Returns whether input is discarded.
  bool is_discarding() const { return is(State::closing) || is(State::lingering); }
  // Returns whether the output will not arrive completely.
  bool is_cut_short() const { return is(State::broken) || is(State::failed); }
  // Returns whether the handler may get other calls than on_closed().
  bool may_report() const { return state_ <= State::broken; }
  bool is_closed() const { return state_ >= State::closed; }

  // An errno or an Error; the last one that was set.
  void set_error(std::error_code error);
  std::error_code error() const;

 private:
  State state_ = State::open;
  std::uint8_t error_ = 0;  // An errno, or kFirstOwn + an Error.
};

}  // namespace spate
