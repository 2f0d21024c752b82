// StreamState: one stream of an HTTP/2 session (RFC 9113 §5). Allocated once, from the thread's
// cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/list.h"
#include "core/kept_memory.h"
#include "http/codec/http2_session.h"
#include "http2/flow_window.h"
#include "http2/message_rules.h"
#include "http2/priority.h"

namespace spate::http {

// The lists that a stream can be in.
struct Sending;    // SendOrder.
struct Reporting;  // Session: an effect of a frame that has not left.

struct StreamState : Linked<StreamState, Sending>, Linked<StreamState, Reporting> {
  enum Flag : std::uint16_t {
    kRemoteEnded = 1 << 0,  // END_STREAM was received,
    kLocalEnded = 1 << 1,   // or sent, or is about to be.
    kReset = 1 << 2,        // RST_STREAM was sent, or is about to be. Input is ignored.
    kHasHead = 1 << 3,      // The peer's header section is complete, without 1xx.
    kHasResponded = 1 << 4,
    kHasBody = 1 << 5,   // A body is being sent,
    kDeferred = 1 << 6,  // and nothing of it is available.
    kEndUnreported = 1 << 7,
    kResetUnreported = 1 << 8,
    kUpdateUnreported = 1 << 9,  // WINDOW_UPDATE.
    kUncounted = 1 << 10,        // It no longer counts towards the server's limit.
  };

  StreamState(std::int32_t own_id, Http2Stream* own, std::int32_t own_window)
      : id(own_id), window(own_window), user(own) {}
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;
  static void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return take_memory(size);
  }
  static void operator delete(void* memory, std::size_t size) noexcept {
    give_memory(memory, size);
  }

  bool has(unsigned wanted) const { return (flags & wanted) != 0; }
  void set(unsigned added) { flags = static_cast<std::uint16_t>(flags | added); }
  void clear(unsigned removed) { flags = static_cast<std::uint16_t>(flags & ~removed); }
  bool is_over() const { return has(kRemoteEnded) && has(kLocalEnded); }
  bool can_send() const {
    return has(kHasBody) && !has(kDeferred | kReset | kLocalEnded) && window > 0;
  }

  std::int32_t id;
  std::int32_t window;  // The peer accepts as many bytes; negative if it lowered the window.
  Http2Stream* user;
  std::uint16_t flags = 0;
  Http2Priority priority{};
  std::uint32_t code = 0;  // The reason of the reset.
  FlowWindow received;
  MessageRules rules;
  StreamState* next_of_slot = nullptr;  // StreamTable.
};

using SendingStreams = List<StreamState, Sending>;
using ReportingStreams = List<StreamState, Reporting>;

}  // namespace spate::http
