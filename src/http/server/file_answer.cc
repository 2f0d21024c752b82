#include "http/server/file_answer.h"

#include <array>
#include <charconv>
#include <utility>

#include "spate/http/date.h"
#include "spate/loop.h"

namespace spate::http {

namespace {

// What is read and sent with the head. Above it sendfile() costs less than the copy.
constexpr std::size_t kMostRead = 8 * 1024;

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 16> digits;
  char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return std::string(digits.data(), end);
}

std::string etag_of(const sys::FileStatus& status) {
  const auto time = static_cast<std::uint64_t>(status.seconds) * 1'000'000'000 +
                    static_cast<std::uint64_t>(status.nanoseconds);
  return '"' + hexadecimal(status.size) + '-' + hexadecimal(time) + '-' +
         hexadecimal(status.inode) + '"';
}

// A field that is a list may be in several lines. `room` keeps them when they are joined.
std::optional<std::string_view> list_of(const FieldsView& fields, FieldId id, std::string& room) {
  if (fields.count(id) <= 1) return fields.find(id);
  for (const std::string_view value : fields.all(id)) {
    if (!room.empty()) room += ',';
    room += value;
  }
  return room;
}

// Between the parts of an answer: not to be found in a file but by somebody who knows the moment.
std::string boundary_of(const std::string& etag, Nanos now) {
  std::uint64_t hash = static_cast<std::uint64_t>(now.count()) ^ 0xcbf29ce484222325;
  for (const char c : etag) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return "spate-" + hexadecimal(hash) + hexadecimal(hash * 0x9e3779b97f4a7c15);
}

}  // namespace

FileAnswer::FileAnswer(Exchange& exchange, Fields& fields, OpenFile& file,
                       std::string_view content_type)
    : exchange_(exchange),
      fields_(fields),
      file_(file),
      content_type_(content_type),
      etag_(etag_of(file.status)),
      now_(std::chrono::floor<std::chrono::seconds>(exchange.loop().wall_now())) {
  const std::chrono::sys_seconds written{std::chrono::seconds(file.status.seconds)};
  if (written < now_) last_modified_ = written;  // What changes now may change again this second.
}

Verdict FileAnswer::verdict() const {
  const FieldsView& asked = exchange_.request().fields();
  std::string match;
  std::string none_match;
  const Conditions conditions{.if_match = list_of(asked, FieldId::if_match, match),
                              .if_none_match = list_of(asked, FieldId::if_none_match, none_match),
                              .if_modified_since = asked.find(FieldId::if_modified_since),
                              .if_unmodified_since = asked.find(FieldId::if_unmodified_since),
                              .if_range = asked.find(FieldId::if_range)};
  const Representation present{.etag = etag_, .last_modified = last_modified_};
  return evaluate(exchange_.request().method(), conditions, present, now_);
}

void FileAnswer::send() {
  const Verdict is = verdict();
  if (is == Verdict::precondition_failed) {
    exchange_.respond(Status::precondition_failed);
    return;
  }
  fields_.set(FieldId::etag, etag_);
  char date[kDateSize];
  if (last_modified_) fields_.set(FieldId::last_modified, format_date(*last_modified_, date));
  if (is == Verdict::not_modified) {
    exchange_.respond(Status::not_modified, fields_);
    return;
  }
  fields_.set(FieldId::accept_ranges, "bytes");
  const std::string_view range = exchange_.request()[FieldId::range];
  const bool is_whole = is == Verdict::ignore_range || exchange_.request().method() != Method::get;
  if (is_whole || range.empty()) return send_whole();
  send_by_range(range);
}

void FileAnswer::send_by_range(std::string_view range) {
  const Ranges asked = Ranges::parse(range, size());
  char text[kMostContentRange];
  if (asked.state() == Ranges::State::none) return send_whole();
  if (asked.state() == Ranges::State::unsatisfiable) {
    Fields fields;
    fields.set(FieldId::content_range, format_unsatisfied_range(size(), text));
    exchange_.respond(Status::range_not_satisfiable, fields);
    return;
  }
  if (asked.ranges().size() > 1) return send_ranges(asked.ranges());
  const ByteRange only = asked.ranges().front();
  fields_.set(FieldId::content_range, format_content_range(only, size(), text));
  fields_.set(FieldId::content_type, content_type_);
  send_part(Status::partial_content, only);
}

void FileAnswer::send_whole() {
  fields_.set(FieldId::content_type, content_type_);
  if (size() != 0) return send_part(Status::ok, {.first = 0, .last = size() - 1});
  exchange_.respond(Status::ok, fields_);
}

// A file that becomes shorter meanwhile resets the connection: the rest cannot be made up.
void FileAnswer::send_part(Status status, ByteRange part) {
  const bool is_read = part.size() <= kMostRead && exchange_.request().method() == Method::get;
  if (!is_read) {
    if (exchange_.begin(status, fields_, part.size()) && send_file(std::move(file_.file), part))
      exchange_.end();
    return;
  }
  std::array<std::byte, kMostRead> room;
  const long count = sys::read_at(file_.file.get(), room.data(), part.size(),
                                  static_cast<std::int64_t>(part.first));
  if (count == static_cast<long>(part.size())) {
    exchange_.respond(status, fields_, Bytes(room).first(part.size()));
  } else {
    exchange_.respond(Status::internal_server_error, "the file cannot be read\n");
  }
}

// The Exchange takes the descriptor over.
bool FileAnswer::send_file(sys::Descriptor file, ByteRange part) {
  if (!file.is_open() || exchange_.send_file(file.get(), part.first, part.size())) {
    exchange_.abort();
    return false;
  }
  file.release();
  return true;
}

void FileAnswer::send_ranges(std::span<const ByteRange> ranges) {
  const std::string boundary = boundary_of(etag_, exchange_.loop().now());
  const std::string end = "\r\n--" + boundary + "--\r\n";
  std::array<std::string, Ranges::kMost> heads;
  std::uint64_t total = end.size();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    char text[kMostContentRange];
    heads[i] = (i == 0 ? "--" : "\r\n--") + boundary + "\r\nContent-Type: ";
    heads[i] += content_type_;
    heads[i] += "\r\nContent-Range: ";
    heads[i] += format_content_range(ranges[i], size(), text);
    heads[i] += "\r\n\r\n";
    total += heads[i].size() + ranges[i].size();
  }
  fields_.set(FieldId::content_type, "multipart/byteranges; boundary=" + boundary);
  if (!exchange_.begin(Status::partial_content, fields_, total)) return;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const bool is_sent = exchange_.write(heads[i]) &&
                         send_file(sys::Descriptor(sys::duplicate(file_.file.get())), ranges[i]);
    if (!is_sent) return;
  }
  exchange_.write(end);
  exchange_.end();
}

}  // namespace spate::http
