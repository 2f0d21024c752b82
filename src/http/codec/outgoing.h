// The framing of output: which fields announce it, how the body follows the header section, and
// whether the connection persists (RFC 9112 §6, §9). It never depends on fields that a program
// sets.
#pragma once

#include <cstdint>
#include <optional>

#include "http/codec/framing.h"
#include "spate/http/fields.h"
#include "spate/http/method.h"
#include "spate/http/status.h"
#include "spate/http/version.h"

namespace spate::http {

enum class Announced : std::uint8_t { nothing, length, chunked };
enum class ConnectionOption : std::uint8_t { none, close, keep_alive, te, upgrade };

struct Outgoing {
  BodyKind body = BodyKind::none;  // Sent after the header section.
  Announced announced = Announced::nothing;
  std::uint64_t length = 0;  // The announced length; the size of the body, if there is one.
  ConnectionOption connection = ConnectionOption::none;
  bool keeps_alive = true;  // False: the connection is closed afterwards.
};

// The properties of a request that determine its response's framing.
struct RequestSummary {
  Method method = Method::get;
  Version version = Version::http_1_1;
  bool keeps_alive = true;  // The client allows it, and the server wants to.
};

// Returns whether a response has content (RFC 9110 §6.4.1). Otherwise a program's body is dropped.
bool may_have_content(Method method, Status status);

// Frames a response. `size` is that of the content, if known. A response of unknown size to
// HTTP/1.0 ends with the connection.
Outgoing frame_outgoing(const RequestSummary& request, Status status,
                        std::optional<std::uint64_t> size);

enum class Content : std::uint8_t { none, sized, unsized };

// Frames a request. `size` is used with Content::sized.
Outgoing frame_sent_request(Method method, Content content, std::uint64_t size,
                            ConnectionOption connection);

// Fields that belong to one connection, or describe framing. Programs cannot set them.
inline constexpr std::uint64_t kFramingFields =
    bit_of(FieldId::connection) | bit_of(FieldId::content_length) | bit_of(FieldId::keep_alive) |
    bit_of(FieldId::proxy_connection) | bit_of(FieldId::te) | bit_of(FieldId::transfer_encoding) |
    bit_of(FieldId::upgrade);

}  // namespace spate::http
