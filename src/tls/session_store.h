// SessionStore: the sessions that a loop's clients may resume, by host. A TLS 1.3 session is used
// once, so that observers cannot link two connections to the same client. A session expires with
// the server's certificate chain (RFC 8446, section 4.6.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tls/openssl.h"

namespace spate {

// A session, and the time until which it may be resumed, in nanoseconds of the wall clock.
struct KeptSession {
  OwnSession session;
  std::int64_t valid_until = INT64_MAX;
};

class SessionStore {
 public:
  explicit SessionStore(std::size_t most) : most_(most) {}

  // Takes ownership. Above `most` hosts, the least recently used one is removed.
  void keep(std::string_view host, KeptSession kept);
  // Returns a session that can be resumed at `now`, and removes it if it is of TLS 1.3. Returns an
  // empty KeptSession if the host has no such session.
  KeptSession take(std::string_view host, std::int64_t now);
  std::size_t size() const { return entries_.size(); }

 private:
  // Servers usually send two tickets.
  static constexpr std::size_t kPerHost = 2;

  struct Entry {
    std::string host;
    std::list<KeptSession> sessions;  // Newest last.
  };

  const std::size_t most_;
  std::list<Entry> entries_;  // Most recently used first.
  std::unordered_map<std::string_view, std::list<Entry>::iterator> places_;
};

}  // namespace spate
