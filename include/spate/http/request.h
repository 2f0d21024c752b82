// Request: what a server knows of a request once its head is there (exchange.h).
//
// Ownership: a part of its Exchange. Views that it returns are valid until the callback returns in
// which they were asked for; ask again afterwards. What is kept longer is to be copied.
// Threads: the loop's thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spate/export.h"
#include "spate/http/fields.h"
#include "spate/http/method.h"
#include "spate/http/version.h"
#include "spate/net/address.h"
#include "spate/net/tls.h"

namespace spate::http {

class ExchangeState;

class SPATE_EXPORT Request {
 public:
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Method method() const;
  // As it was sent; also of a Method::other.
  std::string_view method_name() const;
  Version version() const;

  // As it was sent: "/a%20b?c=d", "http://host/a", "*", "host:443" (CONNECT).
  std::string_view target() const;
  // The target's path, still percent-encoded; begins with '/'. Empty of "*" and of CONNECT.
  std::string_view path() const;
  // What follows the first '?', without it. See Query in url.h.
  std::string_view query() const;
  // The host that is asked for, with its port if one was given: the target's, if it names one, else
  // that of the field Host. Empty in HTTP/1.0 without either.
  std::string_view host() const;

  const FieldsView& fields() const;
  // The first value of a field; empty if there is none.
  std::string_view operator[](std::string_view name) const { return fields()[name]; }
  std::string_view operator[](FieldId id) const { return fields()[id]; }

  // Whether a body follows, and of which size if that was said.
  bool has_body() const;
  std::optional<std::uint64_t> content_length() const;

  // The part of the path that a route has given this name (router.h), percent-decoded; empty if
  // none has.
  std::string param(std::string_view name) const;

  // The other end of the connection; what a proxy says of it, if the server believes that
  // (ServerOptions::proxy_protocol).
  Address peer() const;
  // Whether the connection carries TLS, and what its two ends have agreed on.
  bool is_secure() const { return tls().has_value(); }
  std::optional<TlsInfo> tls() const;

 private:
  friend class ExchangeState;
  explicit Request(const ExchangeState& state) : state_(state) {}
  const ExchangeState& state_;
};

}  // namespace spate::http
