// FieldTrait: how a received field is treated by the rules of RFC 9113 §8, and whether its name and
// value are well-formed. It is computed once for a field, and kept in HPACK's table.
#pragma once

#include <cstdint>
#include <string_view>

namespace spate::http {

enum class FieldKind : std::uint8_t {
  method,
  scheme,
  authority,
  path,
  protocol,
  status,
  plain,
  host,
  content_length,
  te,
  priority,
  forbidden,  // Specific to a connection, or an unknown pseudo-field.
};

constexpr bool is_pseudo(FieldKind kind) { return kind <= FieldKind::status; }

struct FieldTrait {
  FieldKind kind = FieldKind::plain;
  bool is_valid = true;
};

constexpr FieldKind pseudo_kind_of(std::string_view name) {
  if (name == ":path") return FieldKind::path;
  if (name == ":method") return FieldKind::method;
  if (name == ":scheme") return FieldKind::scheme;
  if (name == ":status") return FieldKind::status;
  if (name == ":protocol") return FieldKind::protocol;
  if (name == ":authority") return FieldKind::authority;
  return FieldKind::forbidden;
}

constexpr FieldKind field_kind_of(std::string_view name) {
  const auto either = [name](std::string_view wanted, FieldKind kind) {
    return name == wanted ? kind : FieldKind::plain;
  };
  if (name.starts_with(':')) return pseudo_kind_of(name);
  switch (name.size()) {
    case 2:
      return either("te", FieldKind::te);
    case 4:
      return either("host", FieldKind::host);
    case 7:
      return either("upgrade", FieldKind::forbidden);
    case 8:
      return either("priority", FieldKind::priority);
    case 10:
      return name == "connection" ? FieldKind::forbidden
                                  : either("keep-alive", FieldKind::forbidden);
    case 14:
      return either("content-length", FieldKind::content_length);
    case 16:
      return either("proxy-connection", FieldKind::forbidden);
    case 17:
      return either("transfer-encoding", FieldKind::forbidden);
    default:
      return FieldKind::plain;
  }
}

FieldTrait trait_of(std::string_view name, std::string_view value);

}  // namespace spate::http
