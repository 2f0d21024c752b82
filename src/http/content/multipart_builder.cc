#include "base/hex.h"
#include "http/codec/syntax.h"
#include "http/codec/uri_chars.h"
#include "http/content/multipart.h"
#include "spate/assert.h"
#include "spate/http/form.h"
#include "spate/http/media_type.h"

namespace spate::http {

namespace {

void append_form_text(std::string& target, std::string_view text) {
  for (const char c : text) {
    if (c == ' ')
      target += '+';
    else if (c == '*' || (c != '~' && is_of(c, kUnreserved)))
      target += c;
    else
      append_hex(target += '%', static_cast<unsigned char>(c), kUpperHexDigits);
  }
}

void append_quoted(std::string& target, std::string_view text) {
  target += '"';
  for (const char c : text) {
    if (c == '"')
      target += "%22";
    else if (c == '\r')
      target += "%0D";
    else if (c == '\n')
      target += "%0A";
    else if (c == '\\')
      target += "\\\\";
    else
      target += c;
  }
  target += '"';
}

bool is_sendable(std::string_view name) {
  for (const char c : name) {
    if (!is_in(c, kValue) && c != '\r' && c != '\n') return false;
  }
  return true;
}

}  // namespace

void append_pair(std::string& form, std::string_view name, std::string_view value) {
  if (!form.empty()) form += '&';
  append_form_text(form, name);
  form += '=';
  append_form_text(form, value);
}

MultipartBuilder::MultipartBuilder(Buffer& target, std::string_view boundary)
    : target_(target), boundary_(boundary) {
  SPATE_ASSERT(is_boundary(boundary), "a boundary is 1 to 70 letters, digits and '()+_,-./:=?");
}

bool MultipartBuilder::begin_part(std::string_view name, std::string_view rest) {
  if (!is_sendable(name)) return false;
  std::string head(has_parts_ ? "\r\n--" : "--");
  head.append(boundary_).append("\r\nContent-Disposition: form-data; name=");
  append_quoted(head, name);
  has_parts_ = true;
  return target_.append(head.append(rest).append("\r\n\r\n"));
}

bool MultipartBuilder::add(std::string_view name, std::string_view value) {
  if (value.contains("--" + boundary_)) return false;
  return begin_part(name, {}) && target_.append(value);
}

bool MultipartBuilder::begin_file(std::string_view name, std::string_view filename,
                                  std::string_view type) {
  if (!is_sendable(filename) || !MediaType::parse(type)) return false;
  std::string rest("; filename=");
  append_quoted(rest, filename);
  return begin_part(name, rest.append("\r\nContent-Type: ").append(type));
}

bool MultipartBuilder::end() {
  return target_.append(
      std::string(has_parts_ ? "\r\n--" : "--").append(boundary_).append("--\r\n"));
}

std::string MultipartBuilder::content_type() const {
  return "multipart/form-data; boundary=\"" + boundary_ + "\"";
}

}  // namespace spate::http
