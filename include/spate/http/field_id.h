// FieldId: a well-known header field. A parser recognises each name once; afterwards a field is
// found by comparing bytes.
// Threads: any; the values are constants or plain copies.
#pragma once

#include <cstdint>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// `other` is every field without a name here.
enum class FieldId : std::uint8_t {
  other,
  accept,
  accept_encoding,
  accept_language,
  accept_ranges,
  age,
  allow,
  alt_svc,
  authorization,
  cache_control,
  connection,
  content_disposition,
  content_encoding,
  content_language,
  content_length,
  content_range,
  content_type,
  cookie,
  date,
  etag,
  expect,
  expires,
  forwarded,
  host,
  idempotency_key,
  if_match,
  if_modified_since,
  if_none_match,
  if_range,
  if_unmodified_since,
  keep_alive,
  last_event_id,
  last_modified,
  link,
  location,
  max_forwards,
  origin,
  pragma,
  priority,
  proxy_authenticate,
  proxy_authorization,
  proxy_connection,
  range,
  referer,
  retry_after,
  sec_websocket_accept,
  sec_websocket_extensions,
  sec_websocket_key,
  sec_websocket_protocol,
  sec_websocket_version,
  server,
  set_cookie,
  te,
  trailer,
  transfer_encoding,
  upgrade,
  user_agent,
  vary,
  via,
  www_authenticate,
  x_forwarded_for,
  x_forwarded_host,
  x_forwarded_proto,
};
inline constexpr int kFieldIds = static_cast<int>(FieldId::x_forwarded_proto) + 1;
static_assert(kFieldIds <= 64, "a set of them is a word");

// Returns "Content-Length", ...; empty for `other`.
SPATE_EXPORT std::string_view name_of(FieldId id);
// Returns the id of a name in any case: "content-length" is FieldId::content_length.
SPATE_EXPORT FieldId field_id_of(std::string_view name);

}  // namespace spate::http
