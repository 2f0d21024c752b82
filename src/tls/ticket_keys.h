// TicketKeys: the keys with which a server encrypts sessions, for its clients to keep. All loops
// share them, so that a session may be resumed on another one. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

#include "spate/net/tls.h"
#include "spate/time.h"

namespace spate {

class TicketKeys {
 public:
  static constexpr std::size_t kMost = 3;

  TicketKeys() = default;
  ~TicketKeys();
  TicketKeys(const TicketKeys&) = delete;
  TicketKeys& operator=(const TicketKeys&) = delete;

  // The key for new tickets; a new one, if it is older than `lifetime`. None without randomness.
  std::optional<TlsTicketKey> current(Nanos lifetime);
  struct Found {
    TlsTicketKey key;
    bool is_current;
  };
  // The one that a ticket names.
  std::optional<Found> find(std::span<const std::byte, 16> name);

  // False without randomness: the old ones stay.
  bool rotate();
  // As TlsContext::set_ticket_keys().
  bool set(std::span<const TlsTicketKey> keys);

 private:
  bool rotate_locked();

  std::mutex mutex_;
  std::array<TlsTicketKey, kMost> keys_{};  // The newest first.
  std::size_t count_ = 0;
  Nanos made_at_{0};
  bool are_given_ = false;  // From outside: they do not age.
};

}  // namespace spate
