#include <algorithm>
#include <cerrno>

#include "http/codec/syntax.h"
#include "http/codec/system_error.h"
#include "http/codec/uri_chars.h"
#include "http/content/multipart.h"
#include "spate/http/form.h"
#include "spate/http/media_type.h"

namespace spate::http {

namespace {

constexpr std::size_t kMostBoundary = 70;
constexpr std::string_view kPartHeadEnd = "\r\n\r\n";

// Decodes the three escapes of browsers.
char browser_escape(std::string_view text) {
  if (text.starts_with("%22")) return '"';
  if (equal_ignoring_case(text.substr(0, 3), "%0d")) return '\r';
  return equal_ignoring_case(text.substr(0, 3), "%0a") ? '\n' : '\0';
}

// Returns the text of a name, quoted or not. A backslash escapes only a quote or a backslash: old
// browsers send paths with single ones.
std::string text_of_name(std::string_view value) {
  if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
  std::string name;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char escaped = browser_escape(value.substr(i));
    const bool is_pair =
        value[i] == '\\' && i + 1 < value.size() && (value[i + 1] == '"' || value[i + 1] == '\\');
    name += escaped != '\0' ? escaped : value[is_pair ? i + 1 : i];
    i += escaped != '\0' ? 2 : is_pair ? 1 : 0;
  }
  return name;
}

}  // namespace

bool is_boundary(std::string_view text) {
  const auto is_good = [](char c) {
    return is_of(c, kUriDigit | kUriAlpha) ||
           std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kMostBoundary && !text.ends_with(' ') &&
         std::ranges::all_of(text, is_good);
}

Result<MultipartDecoder> MultipartDecoder::make(std::string_view content_type,
                                                const MultipartLimits& limits) {
  const auto type = MediaType::parse(content_type);
  if (type && type->is("multipart", "form-data")) {
    const auto boundary = type->parameter("boundary");
    if (boundary && is_boundary(*boundary)) return MultipartDecoder(*boundary, limits);
  }
  return std::unexpected(system_error(EINVAL));
}

MultipartDecoder::MultipartDecoder(std::string_view boundary, const MultipartLimits& limits)
    : limits_(limits), delimiter_("\r\n--") {
  delimiter_ += boundary;
}

MultipartDecoder::Event MultipartDecoder::fail(std::errc error) {
  state_ = State::broken;
  error_ = system_error(static_cast<int>(error));
  return Event::broken;
}

MultipartDecoder::Event MultipartDecoder::next(Bytes& bytes) {
  data_ = {};
  while (!bytes.empty() || state_ == State::broken) {
    Event event = Event::unfinished;
    switch (state_) {
      case State::preamble:
        event = skip_preamble(bytes);
        break;
      case State::body:
        event = scan(bytes);
        break;
      case State::delimiter:
        event = read_tail(bytes);
        break;
      case State::head:
        event = read_head(bytes);
        break;
      case State::epilogue:
        bytes = {};
        break;
      case State::broken:
        return Event::broken;
    }
    if (event != Event::unfinished) return event;
  }
  return Event::unfinished;
}

// Discards everything up to the first delimiter.
MultipartDecoder::Event MultipartDecoder::skip_preamble(Bytes& bytes) {
  const std::size_t before = bytes.size();
  scan(bytes);
  data_ = {};
  preamble_ += before - bytes.size();
  if (preamble_ > limits_.part_head) return fail(std::errc::message_size);
  return Event::unfinished;
}

// Returns how many bytes at the end may be the beginning of a delimiter.
std::size_t MultipartDecoder::size_of_beginning(std::string_view text) const {
  const std::string_view end = text.substr(text.size() - std::min(text.size(), delimiter_.size()));
  const std::size_t last = end.rfind('\r');
  if (last == std::string_view::npos) return 0;
  const std::string_view beginning = end.substr(last);
  return std::string_view(delimiter_).starts_with(beginning) ? beginning.size() : 0;
}

// A delimiter has only one CR, at its beginning. So a partial match that fails cannot contain the
// beginning of another delimiter.
MultipartDecoder::Event MultipartDecoder::scan(Bytes& bytes) {
  if (matched_ > 0) return go_on_matching(bytes);
  const std::string_view text = text_of(bytes);
  const std::size_t found = text.find(delimiter_);
  const std::size_t size =
      found == std::string_view::npos ? text.size() - size_of_beginning(text) : found;
  data_ = bytes.first(size);
  bytes = bytes.subspan(size);
  if (size > 0) return Event::data;
  return go_on_matching(bytes);
}

MultipartDecoder::Event MultipartDecoder::go_on_matching(Bytes& bytes) {
  const std::string_view text = text_of(bytes);
  const std::string_view wanted = std::string_view(delimiter_).substr(matched_);
  const std::size_t most = std::min(text.size(), wanted.size());
  std::size_t same = 0;
  while (same < most && text[same] == wanted[same]) ++same;
  bytes = bytes.subspan(same);
  matched_ += same;
  if (matched_ == delimiter_.size()) return meet_delimiter();
  if (bytes.empty()) return Event::unfinished;
  data_ = bytes_of(std::string_view(delimiter_).substr(borrowed_, matched_ - borrowed_));
  matched_ = borrowed_ = 0;
  return data_.empty() ? Event::unfinished : Event::data;
}

MultipartDecoder::Event MultipartDecoder::meet_delimiter() {
  const bool ends_part = in_part_;
  in_part_ = false;
  matched_ = borrowed_ = 0;
  padding_ = 0;
  tail_ = Tail::start;
  state_ = State::delimiter;
  return ends_part ? Event::part_end : Event::unfinished;
}

// Parses the text after a boundary: "--", or blanks and CRLF.
MultipartDecoder::Event MultipartDecoder::read_tail(Bytes& bytes) {
  while (!bytes.empty() && state_ == State::delimiter) {
    const char c = static_cast<char>(bytes.front());
    bytes = bytes.subspan(1);
    if (++padding_ > limits_.part_head) return fail(std::errc::message_size);
    const Event event = take_tail_byte(c);
    if (event != Event::unfinished) return event;
  }
  return Event::unfinished;
}

MultipartDecoder::Event MultipartDecoder::take_tail_byte(char c) {
  const Tail before = tail_;
  if (before == Tail::dash) {
    if (c != '-') return fail(std::errc::bad_message);
    state_ = State::epilogue;
    return Event::end;
  }
  if (before == Tail::carriage_return) {
    if (c != '\n') return fail(std::errc::bad_message);
    head_.clear();
    state_ = State::head;
    return Event::unfinished;
  }
  if (c == '-' && before == Tail::start)
    tail_ = Tail::dash;
  else if (c == ' ' || c == '\t')
    tail_ = Tail::padding;
  else if (c == '\r')
    tail_ = Tail::carriage_return;
  else
    return fail(std::errc::bad_message);
  return Event::unfinished;
}

MultipartDecoder::Event MultipartDecoder::read_head(Bytes& bytes) {
  while (!bytes.empty()) {
    if (head_.size() == limits_.part_head) return fail(std::errc::message_size);
    head_ += static_cast<char>(bytes.front());
    bytes = bytes.subspan(1);
    if (head_.ends_with(kPartHeadEnd)) return begin_part();
    if (head_ == "\r\n") return fail(std::errc::bad_message);  // No fields.
  }
  return Event::unfinished;
}

MultipartDecoder::Event MultipartDecoder::begin_part() {
  if (parts_++ == limits_.parts) return fail(std::errc::message_size);
  has_disposition_ = has_filename_ = false;
  name_.clear();
  filename_.clear();
  content_type_ = "text/plain";
  const std::string_view head = head_;
  if (!parse_head(head.substr(0, head.size() - 2))) return fail(std::errc::bad_message);
  in_part_ = true;
  state_ = State::body;
  // The CRLF that ends the header section may also begin the delimiter of an empty part.
  matched_ = borrowed_ = 2;
  return Event::part;
}

bool MultipartDecoder::parse_head(std::string_view head) {
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    if (!parse_line(head.substr(0, end))) return false;
    head.remove_prefix(end + 2);
  }
  return has_disposition_;
}

bool MultipartDecoder::parse_line(std::string_view line) {
  const std::string_view name = token_at(line);
  if (name.empty() || !line.substr(name.size()).starts_with(':') || has_control(line)) return false;
  const std::string_view value = trimmed(line.substr(name.size() + 1));
  if (equal_ignoring_case(name, "content-type")) {
    content_type_ = value;
    return true;
  }
  return !equal_ignoring_case(name, "content-disposition") || parse_disposition(value);
}

// RFC 7578 §4.2. filename* is not allowed in forms.
bool MultipartDecoder::parse_disposition(std::string_view value) {
  if (has_disposition_) return false;
  has_disposition_ = true;
  const std::string_view kind = token_at(value);
  if (!equal_ignoring_case(kind, "form-data")) return false;
  value.remove_prefix(kind.size());
  bool has_name = false;
  while (const auto parameter = take_parameter(value)) {
    if (equal_ignoring_case(parameter->name, "name")) {
      if (has_name) return false;
      has_name = true;
      name_ = text_of_name(parameter->value);
    } else if (equal_ignoring_case(parameter->name, "filename")) {
      if (has_filename_) return false;
      has_filename_ = true;
      filename_ = text_of_name(parameter->value);
    }
  }
  return has_name && value.empty();
}

}  // namespace spate::http
