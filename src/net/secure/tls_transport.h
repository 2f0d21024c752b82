// TlsTransport: TLS between a connection and the transport that it had: sockets, memory, or another
// TlsTransport. One a connection.
//
// Out: the engine never refuses a write. What it makes of at most 64 KiB goes down with one call,
// and what is not taken is kept here. The connection is told that its bytes were sent when their
// ciphertext has been taken, so that its queue, marks, deadlines and endings need not know of it;
// it gives those that were not sent again, and they are skipped.
// In: no more ciphertext is fetched than there is room for plaintext, and what is left inside all
// the same is asked for again by an event that the transport feeds to the connection: nothing that
// could be read waits for the peer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/chain.h"
#include "net/secure/tls_engine.h"
#include "net/secure/tls_hub.h"
#include "net/stream/transport.h"
#include "net/stream/unread.h"

namespace spate {

class TlsAttempt;

class TlsTransport final : public Transport, public Linked<TlsTransport> {
 public:
  // Takes the connection over from the transport that it has, and begins to shake hands. nullptr
  // when memory runs out; nothing has changed then.
  static TlsTransport* put_over(Connection& connection, TlsHub& hub,
                                std::unique_ptr<TlsEngine> engine, TlsAttempt& attempt);

  // Goes on with the handshake; tells the attempt when it is done, or has failed.
  void step(Connection& connection);
  // The attempt stands in line, and nothing is read meanwhile; or no longer.
  void set_in_line(Connection& connection, bool on);
  // The attempt is going.
  void forget_attempt() { attempt_ = nullptr; }
  // True if it has moved nothing since it was asked last, and rests from now on.
  bool rest_unless_busy();

  bool is_connected() const override { return below_.is_connected(); }
  Events on_event(Connection& connection, Events events) override;
  long send_file(Connection& connection, int file, std::int64_t offset, std::size_t size) override;
  bool want(Connection& connection, Events events) override;
  bool has_farewell() const override;
  bool shut_down(Connection& connection) override;
  void close(Connection& connection, bool reset) override;
  void leave(Connection& connection) override;
  const TlsEngine* tls() const override { return phase_ == Phase::open ? engine_.get() : nullptr; }

 private:
  enum class Phase : std::uint8_t { handshake, open, failed };
  class Source;

  // A record as OpenSSL keeps it until it is whole.
  static constexpr std::size_t kRecord = 17 * 1024;
  // Of what the peer makes us say besides (changes of keys), no more is kept before reading stops.
  static constexpr std::size_t kMostUnsent = 128 * 1024;
  // How often 64 KiB are encrypted for one call of the connection's.
  static constexpr int kBatches = 8;

  bool has_more() const override { return was_full_; }
  long receive_own_way(Connection& connection, std::span<std::byte> room) override;
  long send_own_way(Connection& connection, std::span<const Bytes> pieces) override;

  TlsTransport(Transport& below, TlsHub& tls, std::unique_ptr<TlsEngine> engine,
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
  bool may_say_goodbye() const;
  void say_goodbye(Connection& connection);
  void fail(Connection& connection, TlsFailure why);

  Transport& below_;
  TlsHub& tls_hub_;
  std::unique_ptr<TlsEngine> engine_;
  TlsAttempt* attempt_;   // nullptr once it knows.
  Unread ciphertext_;     // To be sent before anything else.
  Unread unfed_;          // Has come, and there was no room for what it becomes.
  std::size_t owed_ = 0;  // Of the connection's bytes: encrypted, and not told to have been sent.
  long fate_ = 0;         // What every further receive() returns; if is_over_.
  long broken_ = 0;       // Why nothing more can be sent; 0 if it can.
  Events wish_ = Events::none;
  Phase phase_ = Phase::handshake;
  bool is_over_ = false;
  bool is_in_line_ = false;
  bool was_full_ = false;  // As much has been fetched as was asked for.
  bool has_said_goodbye_ = false;
  bool is_listed_ = false;  // Among those that have been busy.
  bool has_moved_ = false;
};

}  // namespace spate
