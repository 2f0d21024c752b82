// MessageRules: whether the header sections and the body of one message are well-formed (RFC 9113
// §8): order and presence of pseudo-fields, forbidden fields, and Content-Length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http2/field_trait.h"
#include "http2/hpack_decoder.h"

namespace spate::http {

// The result of a check of a field.
enum class Verdict : std::uint8_t {
  report,
  drop,       // It has no meaning here, and is ignored (RFC 9110 §9.3.6).
  malformed,  // And so is the message.
};

enum class SectionKind : std::uint8_t { request, response, trailers };

class MessageRules {
 public:
  // Notes the method of a request that is sent, for its response.
  void note_request(std::string_view method);

  Verdict take_field(const HpackField& field, SectionKind kind);

  // These return false if the message is malformed.

  bool end_section(SectionKind kind, bool is_last);
  bool take_body(std::size_t size);
  bool take_end() const;

  bool awaits_final_response() const { return has(kAwaitsFinal); }

 private:
  enum Flag : std::uint16_t {
    kMethod = 1 << 0,  // These pseudo-fields have arrived.
    kScheme = 1 << 1,
    kAuthority = 1 << 2,
    kPath = 1 << 3,
    kProtocol = 1 << 4,
    kHost = 1 << 5,
    kFieldSeen = 1 << 6,  // No pseudo-field may follow.
    kIsConnect = 1 << 7,
    kIsHead = 1 << 8,
    kIsOptions = 1 << 9,
    kIsHttp = 1 << 10,        // The scheme.
    kPathIsRooted = 1 << 11,  // It begins with "/".
    kPathIsStar = 1 << 12,
    kAwaitsFinal = 1 << 13,  // After a 1xx response.
  };
  bool has(unsigned flags) const { return (flags_ & flags) != 0; }
  bool has_all(unsigned flags) const { return (flags_ & flags) == flags; }
  void set(unsigned flags) { flags_ = static_cast<std::uint16_t>(flags_ | flags); }
  bool set_once(Flag flag, std::string_view value);

  bool take_pseudo(const HpackField& field, SectionKind kind);
  bool take_method(std::string_view value);
  bool take_scheme(std::string_view value);
  bool take_path(std::string_view value);
  bool take_status(std::string_view value);
  Verdict take_length(std::string_view value);
  bool end_request();
  bool end_response();

  static constexpr std::int64_t kNoLength = -1;

  std::int64_t length_ = kNoLength;  // Content-Length.
  std::int64_t received_ = 0;
  std::uint16_t flags_ = 0;
  std::int16_t status_ = 0;  // 0: it has not arrived.
};

}  // namespace spate::http
