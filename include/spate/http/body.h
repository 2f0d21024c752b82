// Bodies of requests: functions that set CallOptions::content and Content-Type.
//
//   http::CallOptions options;
//   http::set_json(options, R"({"name": "ada"})");
//   call = client.fetch("http://example.org/users", on_response, std::move(options));
//
// A method GET becomes POST; any other stays. They return false when memory runs out, or if the
// type or the form cannot be sent; the options must not be used then. Any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "spate/export.h"
#include "spate/http/call.h"
#include "spate/http/form.h"
#include "spate/net/buffer.h"

namespace spate::http {

// Copies the text. `type` is the value of Content-Type.
SPATE_EXPORT bool set_body(CallOptions& options, std::string_view text, std::string_view type);
inline bool set_text(CallOptions& options, std::string_view text) {
  return set_body(options, text, "text/plain; charset=utf-8");
}
inline bool set_json(CallOptions& options, std::string_view json) {
  return set_body(options, json, "application/json");
}
// Formats the pairs as application/x-www-form-urlencoded.
SPATE_EXPORT bool set_form(
    CallOptions& options,
    std::initializer_list<std::pair<std::string_view, std::string_view>> pairs);

// Returns 32 random characters for a MultipartBuilder, which no file has by chance. Errors: those
// of getrandom().
SPATE_EXPORT Result<std::string> random_boundary();
// Sets a body that a MultipartBuilder has formatted and ended.
SPATE_EXPORT bool set_multipart(CallOptions& options, const MultipartBuilder& form, Buffer body);

// A form whose last part is a file that is sent in pieces, because it is too long for memory. Its
// size must be known, so that the request has a Content-Length:
//
//   MultipartUpload upload(must(random_boundary()));
//   upload.form().add("title", "holiday");
//   upload.end_with_file("film", "film.mp4", "video/mp4", size);
//   upload.set(options);
//   call = client.send(url, handler, std::move(options));
//   ...
//   void on_upload() override {
//     upload.begin(call);        // Then call.write() exactly `size` bytes,
//     ...
//     upload.end(call);          // and end.
class SPATE_EXPORT MultipartUpload {
 public:
  // `boundary`: as for MultipartBuilder.
  explicit MultipartUpload(std::string_view boundary);
  MultipartUpload(const MultipartUpload&) = delete;
  MultipartUpload& operator=(const MultipartUpload&) = delete;

  // Adds the parts before the file.
  MultipartBuilder& form() { return form_; }
  bool end_with_file(std::string_view name, std::string_view filename, std::string_view type,
                     std::uint64_t size);
  // Sets CallOptions::upload and Content-Type.
  bool set(CallOptions& options);

  // Write the bytes before and after the file. False: see Call::write().
  bool begin(Call& call);
  bool end(Call& call);

 private:
  Buffer head_;
  MultipartBuilder form_;
  std::string tail_;
  std::uint64_t size_ = 0;  // That of the file.
};

}  // namespace spate::http
