// ClientConnection: one connection of a client's pool: carries calls, one after the other, and is
// watched while it has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "http/client/call_state.h"
#include "http/client/ref.h"
#include "http/codec/refusal.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate::http {

class Origin;

class ClientConnection final : public StreamHandler, public Counted {
 public:
  ClientConnection(Origin& origin, Stream stream);
  ~ClientConnection();

  void start();
  // False if the stream takes nothing any more; then the call is as it was.
  bool carry(CallState& call);
  // Is kept for another call. False if it is not worth it.
  bool rest(Nanos idle_timeout);
  Nanos idle_since() const { return idle_since_; }

  // ---- what its call asks for

  void send_body();
  bool is_full() const { return stream_.is_full(); }
  void pause() { stream_.pause(); }
  void resume() { stream_.resume(); }
  void show_more();
  // The call goes; nobody is told.
  void abandon();

  // ---- StreamHandler

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  // Its origin has no more to do with it.
  enum class Ending : std::uint8_t { graceful, reset };
  void leave(Ending ending);

 private:
  bool carries(const CallState& call) const { return call_.get() == &call; }
  std::size_t take(CallState& call, Bytes bytes);
  std::size_t take_head(CallState& call, Bytes bytes);
  void take_response(CallState& call, const ResponseView& head, const Framing& framing,
                     Bytes behind);
  bool take_informational(CallState& call, const ResponseView& head);
  void take_upgrade(CallState& call, const ResponseView& head, const Framing& framing);
  Stream hand_over();
  std::size_t take_body(CallState& call, Bytes bytes);
  std::size_t take_chunked(CallState& call, Bytes bytes);
  bool is_at_end(const CallState& call) const;
  void note_keep_alive(const ResponseView& head);

  enum class Behind : std::uint8_t { nothing, something };
  void finish(CallState& call, Behind behind);
  void fail(CallState& call, std::error_code error);
  void lose(std::error_code error);
  void drop(Ending ending);
  void wake();

  Origin* origin_;
  Stream stream_;
  Ref<CallState> call_;
  std::size_t looked_at_ = 0;  // Of an unfinished head.
  Nanos idle_since_{0};
  Nanos kept_for_{kForever};  // By the server.
  bool is_idle_ = false;
  bool is_unreferenced_ = false;  // By the loop.
  bool is_reused_ = false;
  bool has_carried_ = false;
  bool has_received_ = false;  // Of an answer to this call.
  bool is_in_body_ = false;
  bool is_handed_over_ = false;
};

}  // namespace spate::http
