// How what is sent is framed: which fields announce it, what follows the head, and whether the
// connection stays (RFC 9112 §6, §9). Never decided by the fields that a program sets.
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
  BodyKind body = BodyKind::none;  // What is sent behind the head.
  Announced announced = Announced::nothing;
  std::uint64_t length = 0;  // Announced, and if there is a body its size.
  ConnectionOption connection = ConnectionOption::none;
  bool keeps_alive = true;  // Else the connection is closed behind it.
};

// What of a request matters for its answer.
struct Asked {
  Method method = Method::get;
  Version version = Version::http_1_1;
  bool keeps_alive = true;  // It may, and the server wants to.
};

// Whether an answer has content (RFC 9110 §6.4.1): a program's is thrown away where it has none.
bool may_have_content(Method asked, Status status);

// `size` is that of the content, if it is known. An answer of unknown size to HTTP/1.0 ends with
// the connection.
Outgoing frame_answer(const Asked& asked, Status status, std::optional<std::uint64_t> size);

enum class Content : std::uint8_t { none, sized, unsized };

// A request. `size` counts with Content::sized.
Outgoing frame_sent_request(Method method, Content content, std::uint64_t size,
                            ConnectionOption connection);

// Fields that are of one connection or say how a message is framed. Programs cannot set them.
inline constexpr std::uint64_t kFramingFields =
    bit_of(FieldId::connection) | bit_of(FieldId::content_length) | bit_of(FieldId::keep_alive) |
    bit_of(FieldId::proxy_connection) | bit_of(FieldId::te) | bit_of(FieldId::transfer_encoding) |
    bit_of(FieldId::upgrade);

}  // namespace spate::http
