#include "http/codec/framing.h"

#include <optional>

#include "http/codec/characters.h"

namespace spate::http {

namespace {

constexpr std::uint64_t kMostContent = INT64_MAX;
// A request without any of them has no body, and its version alone decides on persistence.
constexpr std::uint64_t kDecisive = bit_of(FieldId::transfer_encoding) |
                                    bit_of(FieldId::content_length) | bit_of(FieldId::connection) |
                                    bit_of(FieldId::expect);

// Parses 1*DIGIT, and nothing else.
std::optional<std::uint64_t> read_length(std::string_view text) {
  if (text.empty()) return {};
  std::uint64_t length = 0;
  for (const char c : text) {
    if (!is_digit(c)) return {};
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (length > (kMostContent - digit) / 10) return {};
    length = length * 10 + digit;
  }
  return length;
}

// Refuses everything except "chunked". The status is 501 only if the end of the body would be
// known, that is, if the last coding, and only that, is chunked.
Refusal check_codings(const FieldsView& fields) {
  if (equal_ignoring_case(fields[FieldId::transfer_encoding], "chunked")) return {};
  std::size_t chunked = 0;
  bool is_last = false;
  for (const std::string_view coding : fields.list(FieldId::transfer_encoding)) {
    is_last = equal_ignoring_case(coding, "chunked");
    chunked += is_last;
  }
  if (chunked != 1 || !is_last) return bad_request("chunked is not the last transfer coding");
  return {Status::not_implemented, "a transfer coding other than chunked"};
}

// Frames the body by Transfer-Encoding or Content-Length, if present.
Refusal frame_body(const FieldsView& fields, Version version, std::uint64_t repeated,
                   Framing& framing) {
  constexpr std::uint64_t kEither =
      bit_of(FieldId::transfer_encoding) | bit_of(FieldId::content_length);
  if (!fields.contains_any(kEither)) return {};
  if ((repeated & kEither) != 0)
    return bad_request("Content-Length or Transfer-Encoding appears twice");
  if (!fields.contains(FieldId::transfer_encoding)) {
    const auto length = read_length(fields[FieldId::content_length]);
    if (!length) return bad_request("Content-Length is not a number");
    framing.size = *length;
    framing.body = framing.size == 0 ? BodyKind::none : BodyKind::sized;
    return {};
  }
  if (fields.contains(FieldId::content_length))
    return bad_request("both Content-Length and Transfer-Encoding");
  if (version == Version::http_1_0) return bad_request("Transfer-Encoding in HTTP/1.0");
  framing.body = BodyKind::chunked;
  return check_codings(fields);
}

bool keeps_alive(const FieldsView& fields, Version version) {
  if (!fields.contains(FieldId::connection)) return version != Version::http_1_0;
  const ListValues options = fields.list(FieldId::connection);
  if (options.contains("close")) return false;
  return version != Version::http_1_0 || options.contains("keep-alive");
}

bool asks_upgrade(const FieldsView& fields, Version version) {
  return version != Version::http_1_0 && fields.contains(FieldId::upgrade) &&
         fields.list(FieldId::connection).contains("upgrade");
}

Refusal read_expectation(const RequestView& request, Framing& framing) {
  if (!request.fields.contains(FieldId::expect) || request.version == Version::http_1_0) return {};
  for (const std::string_view expectation : request.fields.all(FieldId::expect))
    if (!equal_ignoring_case(expectation, "100-continue"))
      return {Status::expectation_failed, "an expectation other than 100-continue"};
  framing.expects_continue = framing.body != BodyKind::none;
  return {};
}

}  // namespace

Refusal frame_request(const RequestView& request, Framing& framing) {
  framing = {};
  framing.keeps_alive = request.version != Version::http_1_0;
  if (!request.fields.contains_any(kDecisive)) return {};
  if (const Refusal refusal =
          frame_body(request.fields, request.version, request.repeated, framing))
    return refusal;
  if (request.method == Method::connect && framing.body != BodyKind::none)
    return bad_request("CONNECT with a body");
  framing.keeps_alive = keeps_alive(request.fields, request.version);
  framing.asks_upgrade = asks_upgrade(request.fields, request.version);
  return read_expectation(request, framing);
}

Refusal frame_response(const ResponseView& response, Method method, Framing& framing) {
  framing = {};
  if (Refusal refusal = frame_body(response.fields, response.version, response.repeated, framing)) {
    refusal.status = Status::bad_gateway;
    return refusal;
  }
  const bool has_length = response.fields.contains_any(bit_of(FieldId::transfer_encoding) |
                                                       bit_of(FieldId::content_length));
  const bool has_body = framing.body != BodyKind::none;
  framing.keeps_alive = keeps_alive(response.fields, response.version);
  framing.becomes_tunnel = response.status == Status::switching_protocols ||
                           (method == Method::connect && is_success(response.status));
  const bool is_bare = is_informational(response.status) || response.status == Status::no_content;
  if (framing.becomes_tunnel || is_bare || response.status == Status::not_modified ||
      method == Method::head) {
    framing.body = BodyKind::none;
    framing.size = 0;
    // After a message that declares a body it must not have, the next one cannot be located safely.
    if (is_bare && has_body) framing.keeps_alive = false;
    return {};
  }
  if (!has_length) {
    framing.body = BodyKind::until_end;
    framing.keeps_alive = false;
  }
  return {};
}

}  // namespace spate::http
