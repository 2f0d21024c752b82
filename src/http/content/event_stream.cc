#include "spate/http/event_stream.h"

#include <algorithm>
#include <charconv>

#include "http/codec/syntax.h"

namespace spate::http {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kLineEnds = "\r\n";
constexpr std::size_t kMostNumber = 20;

bool is_one_line(std::string_view text) {
  return text.find_first_of(kLineEnds) == std::string_view::npos;
}

// Removes and returns the first line. A text that ends with a line end has an empty line after it.
std::string_view take_text_line(std::string_view& text, bool& is_last) {
  const std::size_t size = std::min(text.find_first_of(kLineEnds), text.size());
  const std::string_view line = text.substr(0, size);
  is_last = size == text.size();
  text.remove_prefix(size);
  if (!is_last) text.remove_prefix(text.starts_with("\r\n") ? 2 : 1);
  return line;
}

std::size_t count_text_lines(std::string_view text) {
  std::size_t count = 0;
  for (bool is_last = false; !is_last; ++count) take_text_line(text, is_last);
  return count;
}

// Writes into a buffer that is known to be large enough.
struct EventWriter {
  char* at;

  void add(std::string_view text) { at = std::ranges::copy(text, at).out; }
  void add_line(std::string_view field, std::string_view value) {
    add(field);
    add(value);
    add("\n");
  }
  void add_lines(std::string_view field, std::string_view text) {
    for (bool is_last = false; !is_last;) add_line(field, take_text_line(text, is_last));
  }
  void add_number(std::string_view field, std::int64_t number) {
    char digits[kMostNumber];
    add_line(field, {digits, std::to_chars(digits, digits + kMostNumber, number).ptr});
  }
};

// Calls `write` with a writer for at least `size` bytes of the Buffer.
template <class Write>
bool write_event(Buffer& target, std::size_t size, Write write) {
  const std::span<std::byte> room = target.reserve(size);
  if (room.empty()) return false;
  char* const start = reinterpret_cast<char*>(room.data());
  EventWriter writer{start};
  write(writer);
  target.commit(static_cast<std::size_t>(writer.at - start));
  return true;
}

constexpr std::string_view kDataField = "data: ";
constexpr std::string_view kEventField = "event: ";
constexpr std::string_view kIdField = "id: ";
constexpr std::string_view kRetryField = "retry: ";
// In milliseconds: as many as Nanos can represent, so that no program's conversion overflows.
constexpr std::uint64_t kMostRetry = INT64_MAX / 1'000'000;
constexpr std::string_view kCommentField = ": ";

}  // namespace

bool append_event(const OutgoingEvent& event, Buffer& target) {
  const std::string_view id = event.id.value_or("");
  if (!is_one_line(event.event) || !is_one_line(id) || id.contains('\0')) return false;
  const std::size_t names = kEventField.size() + kIdField.size() + kRetryField.size() + kMostNumber;
  const std::size_t lines = (kDataField.size() + 1) * count_text_lines(event.data);
  const std::size_t size = names + 4 + event.event.size() + id.size() + event.data.size() + lines;
  return write_event(target, size, [&](EventWriter& writer) {
    if (!event.event.empty()) writer.add_line(kEventField, event.event);
    if (event.id) writer.add_line(kIdField, id);
    if (event.retry)
      writer.add_number(kRetryField, std::max<std::int64_t>(event.retry->count(), 0));
    writer.add_lines(kDataField, event.data);
    writer.add("\n");
  });
}

bool append_event_comment(std::string_view text, Buffer& target) {
  const std::size_t lines = (kCommentField.size() + 1) * count_text_lines(text);
  return write_event(target, text.size() + lines + 1, [text](EventWriter& writer) {
    writer.add_lines(kCommentField, text);
    writer.add("\n");
  });
}

EventDecoder::State EventDecoder::next(Bytes& bytes) {
  if (is_shown_) forget_event();
  while (!bytes.empty() && !is_broken_) {
    if (skip_byte(static_cast<char>(bytes.front()))) {
      bytes = bytes.subspan(1);
      continue;
    }
    const std::string_view text = text_of(bytes);
    const std::size_t size = std::min(text.find_first_of(kLineEnds), text.size());
    is_broken_ = size > limit_ - line_.size();
    if (is_broken_) break;
    line_ += text.substr(0, size);
    bytes = bytes.subspan(std::min(size + 1, bytes.size()));
    if (size == text.size()) return State::unfinished;
    after_return_ = text[size] == '\r';
    is_shown_ = take_line();
    if (is_shown_) return State::event;
  }
  return is_broken_ ? State::broken : State::unfinished;
}

// Skips the LF of a CRLF, and the byte order mark at the front. A prefix of the mark that turns out
// to be text is added to the line.
bool EventDecoder::skip_byte(char c) {
  const bool is_rest_of_end = after_return_ && c == '\n';
  after_return_ = false;
  if (is_rest_of_end) return true;
  if (marked_ == kByteOrderMark.size()) return false;
  if (c == kByteOrderMark[marked_]) {
    ++marked_;
    return true;
  }
  line_ = kByteOrderMark.substr(0, marked_);
  marked_ = kByteOrderMark.size();
  return false;
}

// Processes a line. True if an event is complete.
bool EventDecoder::take_line() {
  const std::string_view line = line_;
  if (line.empty()) return end_event();
  const std::size_t colon = std::min(line.find(':'), line.size());
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  take_field(line.substr(0, colon), value);
  line_.clear();
  return false;
}

void EventDecoder::take_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    is_broken_ = is_broken_ || data_.size() + value.size() + 1 > limit_;
    if (has_data_) data_ += '\n';
    if (!is_broken_) data_ += value;
    has_data_ = true;
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id") {
    if (!value.contains('\0')) id_ = value;
  } else if (name == "retry") {
    const auto number = parse_number(value, Overflow::saturates);
    if (number) retry_ = std::chrono::milliseconds(std::min<std::uint64_t>(*number, kMostRetry));
  }
}

// An event without data is not reported, but its id counts.
bool EventDecoder::end_event() {
  last_id_ = id_;
  if (has_data_) return true;
  forget_event();
  return false;
}

void EventDecoder::forget_event() {
  data_.clear();
  type_.clear();
  has_data_ = is_shown_ = false;
}

void EventDecoder::reset() {
  forget_event();
  line_.clear();
  id_ = last_id_;
  marked_ = 0;
  after_return_ = is_broken_ = false;
}

}  // namespace spate::http
