#include "http/server/file_response.h"

#include <array>
#include <charconv>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "http/server/exchange_state.h"
#include "spate/http/date.h"
#include "spate/loop.h"
#include "sys/random.h"

namespace spate::http {

namespace {

// Contents up to this size are copied and sent with the header section. Larger ones are sent from
// the cache's memory.
constexpr std::size_t kMostCopied = 8 * 1024;

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 16> digits;
  char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return std::string(digits.data(), end);
}

// The inode is not included: it differs between servers with the same files, and should not be
// disclosed.
std::string etag_of(const sys::FileStatus& status) {
  const auto time = static_cast<std::uint64_t>(status.seconds) * 1'000'000'000 +
                    static_cast<std::uint64_t>(status.nanoseconds);
  return '"' + hexadecimal(status.size) + '-' + hexadecimal(time) + '"';
}

// A list field may be in several lines. `room` stores them when they are joined.
std::optional<std::string_view> list_of(const FieldsView& fields, FieldId id, std::string& room) {
  if (fields.count(id) <= 1) return fields.find(id);
  for (const std::string_view value : fields.all(id)) {
    if (!room.empty()) room += ',';
    room += value;
  }
  return room;
}

// Returns a boundary between parts. It is random, so that no file can contain it on purpose.
// Empty if the kernel has no random bytes.
std::string random_boundary() { return sys::random_hex<16>().value_or(""); }

}  // namespace

FileResponse::FileResponse(Exchange& exchange, Fields& fields, const FileToSend& file)
    : exchange_(exchange),
      fields_(fields),
      file_(file),
      etag_(etag_of(file.status)),
      now_(std::chrono::floor<std::chrono::seconds>(exchange.loop().wall_now())) {
  const std::chrono::sys_seconds written{std::chrono::seconds(file.status.seconds)};
  // A file that changed within this second may change again in it.
  if (written < now_) last_modified_ = written;
}

Verdict FileResponse::verdict() const {
  const FieldsView& fields = exchange_.request().fields();
  std::string match;
  std::string none_match;
  const Conditions conditions{.if_match = list_of(fields, FieldId::if_match, match),
                              .if_none_match = list_of(fields, FieldId::if_none_match, none_match),
                              .if_modified_since = fields.find(FieldId::if_modified_since),
                              .if_unmodified_since = fields.find(FieldId::if_unmodified_since),
                              .if_range = fields.find(FieldId::if_range)};
  const Representation present{.etag = etag_, .last_modified = last_modified_};
  return evaluate(exchange_.request().method(), conditions, present, now_);
}

void FileResponse::send() {
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

void FileResponse::send_by_range(std::string_view range) {
  const Ranges requested = Ranges::parse(range, size());
  char text[kMostContentRange];
  if (requested.state() == Ranges::State::none) return send_whole();
  if (requested.state() == Ranges::State::unsatisfiable) {
    Fields fields;
    fields.set(FieldId::content_range, format_unsatisfied_range(size(), text));
    exchange_.respond(Status::range_not_satisfiable, fields);
    return;
  }
  if (requested.ranges().size() > 1) return send_ranges(requested.ranges());
  const ByteRange only = requested.ranges().front();
  fields_.set(FieldId::content_range, format_content_range(only, size(), text));
  fields_.set(FieldId::content_type, file_.type);
  send_part(Status::partial_content, only);
}

void FileResponse::send_whole() {
  fields_.set(FieldId::content_type, file_.type);
  if (size() != 0) return send_part(Status::ok, {.first = 0, .last = size() - 1});
  exchange_.respond(Status::ok, fields_);
}

void FileResponse::send_part(Status status, ByteRange part) {
  if (exchange_.request().method() != Method::get) {
    if (exchange_.begin(status, fields_, part.size())) exchange_.end();
    return;
  }
  if (file_.content != nullptr) return send_from_memory(status, part);
  if (!exchange_.begin(status, fields_, part.size())) return;
  std::vector<FileSender::Part> parts;
  parts.push_back({.head = {}, .range = part});
  send_from_file(std::move(parts), {});
}

void FileResponse::send_from_memory(Status status, ByteRange part) {
  const auto offset = static_cast<std::size_t>(part.first);
  const auto count = static_cast<std::size_t>(part.size());
  if (count <= kMostCopied) {
    exchange_.respond(status, fields_, file_.content->front().subspan(offset, count));
    return;
  }
  Buffer bytes;
  if (bytes.append_shared(*file_.content, offset, count))
    exchange_.respond(status, fields_, std::move(bytes));
  else
    exchange_.respond(Status::service_unavailable);
}

void FileResponse::send_ranges(std::span<const ByteRange> ranges) {
  const std::string boundary = random_boundary();
  if (boundary.empty()) return send_whole();  // RFC 9110 section 14.2: a Range may be ignored.
  const std::string end = "\r\n--" + boundary + "--\r\n";
  std::vector<FileSender::Part> parts;
  std::uint64_t total = end.size();
  for (const ByteRange& range : ranges) {
    char text[kMostContentRange];
    std::string head = (parts.empty() ? "--" : "\r\n--") + boundary + "\r\nContent-Type: ";
    head.append(file_.type).append("\r\nContent-Range: ");
    head.append(format_content_range(range, size(), text)).append("\r\n\r\n");
    total += head.size() + range.size();
    parts.push_back({.head = std::move(head), .range = range});
  }
  fields_.set(FieldId::content_type, "multipart/byteranges; boundary=" + boundary);
  if (!exchange_.begin(Status::partial_content, fields_, total)) return;
  if (file_.content != nullptr) return send_ranges_from_memory(parts, end);
  send_from_file(std::move(parts), end);
}

void FileResponse::send_ranges_from_memory(const std::vector<FileSender::Part>& parts,
                                           std::string_view end) {
  Buffer all;
  bool has_memory = true;
  for (const FileSender::Part& part : parts) {
    has_memory = has_memory && all.append(part.head) &&
                 all.append_shared(*file_.content, static_cast<std::size_t>(part.range.first),
                                   static_cast<std::size_t>(part.range.size()));
  }
  if (has_memory && all.append(end) && exchange_.write(std::move(all)))
    exchange_.end();
  else
    exchange_.abort();
}

void FileResponse::send_from_file(std::vector<FileSender::Part> parts, std::string end) {
  auto source = std::make_shared<FileSender::Source>(file_.root, std::move(*file_.file));
  ExchangeState& state = *ExchangeState::of(exchange_);
  std::unique_ptr<FileSender> sender(new (std::nothrow) FileSender(
      std::move(exchange_), std::move(source), std::move(parts), std::move(end), file_.pool));
  if (sender == nullptr) return;
  FileSender& sending = *sender;
  state.own(std::move(sender));
  sending.go_on();
}

}  // namespace spate::http
