// File: opens, reads and writes files on a thread pool, so that a slow disk does not block a loop.
//
// Ownership: a File owns its descriptor. Each function returns a FileOperation, the handle of one
// operation; destroying it cancels, without a call of `done`. Destroying the File cancels all its
// operations. Its descriptor is closed at once, or when the running operation has ended. Destroying
// the loop also cancels. A File may outlive its loop, and is then only destroyed.
// Buffers belong to the operation, not to the caller, so they need not outlive it.
// Threads: the loop's thread only. The system calls are made on a thread of the pool.
// Callbacks: `done` is called once, from the loop and never from inside the function. Inside it
// everything is allowed, destroying the FileOperation and the File included. Until `done` is
// called, an operation keeps its loop alive. The callback of an open file is called after the next
// operation of that File was passed to the pool.
//
// Order: the operations of one File are performed one at a time, in the order of the calls.
// Operations of several Files, and the functions for paths, are performed at the same time, and end
// in any order.
// Cancelled operations: one that has not begun is not performed. One that has begun may still take
// effect, and the next operation of the File waits for its end. A timeout has the same effect.
// Errors of all functions, besides those of the system: Error::deadline; Error::queue_full and
// EAGAIN of the pool (offload.h); Error::loop_forked; EINVAL for a path with a zero byte; ENOMEM.
// After a fork the operations are the parent's, as the jobs of offload().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/buffer.h"
#include "spate/offload.h"
#include "spate/stat.h"
#include "spate/time.h"

namespace spate {

class File;
class FileCall;
class FileQueue;
class Loop;

// Deleters in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT FileCallEnd {
  void operator()(FileCall* call) const;
};
struct SPATE_EXPORT FileQueueEnd {
  void operator()(FileQueue* queue) const;
};

class [[nodiscard("a discarded FileOperation is cancelled at once")]] FileOperation {
 public:
  FileOperation() = default;
  explicit FileOperation(FileCall* call) : call_(call) {}

  // Prevents the call of `done`.
  void cancel() { call_.reset(); }

 private:
  std::unique_ptr<FileCall, FileCallEnd> call_;
};

enum class FileAccess : std::uint8_t { read, write, read_write };
enum class FileCreation : std::uint8_t {
  never,  // ENOENT if the file does not exist.
  if_missing,
  always_new,  // EEXIST if the file exists.
};

struct FileOptions {
  FileAccess access = FileAccess::read;
  FileCreation creation = FileCreation::never;  // EINVAL with FileAccess::read.
  bool truncate = false;                        // Empties the file. EINVAL with FileAccess::read.
  bool append = false;          // Every write goes to the end of the file, whatever its offset is.
  unsigned permissions = 0666;  // The mode of a new file, without the bits of the umask.
  Nanos timeout{0};             // Limits each operation with its wait for a thread; zero: none.
  ThreadPool* pool = &ThreadPool::shared();  // Must outlive the File.
};

// Options of the functions for paths.
struct PathOptions {
  Nanos timeout{0};  // The wait for a thread included; zero: none.
  ThreadPool* pool = &ThreadPool::shared();
};

using OnFile = Function<void(Result<File>)>;
using OnFileRead = Function<void(Result<Buffer>)>;
using OnFileText = Function<void(Result<std::string>)>;
using OnFileStatus = Function<void(Result<FileStatus>)>;
using OnFileDone = Function<void(std::error_code)>;

class SPATE_EXPORT File {
 public:
  // Opens a file. Never waits for the other end of a pipe. Errors: those of open(2); EISDIR for a
  // directory, ESPIPE for a pipe or a socket, which have no offsets: use a Stream. EAGAIN if
  // another process holds a lease of the file.
  static FileOperation open(Loop& loop, std::string path, const FileOptions& options, OnFile done);
  // Takes ownership of an open descriptor of a file. Uses `timeout` and `pool` of the options only.
  static File adopt(Loop& loop, int fd, const FileOptions& options = {});

  // Makes a File without a file. Only is_open() and fd() may be called.
  File() = default;
  File(File&&) noexcept = default;
  File& operator=(File&&) noexcept = default;
  ~File() = default;

  // True until close() was called.
  bool is_open() const;
  // Returns the descriptor, which stays the File's; -1 after close().
  int fd() const;

  // Reads up to `count` bytes from `offset` on. Fewer bytes mean that the file ends there. An empty
  // Buffer means that `offset` is at the end, or beyond. Memory is allocated as bytes are read,
  // at most a megabyte ahead.
  FileOperation read_at(std::uint64_t offset, std::size_t count, OnFileRead done);
  // As above, into the memory of `reused`, whose bytes are removed first: pass the Buffer of the
  // last read. Allocates only if the bytes were consumed or moved elsewhere, or if `count` is
  // larger than before. The memory belongs to the operation, and returns with the bytes; after an
  // error it is freed. References in `reused` are released inside the call.
  FileOperation read_at(std::uint64_t offset, std::size_t count, Buffer reused, OnFileRead done);
  // Writes all bytes, beginning at `offset`. After an error, or if it was cancelled, a part of them
  // may have been written. Bytes that were appended by reference are released on any thread.
  FileOperation write_at(std::uint64_t offset, Buffer bytes, OnFileDone done);
  // Copies the bytes first.
  FileOperation write_at(std::uint64_t offset, Bytes bytes, OnFileDone done);
  // Returns when all that was written is on the disk (fsync).
  FileOperation sync(OnFileDone done);
  // Returns the status (stat.h).
  FileOperation stat(OnFileStatus done);
  // Cuts the file off, or extends it by zeros.
  FileOperation resize(std::uint64_t size, OnFileDone done);
  // Closes the descriptor after the operations before. Some file systems report the failure of an
  // earlier write only here (EIO, ENOSPC, EDQUOT); the destructor does not report it. If the
  // operation is cancelled, the destructor closes the descriptor.
  FileOperation close(OnFileDone done);

 private:
  struct Opened;
  File(Loop& loop, std::shared_ptr<Opened> opened, const FileOptions& options);
  template <class T, class Work, class Done>
  FileOperation start(Work work, Done done);

  std::shared_ptr<Opened> opened_;
  std::unique_ptr<FileQueue, FileQueueEnd> queue_;
  Nanos timeout_{0};
};

// Reads a whole file. Errors: EFBIG for a file of more than `limit` bytes; those of File::open()
// and read(2).
SPATE_EXPORT FileOperation read_file(Loop& loop, std::string path, std::size_t limit,
                                     OnFileText done, const PathOptions& options = {});

struct WriteFileOptions {
  unsigned permissions = 0666;  // Without the bits of the umask, and whatever an old file has.
  bool sync = false;            // Returns when the file and its name are on the disk.
  Nanos timeout{0};
  ThreadPool* pool = &ThreadPool::shared();
};

// Replaces a file, or makes a new one. The bytes are written to a temporary file in the directory
// of `path`, which is then renamed. So other processes see the old file or the whole new one. The
// temporary file is removed after an error and if the operation is cancelled; a process that is
// killed leaves it, with the name `path`, a dot, 16 digits and ".tmp". A symbolic link at `path` is
// replaced, not followed. Errors: those of open(2), write(2), fsync(2) and rename(2).
SPATE_EXPORT FileOperation write_file(Loop& loop, std::string path, Buffer bytes, OnFileDone done,
                                      const WriteFileOptions& options = {});
// Copies the bytes first.
SPATE_EXPORT FileOperation write_file(Loop& loop, std::string path, Bytes bytes, OnFileDone done,
                                      const WriteFileOptions& options = {});

// Returns whether `name` is that of a file directly in a directory: 1 to 255 bytes without a slash
// or a zero byte, and neither "." nor "..". Check every name that a peer sends before you make a
// path of it: "../../etc/passwd" leaves the directory. Threads: any.
SPATE_EXPORT bool is_file_name(std::string_view name);

// Returns the status of a file. Follows symbolic links.
SPATE_EXPORT FileOperation stat_file(Loop& loop, std::string path, OnFileStatus done,
                                     const PathOptions& options = {});
// Renames a file or a directory, and replaces `to` if it exists. Errors: those of rename(2).
SPATE_EXPORT FileOperation rename_file(Loop& loop, std::string from, std::string to,
                                       OnFileDone done, const PathOptions& options = {});
// Removes a file. Errors: those of unlink(2).
SPATE_EXPORT FileOperation remove_file(Loop& loop, std::string path, OnFileDone done,
                                       const PathOptions& options = {});

}  // namespace spate
