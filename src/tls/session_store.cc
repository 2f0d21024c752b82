#include "tls/session_store.h"

#include <utility>

namespace spate {

void SessionStore::keep(std::string_view host, KeptSession kept) {
  if (most_ == 0) return;
  auto place = places_.find(host);
  if (place == places_.end()) {
    entries_.push_front({.host = std::string(host), .sessions = {}});
    place = places_.emplace(entries_.front().host, entries_.begin()).first;
  }
  entries_.splice(entries_.begin(), entries_, place->second);
  std::list<KeptSession>& sessions = place->second->sessions;
  sessions.push_back(std::move(kept));
  if (sessions.size() > kPerHost) sessions.pop_front();
  if (entries_.size() <= most_) return;
  places_.erase(entries_.back().host);
  entries_.pop_back();
}

KeptSession SessionStore::take(std::string_view host, std::int64_t now) {
  const auto place = places_.find(host);
  if (place == places_.end()) return {};
  std::list<KeptSession>& sessions = place->second->sessions;
  sessions.remove_if([now](const KeptSession& each) { return each.valid_until <= now; });
  KeptSession kept;
  if (!sessions.empty()) {
    kept = std::move(sessions.back());
    sessions.pop_back();
  }
  SSL_SESSION* session = kept.session.get();
  if (session != nullptr && SSL_SESSION_get_protocol_version(session) < TLS1_3_VERSION &&
      SSL_SESSION_up_ref(session) == 1) {
    sessions.push_back({.session = OwnSession(session), .valid_until = kept.valid_until});
  }
  if (sessions.empty()) {
    const auto entry = place->second;
    places_.erase(place);
    entries_.erase(entry);
  }
  if (session != nullptr && SSL_SESSION_is_resumable(session) != 1) return {};
  return kept;
}

}  // namespace spate
