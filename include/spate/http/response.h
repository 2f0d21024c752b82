// Response: the response to a Call (call.h).
//
// Ownership: a value; it may be moved, and kept. Views into it are valid while it exists.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "spate/export.h"
#include "spate/http/fields.h"
#include "spate/http/status.h"
#include "spate/http/url.h"
#include "spate/http/version.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

class CallState;

class SPATE_EXPORT Response {
 public:
  Status status() const { return status_; }
  // Returns whether the status is 200 ... 299.
  bool is_success() const { return http::is_success(status_); }
  Version version() const { return version_; }
  // Returns the reason phrase as it was sent; may be empty.
  std::string_view reason() const { return reason_; }

  const Fields& fields() const { return fields_; }
  // Returns the first value of a field; empty if absent.
  std::string_view operator[](FieldName name) const { return fields_[name]; }
  // Returns the value of Content-Length, if present; also for a response to HEAD, which has no
  // body.
  std::optional<std::uint64_t> content_length() const;
  // True if the body was decompressed. Content-Encoding and Content-Length then describe the
  // compressed body.
  bool is_decompressed() const { return is_decompressed_; }

  // Returns the whole body, with Client::fetch(); otherwise empty.
  Bytes body() const { return body_; }
  std::string_view text() const { return text_of(body_); }
  // Returns the trailers of a chunked body, with Client::fetch().
  const Fields& trailers() const { return trailers_; }

  // Returns the URL of the response, after redirects.
  const Url& url() const { return url_; }

 private:
  friend class CallState;
  explicit Response(Url url) : url_(std::move(url)) {}

  Status status_{};
  Version version_{};
  bool is_decompressed_ = false;
  std::string reason_;
  Fields fields_;
  Fields trailers_;
  Buffer content_;
  Bytes body_;  // Points into content_.
  Url url_;
};

}  // namespace spate::http
