// File, and the functions for paths: each makes a FileCall of a function of file_work.h.
#include "spate/file.h"

#include <cerrno>
#include <memory>
#include <utility>

#include "core/ownership.h"
#include "file/file_call.h"
#include "file/file_work.h"
#include "spate/assert.h"
#include "sys/descriptor.h"
#include "sys/file_io.h"

namespace spate {

namespace {

std::error_code no_memory() { return sys::error_code(-ENOMEM); }

}  // namespace

// The descriptor, shared with the operation that is running.
struct File::Opened {
  explicit Opened(sys::Descriptor file) : number(file.get()), descriptor(std::move(file)) {}

  const int number;
  bool is_closed = false;  // The loop's thread only.
  // The thread of the running operation only; between operations, the loop's.
  sys::Descriptor descriptor;
};

File::File(Loop& loop, std::shared_ptr<Opened> opened, const FileOptions& options)
    : opened_(std::move(opened)),
      queue_(make_file_queue(loop, *options.pool)),
      timeout_(options.timeout) {}

FileOperation File::open(Loop& loop, std::string path, const FileOptions& options, OnFile done) {
  using Outcome = Result<sys::Descriptor>;
  return start_file_call<Outcome>(
      loop, options,
      [path = std::move(path), options](const Cancelled&) {
        return file_work::open(path, options);
      },
      [&loop, options, done = std::move(done)](Outcome file) mutable {
        if (!file) return done(std::unexpected(file.error()));
        done(File(loop, std::make_shared<Opened>(*std::move(file)), options));
      });
}

File File::adopt(Loop& loop, int fd, const FileOptions& options) {
  return {loop, std::make_shared<Opened>(sys::Descriptor(fd)), options};
}

bool File::is_open() const { return opened_ != nullptr && !opened_->is_closed; }
int File::fd() const { return is_open() ? opened_->number : -1; }

// Calls `work` with the descriptor.
template <class T, class Work, class Done>
FileOperation File::start(Work work, Done done) {
  SPATE_ASSERT(queue_ != nullptr, "open the File, or adopt() a descriptor");
  SPATE_ASSERT(may_touch(queue_->loop()), kWrongThread);
  auto* call = new FileCallOf<T>(
      queue_->loop(), timeout_,
      [opened = opened_, work = std::move(work)](const Cancelled& is_cancelled) mutable {
        return work(opened->descriptor, is_cancelled);
      },
      std::move(done));
  call->FileCall::start(*queue_);
  return FileOperation(call);
}

FileOperation File::read_at(std::uint64_t offset, std::size_t count, OnFileRead done) {
  return read_at(offset, count, {}, std::move(done));
}

FileOperation File::read_at(std::uint64_t offset, std::size_t count, Buffer reused,
                            OnFileRead done) {
  reused.recycle();
  return start<Result<Buffer>>(
      [offset, count, bytes = std::move(reused)](const sys::Descriptor& file,
                                                 const Cancelled& is_cancelled) mutable {
        return file_work::read(file.get(), offset, count, std::move(bytes), is_cancelled);
      },
      std::move(done));
}

FileOperation File::write_at(std::uint64_t offset, Buffer bytes, OnFileDone done) {
  return start<std::error_code>(
      [offset, bytes = std::move(bytes)](const sys::Descriptor& file,
                                         const Cancelled& is_cancelled) {
        return file_work::write(file.get(), offset, bytes, is_cancelled);
      },
      std::move(done));
}

FileOperation File::write_at(std::uint64_t offset, Bytes bytes, OnFileDone done) {
  Buffer copied;
  if (copied.append(bytes)) return write_at(offset, std::move(copied), std::move(done));
  return start<std::error_code>(
      [](const sys::Descriptor&, const Cancelled&) { return no_memory(); }, std::move(done));
}

FileOperation File::sync(OnFileDone done) {
  return start<std::error_code>(
      [](const sys::Descriptor& file, const Cancelled&) {
        return sys::error_code(sys::sync_file(file.get()));
      },
      std::move(done));
}

FileOperation File::stat(OnFileStatus done) {
  return start<Result<FileStatus>>(
      [](const sys::Descriptor& file, const Cancelled&) { return file_work::status(file.get()); },
      std::move(done));
}

FileOperation File::resize(std::uint64_t size, OnFileDone done) {
  return start<std::error_code>(
      [size](const sys::Descriptor& file, const Cancelled&) {
        return sys::error_code(sys::resize_file(file.get(), static_cast<std::int64_t>(size)));
      },
      std::move(done));
}

FileOperation File::close(OnFileDone done) {
  opened_->is_closed = true;
  return start<std::error_code>(
      [](sys::Descriptor& file, const Cancelled&) {
        return sys::error_code(sys::close_file(file));
      },
      std::move(done));
}

// ---- paths

FileOperation read_file(Loop& loop, std::string path, std::size_t limit, OnFileText done,
                        const PathOptions& options) {
  return start_file_call<Result<std::string>>(
      loop, options,
      [path = std::move(path), limit](const Cancelled& is_cancelled) {
        return file_work::read_whole(path, limit, is_cancelled);
      },
      std::move(done));
}

FileOperation write_file(Loop& loop, std::string path, Buffer bytes, OnFileDone done,
                         const WriteFileOptions& options) {
  return start_file_call<std::error_code>(
      loop, options,
      [path = std::move(path), bytes = std::move(bytes), options](const Cancelled& is_cancelled) {
        file_work::Replacement file(path, options);
        const std::error_code error = file.write(bytes, is_cancelled);
        return error ? error : file.finish(is_cancelled);
      },
      std::move(done));
}

FileOperation write_file(Loop& loop, std::string path, Bytes bytes, OnFileDone done,
                         const WriteFileOptions& options) {
  Buffer copied;
  if (copied.append(bytes))
    return write_file(loop, std::move(path), std::move(copied), std::move(done), options);
  return start_file_call<std::error_code>(
      loop, options, [](const Cancelled&) { return no_memory(); }, std::move(done));
}

bool is_file_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;  // NAME_MAX.
  return !name.empty() && name.size() <= kLongest && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

FileOperation stat_file(Loop& loop, std::string path, OnFileStatus done,
                        const PathOptions& options) {
  return start_file_call<Result<FileStatus>>(
      loop, options, [path = std::move(path)](const Cancelled&) { return file_work::status(path); },
      std::move(done));
}

FileOperation rename_file(Loop& loop, std::string from, std::string to, OnFileDone done,
                          const PathOptions& options) {
  return start_file_call<std::error_code>(
      loop, options,
      [from = std::move(from), to = std::move(to)](const Cancelled&) {
        return file_work::rename(from, to);
      },
      std::move(done));
}

FileOperation remove_file(Loop& loop, std::string path, OnFileDone done,
                          const PathOptions& options) {
  return start_file_call<std::error_code>(
      loop, options, [path = std::move(path)](const Cancelled&) { return file_work::remove(path); },
      std::move(done));
}

}  // namespace spate
