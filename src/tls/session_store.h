// SessionStore: the sessions that a loop's clients may resume, by host. A session of TLS 1.3 is
// used once, so that nobody on the way can tell that two connections are of the same client.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tls/openssl.h"

namespace spate {

class SessionStore {
 public:
  explicit SessionStore(std::size_t most) : most_(most) {}

  // Takes it over. With more than `most` hosts the one that was used least recently goes.
  void keep(std::string_view host, OwnSession session);
  // One that may be resumed; nullptr if there is none.
  OwnSession take(std::string_view host);
  std::size_t size() const { return entries_.size(); }

 private:
  // Both tickets that a server usually gives.
  static constexpr std::size_t kPerHost = 2;

  struct Entry {
    std::string host;
    std::list<OwnSession> sessions;  // The newest last.
  };

  const std::size_t most_;
  std::list<Entry> entries_;  // The one used last is in front.
  std::unordered_map<std::string_view, std::list<Entry>::iterator> places_;
};

}  // namespace spate
