// The functions of body.h.
#include "spate/http/body.h"

#include <utility>

#include "spate/http/media_type.h"
#include "sys/random.h"

namespace spate::http {

namespace {

bool set_type(CallOptions& options, std::string_view type) {
  if (options.method == Method::get) options.method = Method::post;
  return MediaType::parse(type) && options.fields.set(FieldId::content_type, type);
}

}  // namespace

bool set_body(CallOptions& options, std::string_view text, std::string_view type) {
  Buffer content;
  if (!set_type(options, type) || !content.append(text)) return false;
  options.content = std::move(content);
  return true;
}

bool set_form(CallOptions& options,
              std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
  std::string form;
  for (const auto& [name, value] : pairs) append_pair(form, name, value);
  return set_body(options, form, "application/x-www-form-urlencoded");
}

Result<std::string> random_boundary() { return sys::random_hex<16>(); }

bool set_multipart(CallOptions& options, const MultipartBuilder& form, Buffer body) {
  options.content = std::move(body);
  return set_type(options, form.content_type());
}

// ---- MultipartUpload

MultipartUpload::MultipartUpload(std::string_view boundary)
    : form_(head_, boundary), tail_("\r\n--" + std::string(boundary) + "--\r\n") {}

bool MultipartUpload::end_with_file(std::string_view name, std::string_view filename,
                                    std::string_view type, std::uint64_t size) {
  size_ = size;
  return size < UINT64_MAX / 2 && form_.begin_file(name, filename, type);
}

bool MultipartUpload::set(CallOptions& options) {
  options.upload = head_.size() + size_ + tail_.size();
  return set_type(options, form_.content_type());
}

bool MultipartUpload::begin(Call& call) { return call.write(std::move(head_)); }
bool MultipartUpload::end(Call& call) { return call.write(tail_) && call.end(); }

}  // namespace spate::http
