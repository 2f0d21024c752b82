// Request: the method, target and fields of a received request (exchange.h).
//
// Ownership: a part of its Exchange. Views that it returns are valid until the running callback
// returns; call again afterwards, or copy.
// Threads: the loop's thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spate/export.h"
#include "spate/http/attribute.h"
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
  // Returns the name as it was sent, also of a Method::other.
  std::string_view method_name() const;
  Version version() const;

  // Returns the target as it was sent: "/a%20b?c=d", "http://host/a", "*", "host:443" (CONNECT).
  std::string_view target() const;
  // Returns the target's path, still percent-encoded; begins with '/'. Empty for "*" and CONNECT.
  std::string_view path() const;
  // Returns the query after the first '?'. See Query in url.h.
  std::string_view query() const;
  // Returns the requested host, with its port if there is one: from the target if it has a host,
  // otherwise from the Host field. Empty for HTTP/1.0 without either.
  std::string_view host() const;

  const FieldsView& fields() const;
  // Return the first value of a field; empty if absent.
  std::string_view operator[](std::string_view name) const { return fields()[name]; }
  std::string_view operator[](FieldId id) const { return fields()[id]; }

  // Return whether a body follows, and its size if it was declared.
  bool has_body() const;
  std::optional<std::uint64_t> content_length() const;

  // Returns the part of the path that the route named (router.h), percent-decoded; empty if the
  // route has no such name.
  std::string param(std::string_view name) const;

  // Returns the pattern of the route that matched ("/users/:id"), for messages and metrics; empty
  // without a Router (router.h), and if no route matched.
  std::string_view route() const;

  // Returns the value that was attached to the exchange (Exchange::set_attribute()), or nullptr.
  template <class T>
  const T* attribute(const Attribute<T>& key) const {
    const AttributeNode* node = find_attribute(&key);
    return node == nullptr ? nullptr : &static_cast<const AttributeValue<T>*>(node)->value;
  }

  // Returns the address of the client. If peer() is a trusted proxy
  // (ServerOptions::trusted_proxies), it is the address that the proxies sent, and its port is 0 if
  // they sent none; otherwise peer().
  Address client() const;
  // Returns the address of the peer of the connection, which may be a proxy. With
  // ServerOptions::proxy_protocol it is the one in the header.
  Address peer() const;
  // Return whether the connection uses TLS, and its parameters.
  bool is_secure() const { return tls().has_value(); }
  std::optional<TlsInfo> tls() const;

 private:
  friend class ExchangeState;
  explicit Request(const ExchangeState& state) : state_(state) {}
  const AttributeNode* find_attribute(const void* key) const;

  const ExchangeState& state_;
};

}  // namespace spate::http
