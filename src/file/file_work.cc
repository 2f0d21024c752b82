#include "file/file_work.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "core/path_watch.h"
#include "sys/file_io.h"
#include "sys/path.h"
#include "sys/random.h"

namespace spate::file_work {

namespace {

// How much is read or written before a cancellation is noticed.
constexpr std::size_t kPiece = std::size_t{1} << 20;

std::error_code invalid() { return sys::error_code(-EINVAL); }

std::error_code cancelled() { return sys::error_code(-ECANCELED); }

// Returns a name for a system call; nullptr if it has a zero byte.
const char* name_of(const std::string& path) {
  return path.find('\0') == path.npos ? path.c_str() : nullptr;
}

// Returns a descriptor whose file has offsets, or an error.
Result<sys::Descriptor> checked(long fd) {
  if (fd < 0) return std::unexpected(sys::error_code(fd));
  sys::Descriptor file(fd);
  struct stat status{};
  if (const long result = sys::status_of_file(file.get(), status); result < 0)
    return std::unexpected(sys::error_code(result));
  if (S_ISDIR(status.st_mode)) return std::unexpected(sys::error_code(-EISDIR));
  if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
    return std::unexpected(sys::error_code(-ESPIPE));
  return file;
}

std::error_code sync_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == path.npos ? "." : path.substr(0, slash == 0 ? 1 : slash);
  const sys::Descriptor directory(sys::open_directory(name.c_str()));
  if (!directory.is_open()) return sys::error_code(directory.get());
  return sys::error_code(sys::sync_file(directory.get()));
}

// Returns a name for a temporary file beside `path`.
Result<std::string> temporary_name(const std::string& path) {
  if (name_of(path) == nullptr) return std::unexpected(invalid());
  const auto unique = sys::random_hex<8>();
  if (!unique) return std::unexpected(unique.error());
  return path + '.' + *unique + ".tmp";
}

}  // namespace

Result<sys::Descriptor> open(const std::string& path, const FileOptions& options) {
  const bool writes = options.access != FileAccess::read;
  const bool creates = options.creation != FileCreation::never;
  const char* name = name_of(path);
  if (name == nullptr || (!writes && (creates || options.truncate || options.append)))
    return std::unexpected(invalid());
  return checked(sys::open_file(name, {.read = options.access != FileAccess::write,
                                       .write = writes,
                                       .create = creates,
                                       .exclusive = options.creation == FileCreation::always_new,
                                       .truncate = options.truncate,
                                       .append = options.append,
                                       .permissions = options.permissions}));
}

Result<Buffer> read(int fd, std::uint64_t offset, std::size_t count, Buffer bytes,
                    const Cancelled& is_cancelled) {
  while (bytes.size() < count && !is_cancelled) {
    const std::size_t wanted = std::min(count - bytes.size(), kPiece);
    const std::span<std::byte> room = bytes.reserve(wanted);
    if (room.empty()) return std::unexpected(sys::error_code(-ENOMEM));
    const long result =
        sys::read_all_at(fd, room.data(), wanted, static_cast<std::int64_t>(offset + bytes.size()));
    if (result < 0) return std::unexpected(sys::error_code(result));
    bytes.commit(static_cast<std::size_t>(result));
    if (static_cast<std::size_t>(result) < wanted) break;
  }
  return bytes;
}

std::error_code write(int fd, std::uint64_t offset, const Buffer& bytes,
                      const Cancelled& is_cancelled) {
  for (Bytes rest : bytes.pieces()) {
    while (!rest.empty()) {
      if (is_cancelled) return cancelled();
      const Bytes piece = rest.first(std::min(rest.size(), kPiece));
      const long result =
          sys::write_all_at(fd, piece.data(), piece.size(), static_cast<std::int64_t>(offset));
      if (result < 0) return sys::error_code(result);
      offset += piece.size();
      rest = rest.subspan(piece.size());
    }
  }
  return {};
}

Result<FileStatus> status(int fd) {
  struct stat status{};
  if (const long result = sys::status_of_file(fd, status); result < 0)
    return std::unexpected(sys::error_code(result));
  return file_status_of(status);
}

Result<FileStatus> status(const std::string& path) {
  const char* name = name_of(path);
  if (name == nullptr) return std::unexpected(invalid());
  struct stat status{};
  if (const long result = sys::look_at(name, sys::Follow::yes, status); result < 0)
    return std::unexpected(sys::error_code(result));
  return file_status_of(status);
}

// The size is only a hint: files of /proc have none, and others may grow.
Result<std::string> read_whole(const std::string& path, std::size_t limit,
                               const Cancelled& is_cancelled) {
  const char* name = name_of(path);
  if (name == nullptr) return std::unexpected(invalid());
  const Result<sys::Descriptor> file = checked(sys::open_file(name, {}));
  if (!file) return std::unexpected(file.error());
  const std::error_code too_large = sys::error_code(-EFBIG);
  const Result<FileStatus> found = status(file->get());
  if (!found) return std::unexpected(found.error());
  if (S_ISREG(found->mode) && static_cast<std::uint64_t>(found->size) > limit)
    return std::unexpected(too_large);
  Result<Buffer> bytes =
      read(file->get(), 0, limit == SIZE_MAX ? limit : limit + 1, {}, is_cancelled);
  if (!bytes) return std::unexpected(bytes.error());
  if (bytes->size() > limit) return std::unexpected(too_large);
  std::string text;
  text.reserve(bytes->size());
  for (const Bytes piece : bytes->pieces()) text.append(text_of(piece));
  return text;
}

std::error_code rename(const std::string& from, const std::string& to) {
  if (name_of(from) == nullptr || name_of(to) == nullptr) return invalid();
  if (const long result = sys::rename_file(from.c_str(), to.c_str()); result < 0)
    return sys::error_code(result);
  return {};
}

std::error_code remove(const std::string& path) {
  if (name_of(path) == nullptr) return invalid();
  return sys::error_code(sys::remove_file(path.c_str()));
}

Replacement::~Replacement() {
  if (!temporary_.empty()) sys::remove_file(temporary_.c_str());
}

std::error_code Replacement::create() {
  Result<std::string> name = temporary_name(path_);
  if (!name) return name.error();
  file_ = sys::Descriptor(sys::open_file(name->c_str(), {.read = false,
                                                         .write = true,
                                                         .create = true,
                                                         .exclusive = true,
                                                         .permissions = options_.permissions}));
  if (!file_.is_open()) return sys::error_code(file_.get());
  temporary_ = *std::move(name);
  return {};
}

std::error_code Replacement::write(const Buffer& bytes, const Cancelled& is_cancelled) {
  const std::error_code error = file_.is_open() ? std::error_code() : create();
  if (error) return error;
  size_ += bytes.size();
  return file_work::write(file_.get(), size_ - bytes.size(), bytes, is_cancelled);
}

std::error_code Replacement::finish(const Cancelled& is_cancelled) {
  if (const long result = options_.sync ? sys::sync_file(file_.get()) : 0; result < 0)
    return sys::error_code(result);
  if (const long result = sys::close_file(file_); result < 0) return sys::error_code(result);
  if (is_cancelled) return cancelled();
  if (const long result = sys::rename_file(temporary_.c_str(), path_.c_str()); result < 0)
    return sys::error_code(result);
  temporary_.clear();
  return options_.sync ? sync_directory_of(path_) : std::error_code();
}

}  // namespace spate::file_work
