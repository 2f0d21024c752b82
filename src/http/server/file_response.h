// FileResponse: responds to a request with a file, with ranges of it, or with a status such as 304.
// Never waits for a disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/server/file_root.h"
#include "http/server/file_sender.h"
#include "spate/http/conditional.h"
#include "spate/http/exchange.h"
#include "spate/http/range.h"
#include "spate/net/buffer.h"
#include "spate/offload.h"

namespace spate::http {

// A file to be sent: its content, or the open file.
struct FileToSend {
  std::string_view type;
  const sys::FileStatus& status;
  const Buffer* content = nullptr;  // In one piece. Otherwise `file`, which is moved from.
  sys::Descriptor* file = nullptr;
  const std::shared_ptr<const FileRoot>& root;
  ThreadPool& pool;
};

class FileResponse {
 public:
  // `fields` has the fields that describe the file; all arguments must outlive send().
  FileResponse(Exchange& exchange, Fields& fields, const FileToSend& file);
  void send();

 private:
  Verdict verdict() const;
  void send_part(Status status, ByteRange part);
  void send_from_memory(Status status, ByteRange part);
  void send_whole();
  void send_ranges(std::span<const ByteRange> ranges);
  void send_by_range(std::string_view range);
  void send_ranges_from_memory(const std::vector<FileSender::Part>& parts, std::string_view end);
  void send_from_file(std::vector<FileSender::Part> parts, std::string end);
  std::uint64_t size() const { return file_.status.size; }

  Exchange& exchange_;
  Fields& fields_;
  const FileToSend& file_;
  std::string etag_;
  std::chrono::sys_seconds now_;
  std::optional<std::chrono::sys_seconds> last_modified_;
};

}  // namespace spate::http
