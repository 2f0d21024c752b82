// FileResponse: responds to a request with a file, with ranges of it, or with a status such as 304.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/server/file_root.h"
#include "spate/http/conditional.h"
#include "spate/http/exchange.h"
#include "spate/http/range.h"

namespace spate::http {

class FileResponse {
 public:
  // `fields` has the fields that describe the file; all arguments must outlive send().
  FileResponse(Exchange& exchange, Fields& fields, OpenFile& file, std::string_view content_type);
  void send();

 private:
  Verdict verdict() const;
  void send_part(Status status, ByteRange part);
  void send_whole();
  void send_ranges(std::span<const ByteRange> ranges);
  void send_by_range(std::string_view range);
  bool send_file(sys::Descriptor file, ByteRange part);
  std::uint64_t size() const { return file_.status.size; }

  Exchange& exchange_;
  Fields& fields_;
  OpenFile& file_;
  std::string_view content_type_;
  std::string etag_;
  std::chrono::sys_seconds now_;
  std::optional<std::chrono::sys_seconds> last_modified_;
};

}  // namespace spate::http
