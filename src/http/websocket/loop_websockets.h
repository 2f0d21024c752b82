// LoopWebSockets: resources shared by all WebSockets of one loop: their memory, the unmasking
// buffer, the compressor, and random bytes.
//
// It is destroyed with the loop, or with the last WebSocket that outlives the loop.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/guard.h"
#include "base/loans.h"
#include "base/slab.h"
#include "core/loop_local.h"
#include "core/user_code.h"
#include "http/codec/mask.h"
#include "http/codec/message_coding.h"
#include "http/websocket/websocket_state.h"
#include "spate/http/websocket.h"

namespace spate::http {

class ServerCore;
class WebSocketGroup;
class LoopWebSockets;

// The buffers that a WebSocket needs while it receives.
struct WebSocketRoom {
  static constexpr std::size_t kSize = 64 * 1024;
  std::byte bytes[kSize];
  MessageInflater inflater;
};

// On the stack of code that calls a WebSocket's handler: detects whether the WebSocket was
// destroyed, and whether an exception left the handler.
class WebSocketCall : StackGuard<WebSocketCall> {
 public:
  inline WebSocketCall(LoopWebSockets& loop_state, WebSocketState& state);
  inline ~WebSocketCall();

  bool is_gone() const { return state_ == nullptr; }
  // Calls `function`, which calls the handler. An exception is reported to the server, and closes
  // the WebSocket with internal_error; from the handler of a client it ends the program.
  template <class Function>
  [[gnu::always_inline]] void guard(Function&& function) {
    guard_user(std::forward<Function>(function), [this] { on_exception(); });
  }

 private:
  friend class LoopWebSockets;
  friend class StackGuard<WebSocketCall>;
  [[gnu::cold]] void on_exception() noexcept;

  LoopWebSockets& loop_state_;
  WebSocketState* state_;
  WebSocketGroup* group_ = nullptr;  // That of a destroyed WebSocket; kept until the call ends.
};

class LoopWebSockets final : public LoopLocal {
 public:
  // Returns the loop's LoopWebSockets, which the first call makes. nullptr when memory runs out.
  static LoopWebSockets* of(Loop& loop) { return local_of<LoopWebSockets>(loop); }
  explicit LoopWebSockets(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  Slab<WebSocketState>& slab() { return slab_; }
  Loans<WebSocketRoom>::Loan lend_room() { return rooms_.borrow(); }
  MessageDeflater& deflater() { return deflater_; }
  // Returns nullopt if the kernel has no random bytes.
  std::optional<Mask> random_mask();
  // Returns the group of the options, the server (nullptr: clients), and the route. nullptr when
  // memory runs out.
  WebSocketGroup* join_group(const WebSocketOptions& options, ServerCore* host,
                             std::string_view route);
  void leave_group(WebSocketGroup& group);
  // Called when it is destroyed.
  void forget(const WebSocketState& state, WebSocketGroup& group);

 private:
  friend class WebSocketCall;
  ~LoopWebSockets() override;
  WebSocketGroup* find_group(const WebSocketOptions& options, ServerCore* host,
                             std::string_view route) const;
  void enter_group(WebSocketGroup& group);
  bool open() override { return rooms_.open(); }
  void on_loop_end() override;

  Slab<WebSocketState> slab_;
  Loans<WebSocketRoom> rooms_;
  MessageDeflater deflater_;
  std::array<Mask, 64> random_;
  std::size_t random_left_ = 0;
  WebSocketGroup* groups_ = nullptr;  // Newest first.
  WebSocketCall* innermost_ = nullptr;
};

inline WebSocketCall::WebSocketCall(LoopWebSockets& loop_state, WebSocketState& state)
    : StackGuard(loop_state.innermost_), loop_state_(loop_state), state_(&state) {}
// May destroy the loop's state, with its last WebSocket.
inline WebSocketCall::~WebSocketCall() {
  if (group_ != nullptr) loop_state_.leave_group(*group_);
}

}  // namespace spate::http
