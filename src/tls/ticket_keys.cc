#include "tls/ticket_keys.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

namespace spate {

namespace {

template <std::size_t size>
bool make_random(std::array<std::byte, size>& bytes) {
  return RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), size) == 1;
}

}  // namespace

TicketKeys::~TicketKeys() { OPENSSL_cleanse(keys_.data(), sizeof(keys_)); }

std::optional<TlsTicketKey> TicketKeys::current(Nanos lifetime) {
  const std::scoped_lock lock(mutex_);
  const bool is_old = !are_given_ && system_clock().monotonic() - made_at_ >= lifetime;
  if ((count_ == 0 || is_old) && !rotate_locked() && count_ == 0) return std::nullopt;
  return keys_.front();
}

std::optional<TicketKeys::Found> TicketKeys::find(std::span<const std::byte, 16> name) {
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < count_; ++i) {
    if (std::ranges::equal(keys_[i].name, name)) return Found{keys_[i], i == 0};
  }
  return std::nullopt;
}

bool TicketKeys::rotate() {
  const std::scoped_lock lock(mutex_);
  are_given_ = false;
  return rotate_locked();
}

bool TicketKeys::rotate_locked() {
  TlsTicketKey made;
  if (!make_random(made.name) || !make_random(made.cipher) || !make_random(made.mac)) return false;
  std::ranges::rotate(keys_, keys_.end() - 1);
  keys_.front() = made;
  count_ = std::min(count_ + 1, kMost);
  made_at_ = system_clock().monotonic();
  OPENSSL_cleanse(&made, sizeof(made));
  return true;
}

bool TicketKeys::set(std::span<const TlsTicketKey> keys) {
  if (keys.empty() || keys.size() > kMost) return false;
  const std::scoped_lock lock(mutex_);
  OPENSSL_cleanse(keys_.data(), sizeof(keys_));
  std::ranges::copy(keys, keys_.begin());
  count_ = keys.size();
  are_given_ = true;
  return true;
}

}  // namespace spate
