#include "tls/session_store.h"

#include <utility>

namespace spate {

void SessionStore::keep(std::string_view host, OwnSession session) {
  if (most_ == 0) return;
  auto place = places_.find(host);
  if (place == places_.end()) {
    entries_.push_front({.host = std::string(host), .sessions = {}});
    place = places_.emplace(entries_.front().host, entries_.begin()).first;
  }
  entries_.splice(entries_.begin(), entries_, place->second);
  std::list<OwnSession>& sessions = place->second->sessions;
  sessions.push_back(std::move(session));
  if (sessions.size() > kPerHost) sessions.pop_front();
  if (entries_.size() <= most_) return;
  places_.erase(entries_.back().host);
  entries_.pop_back();
}

OwnSession SessionStore::take(std::string_view host) {
  const auto place = places_.find(host);
  if (place == places_.end()) return nullptr;
  std::list<OwnSession>& sessions = place->second->sessions;
  OwnSession session;
  if (!sessions.empty()) {
    session = std::move(sessions.back());
    sessions.pop_back();
  }
  if (session != nullptr && SSL_SESSION_get_protocol_version(session.get()) < TLS1_3_VERSION &&
      SSL_SESSION_up_ref(session.get()) == 1) {
    sessions.emplace_back(session.get());
  }
  if (sessions.empty()) {
    const auto entry = place->second;
    places_.erase(place);
    entries_.erase(entry);
  }
  if (session != nullptr && SSL_SESSION_is_resumable(session.get()) != 1) session.reset();
  return session;
}

}  // namespace spate
