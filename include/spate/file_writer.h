// FileWriter: writes a file from pieces that arrive over time, and puts it in place when it is
// complete. For the body of an HTTP request, see receive_to_file() (http/receive_file.h).
//
// The pieces are written to a temporary file, which finish() renames, as write_file() does
// (file.h). Ownership: a handle. Destroying it before the callback of finish() was called removes
// the temporary file, and no callback follows. It may outlive the loop, and is then only destroyed.
// Threads: the loop's thread only. The system calls are made on a thread of the pool.
// Callbacks: called by the loop, never from inside a function of the FileWriter. Inside them
// everything is allowed, destroying the FileWriter included. While bytes are being written, the
// loop is kept alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include "spate/export.h"
#include "spate/file.h"
#include "spate/function.h"
#include "spate/net/bytes.h"

namespace spate {

class FileWriting;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT FileWritingEnd {
  void operator()(FileWriting* writing) const;
};

class SPATE_EXPORT FileWriter {
 public:
  // The most bytes that wait for the disk before is_full() is true.
  static constexpr std::size_t kFull = std::size_t{1} << 20;

  // Makes a FileWriter without a file. It may only be destroyed, or assigned to.
  FileWriter() = default;
  // The file is created when the first bytes are written, or by finish(). `on_progress` is called
  // when is_full() is no longer true, and when error() has a value. WriteFileOptions::timeout
  // limits each piece.
  FileWriter(Loop& loop, std::string path, Function<void()> on_progress,
             const WriteFileOptions& options = {});

  // Copies the bytes, and writes them as soon as the pieces before are written. After an error they
  // are dropped.
  void write(Bytes bytes);
  // True while kFull bytes or more wait for the disk. Stop writing then, or memory grows.
  bool is_full() const;
  // Returns the first error, after which nothing is written.
  std::error_code error() const;
  // Returns the number of bytes that were passed to write().
  std::uint64_t size() const;
  // Calls `done` when the file is in place, or with the first error. No write() may follow.
  void finish(OnFileDone done);

 private:
  std::unique_ptr<FileWriting, FileWritingEnd> writing_;
};

}  // namespace spate
