// TicketKeys: the keys with which a server encrypts session tickets. All loops share them, so that
// a session may be resumed on another loop. Any thread.
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

  // Returns the key for new tickets; makes a new one if it is older than `lifetime`. nullopt
  // without random bytes.
  std::optional<TlsTicketKey> current(Nanos lifetime);
  struct Found {
    TlsTicketKey key;
    bool is_current;
  };
  // Returns the key that a ticket names.
  std::optional<Found> find(std::span<const std::byte, 16> name);

  // False without random bytes: the old keys stay.
  bool rotate();
  // As TlsContext::set_ticket_keys().
  bool set(std::span<const TlsTicketKey> keys);

 private:
  bool rotate_locked();

  std::mutex mutex_;
  std::array<TlsTicketKey, kMost> keys_{};  // Newest first.
  std::size_t count_ = 0;
  Nanos made_at_{0};
  bool are_given_ = false;  // Set by the program: they do not age.
};

}  // namespace spate
