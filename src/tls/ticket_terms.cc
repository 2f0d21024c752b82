#include "tls/ticket_terms.h"

#include <openssl/asn1.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>

#include "tls/engine.h"

namespace spate {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// In nanoseconds. An invalid time counts as expired.
std::int64_t end_of(const X509* certificate) {
  tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) != 1) return 0;
  const auto day = std::chrono::sys_days(std::chrono::year(parts.tm_year + 1900) /
                                         (parts.tm_mon + 1) / parts.tm_mday);
  const std::int64_t seconds = std::chrono::sys_seconds(day).time_since_epoch().count() +
                               (parts.tm_hour * 60 + parts.tm_min) * 60 + parts.tm_sec;
  return std::min(seconds, INT64_MAX / kSecond) * kSecond;
}

std::optional<TicketTerms> terms_of(SSL_SESSION* session) {
  void* data = nullptr;
  std::size_t size = 0;
  TicketTerms terms;
  if (SSL_SESSION_get0_ticket_appdata(session, &data, &size) != 1 || size != sizeof(terms))
    return {};
  std::memcpy(&terms, data, sizeof(terms));
  return terms;
}

// A resumed session keeps its terms.
int on_ticket_made(SSL* ssl, void*) {
  SSL_SESSION* session = SSL_get_session(ssl);
  if (SSL_session_reused(ssl) == 1 && terms_of(session)) return 1;
  const TicketTerms terms = {.begun = wall_now(), .valid_until = end_of_chain(ssl)};
  return SSL_SESSION_set1_ticket_appdata(session, &terms, sizeof(terms));
}

SSL_TICKET_RETURN on_ticket_shown(SSL* ssl, SSL_SESSION* session, const unsigned char*, std::size_t,
                                  SSL_TICKET_STATUS status, void*) {
  const bool is_read = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
  const auto terms = is_read ? terms_of(session) : std::nullopt;
  const Nanos lifetime = Engine::of(ssl).context().description().ticket_lifetime;
  if (!terms || !terms->allow(wall_now(), lifetime)) return SSL_TICKET_RETURN_IGNORE_RENEW;
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

}  // namespace

std::int64_t wall_now() { return system_clock().wall().time_since_epoch().count(); }

std::int64_t end_of_chain(const SSL* ssl) {
  std::int64_t end = INT64_MAX;
  const STACK_OF(X509)* chain = SSL_get0_verified_chain(ssl);
  for (int i = 0; i < sk_X509_num(chain); ++i) end = std::min(end, end_of(sk_X509_value(chain, i)));
  return end;
}

bool keep_ticket_terms(SSL_CTX* context) {
  return SSL_CTX_set_session_ticket_cb(context, &on_ticket_made, &on_ticket_shown, nullptr) == 1;
}

}  // namespace spate
