// ClientHttp1: an HTTP/1 connection. Carries calls, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "base/ref.h"
#include "http/client/call_state.h"
#include "http/client/carrier.h"
#include "http/client/client_connection.h"
#include "http/codec/refusal.h"
#include "spate/net/stream.h"

namespace spate::http {

class ClientHttp1 final : public ClientConnection, public Carrier {
 public:
  using ClientConnection::ClientConnection;

  // ---- ClientConnection

  bool start() override;
  bool carry(CallState& call) override;
  bool has_room() const override { return is_idle(); }
  bool has_calls() const override { return static_cast<bool>(call_); }
  void leave(Ending ending) override;

  // ---- Carrier

  void send_body() override;
  bool is_full() const override { return stream_.is_full(); }
  std::size_t queued() const override { return stream_.queued(); }
  void pause() override { stream_.pause(); }
  // Bytes after the response do not belong to the call.
  void resume() override {
    if (!has_kept()) stream_.resume();
  }
  bool has_kept() const override { return call_ && is_at_end(*call_); }
  void show_more() override;
  void note_late() override {}  // The connection is closed in any case.
  void abandon() override;

  // ---- StreamHandler

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

 private:
  bool carries(const CallState& call) const { return call_.get() == &call; }
  std::size_t take(CallState& call, Bytes bytes);
  std::size_t take_head(CallState& call, Bytes bytes);
  void take_response(CallState& call, const ResponseView& head, const Framing& framing,
                     Bytes behind);
  void take_upgrade(CallState& call, const ResponseView& head, const Framing& framing);
  Stream hand_over();
  std::size_t take_body(CallState& call, Bytes bytes);
  std::size_t take_chunked(CallState& call, Bytes bytes);
  bool is_at_end(const CallState& call) const;
  void note_keep_alive(const ResponseView& head);

  enum class Behind : std::uint8_t { nothing, something };
  Behind behind() const { return stream_.unread().empty() ? Behind::nothing : Behind::something; }
  bool may_be_kept(const CallState& call, Behind behind) const;
  bool is_as_good_as_ever() const;
  void finish(CallState& call, Behind behind);
  void fail(CallState& call, std::error_code error);
  void lose(std::error_code error);

  Ref<CallState> call_;
  std::size_t looked_at_ = 0;  // Scanned bytes of an incomplete header section.
  bool is_reused_ = false;
  bool has_carried_ = false;
  bool has_received_ = false;  // A byte of the response to this call.
  bool is_receiving_ = false;
  bool is_in_body_ = false;
  bool is_handed_over_ = false;
};

}  // namespace spate::http
