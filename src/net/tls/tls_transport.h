// TlsTransport: TLS between a connection and its original transport: a socket, memory, or another
// TlsTransport. One per connection.
//
// Output: the engine never refuses a write. The ciphertext of at most 64 KiB is sent with one call;
// the part that is not taken is kept here. Bytes are reported to the connection as sent once their
// ciphertext was taken. So its queue, watermarks, deadlines and endings need no knowledge of TLS.
// The connection passes unsent bytes again, and they are skipped.
// Input: no more ciphertext is fetched than there is room for plaintext. If plaintext is left
// inside the engine, the transport feeds a read event to the connection, so that it does not wait
// for the peer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/list.h"
#include "net/stream/transport.h"
#include "net/stream/unread.h"
#include "net/tls/loop_tls.h"
#include "net/tls/tls_engine.h"

namespace spate {

class TlsAttempt;

class TlsTransport final : public Transport, public Linked<TlsTransport> {
 public:
  // Puts TLS between the connection and its transport, and begins the handshake. nullptr when
  // memory runs out, with nothing changed.
  static TlsTransport* put_over(Connection& connection, LoopTls& loop_state,
                                std::unique_ptr<TlsEngine> engine, TlsAttempt& attempt);

  // Continues the handshake, and reports its end to the attempt.
  void step(Connection& connection);
  // Sets whether the attempt is queued: nothing is read while it is.
  void set_queued(Connection& connection, bool on);
  // Called when the attempt ends or is destroyed. Ends an unfinished handshake.
  void forget_attempt();
  // Returns true if nothing was moved since the last call, and frees memory then.
  bool rest_unless_busy();

  bool is_connected() const override { return below_.is_connected(); }
  const Transport& base() const override { return below_.base(); }
  bool is_quiet(Connection& connection) const override {
    return !has_inside() && unfed_.empty() && below_.is_quiet(connection);
  }
  Events on_event(Connection& connection, Events events) override;
  long send_file(Connection& connection, int file, std::int64_t offset, std::size_t size) override;
  bool want(Connection& connection, Events events) override;
  bool has_farewell() const override;
  bool shut_down(Connection& connection) override;
  void close(Connection& connection, bool reset) override;
  void on_fork() override;
  void leave(Connection& connection) override;
  const TlsEngine* tls() const override { return phase_ == Phase::open ? engine_.get() : nullptr; }

 private:
  enum class Phase : std::uint8_t { handshake, open, failed };
  class Source;

  // The buffer of OpenSSL for an incomplete record.
  static constexpr std::size_t kRecord = 17 * 1024;
  // Limit of output caused by the peer (key updates): reading stops beyond it.
  static constexpr std::size_t kMostUnsent = 128 * 1024;
  // How many batches of 64 KiB are encrypted for one call of the connection.
  static constexpr int kBatches = 8;

  bool has_more() const override { return was_full_; }
  long receive_own_way(Connection& connection, std::span<std::byte> room) override;
  long send_own_way(Connection& connection, std::span<const Bytes> pieces) override;

  TlsTransport(Transport& below, LoopTls& tls, std::unique_ptr<TlsEngine> engine,
               TlsAttempt& attempt);
  ~TlsTransport() override;

  Events wish_below() const;
  bool ask_below(Connection& connection);
  bool has_inside() const;
  void look_again(Connection& connection);
  void note_use();
  long read(Connection& connection, TlsWire& wire, TlsArea& area, std::span<std::byte> room,
            bool& has_fetched);
  long fetch(Connection& connection, TlsWire& wire, TlsArea& area, std::size_t room);
  bool keep_unfed(const TlsWire& wire);
  long flush(Connection& connection);
  long send_out(Connection& connection, TlsWire& wire);
  std::size_t take_settled(std::size_t given);
  long send_all(Connection& connection, Source& source);
  long send_batch(Connection& connection, Source& source);
  bool may_send_close_notify() const;
  void say_goodbye(Connection& connection);
  void fail(Connection& connection, TlsFailure why);

  Transport& below_;
  LoopTls& loop_tls_;
  std::unique_ptr<TlsEngine> engine_;
  TlsAttempt* attempt_;   // nullptr once the result was reported.
  Unread ciphertext_;     // Must be sent before anything else.
  Unread unfed_;          // Received, but there was no room for its plaintext.
  std::size_t owed_ = 0;  // Plaintext bytes that are encrypted, but not yet reported as sent.
  long final_result_ = 0;  // The result of all further receive() calls, if is_over_.
  long broken_ = 0;       // Why nothing more can be sent; 0 if it can.
  Events wish_ = Events::none;
  Phase phase_ = Phase::handshake;
  bool is_over_ = false;
  bool is_queued_ = false;
  bool was_full_ = false;  // The last fetch filled its buffer.
  bool has_sent_close_notify_ = false;
  bool is_listed_ = false;  // In the list of busy transports.
  bool has_moved_ = false;
};

}  // namespace spate
