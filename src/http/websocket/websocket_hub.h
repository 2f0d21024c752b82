// WebSocketHub: what all WebSockets of one loop share: their memory, that in which frames are
// unmasked, the compressor, and random bytes.
//
// It goes with the loop, or with the last WebSocket that outlives the loop.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "base/loans.h"
#include "base/slab.h"
#include "core/loop_local.h"
#include "http/codec/mask.h"
#include "http/codec/message_coding.h"
#include "http/websocket/websocket_state.h"
#include "spate/http/websocket.h"

namespace spate::http {

class ServerCore;
class WebSocketGroup;
class WebSocketHub;

// What one of them needs while it is told of what has come.
struct WebSocketRoom {
  static constexpr std::size_t kSize = 64 * 1024;
  std::byte bytes[kSize];
  MessageInflater inflater;
};

// On the stack of whoever calls the handler of a WebSocket: whether that is still there.
class WebSocketCall {
 public:
  WebSocketCall(WebSocketHub& hub, const WebSocketState& state);
  ~WebSocketCall();
  WebSocketCall(const WebSocketCall&) = delete;
  WebSocketCall& operator=(const WebSocketCall&) = delete;

  bool is_gone() const { return state_ == nullptr; }

 private:
  friend class WebSocketHub;
  WebSocketHub& hub_;
  const WebSocketState* state_;
  WebSocketCall* outer_;
};

class WebSocketHub final : public LoopLocal {
 public:
  // The loop's; made when it is first asked for. nullptr when memory runs out.
  static WebSocketHub* of(Loop& loop) { return local_of<WebSocketHub>(loop); }
  explicit WebSocketHub(Loop& loop) : LoopLocal(loop) {}  // For local_of().

  Slab<WebSocketState>& slab() { return slab_; }
  Loans<WebSocketRoom>::Loan lend_room() { return rooms_.borrow(); }
  MessageDeflater& deflater() { return deflater_; }
  // None if the kernel has none.
  std::optional<Mask> random_mask();
  // That of the options and the server (nullptr: a client's), which most have in common. nullptr
  // when memory runs out.
  WebSocketGroup* join_group(const WebSocketOptions& options, ServerCore* host);
  void leave_group(WebSocketGroup& group);
  // It is being destroyed.
  void forget(const WebSocketState& state);

 private:
  friend class WebSocketCall;
  ~WebSocketHub() override;
  WebSocketGroup* find_group(const WebSocketOptions& options, ServerCore* host) const;
  bool open() override { return rooms_.open(); }
  void on_loop_end() override;

  Slab<WebSocketState> slab_;
  Loans<WebSocketRoom> rooms_;
  MessageDeflater deflater_;
  std::array<Mask, 64> random_;
  std::size_t random_left_ = 0;
  WebSocketGroup* groups_ = nullptr;  // The newest first.
  WebSocketCall* innermost_ = nullptr;
};

inline WebSocketCall::WebSocketCall(WebSocketHub& hub, const WebSocketState& state)
    : hub_(hub), state_(&state), outer_(hub.innermost_) {
  WebSocketCall* self = this;
  asm("" : "+r"(self));  // g++ 12 else warns of a pointer that outlives the call.
  hub.innermost_ = self;
}
inline WebSocketCall::~WebSocketCall() { hub_.innermost_ = outer_; }

}  // namespace spate::http
