// look_up(): finds the file for a path, and reads it if it is small. It runs on the loop's thread,
// as long as it need not wait for a disk, and otherwise on a thread of the pool.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/server/file_root.h"
#include "http/server/listing.h"
#include "spate/error.h"
#include "spate/net/buffer.h"

namespace spate::http {

// The content codings of precompressed files, in the client's order. Empty at the end.
using Codings = std::array<std::string_view, 2>;

struct FileQuery {
  std::string path;        // Normalized, decoded, with the leading slash.
  std::string index;       // Empty: none.
  bool has_slash = false;  // The path of the request ends with a slash.
  bool lists = false;      // Lists directories that have no index.
  Hidden hidden = Hidden::left_out;
  Codings codings{};           // Neighbours with these may be sent in place of the file.
  std::uint64_t max_read = 0;  // Larger files are only opened.
  // A file whose content the caller has: it is not read again.
  std::optional<sys::FileStatus> known{};
};

struct FoundFile {
  enum class Kind : std::uint8_t {
    file,
    listing,
    needs_slash,  // A directory, requested without a trailing slash.
  };
  Kind kind = Kind::file;
  std::string_view type{};    // The content type; never destroyed.
  std::string_view coding{};  // Empty: none.
  sys::FileStatus status{};
  sys::Descriptor file{};
  bool has_content = false;  // `content` is the file, and `file` is closed.
  bool is_known = false;     // The file is that of the query.
  Buffer content{};          // In one piece.
  std::string page{};        // The listing.
};

// Returns EAGAIN with Waiting::never if it has to wait. Other errors: those of
// openat2(2); ENOENT also for a pipe, a socket or a device; EACCES for a directory that is not
// listed; EIO if the file became shorter; ENOMEM.
Result<FoundFile> look_up(const FileRoot& root, const FileQuery& query, Waiting waiting);

}  // namespace spate::http
