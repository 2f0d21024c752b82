#include "http/server/file_lookup.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/http/media_type.h"

namespace spate::http {

namespace {

using Kind = sys::FileStatus::Kind;

// A longer copy would delay the loop. It is left to the pool.
constexpr std::uint64_t kMaxReadAtOnce = 64 * 1024;

class FileLookup {
 public:
  FileLookup(const FileRoot& root, const FileQuery& query, Waiting waiting)
      : root_(root), query_(query), waiting_(waiting) {}

  Result<FoundFile> find();

 private:
  Result<FoundFile> find_in(OpenFile directory);
  Result<FoundFile> list(OpenFile directory);
  Result<FoundFile> take(const std::string& name, OpenFile file);
  std::error_code prefer_compressed(const std::string& name, OpenFile& file);
  std::error_code read(FoundFile& found);

  const FileRoot& root_;
  const FileQuery& query_;
  const Waiting waiting_;
  std::string_view coding_;
};

Result<FoundFile> FileLookup::find() {
  const std::string name = query_.path.substr(1);
  Result<OpenFile> opened = root_.find(name, waiting_);
  if (!opened) return std::unexpected(opened.error());
  if (opened->status.kind == Kind::directory) return find_in(*std::move(opened));
  return take(name, *std::move(opened));
}

Result<FoundFile> FileLookup::find_in(OpenFile directory) {
  if (!query_.has_slash) return FoundFile{.kind = FoundFile::Kind::needs_slash};
  std::string name = query_.path.substr(1);
  if (!name.empty() && !name.ends_with('/')) name += '/';
  if (!query_.index.empty()) {
    name += query_.index;
    Result<OpenFile> index = root_.find(name, waiting_);
    if (index) return take(name, *std::move(index));
    if (index.error().value() != ENOENT) return std::unexpected(index.error());
  }
  return list(std::move(directory));
}

// No call reports whether the names are in memory.
Result<FoundFile> FileLookup::list(OpenFile directory) {
  if (!query_.lists) return std::unexpected(system_error(EACCES));
  if (waiting_ == Waiting::never) return std::unexpected(system_error(EAGAIN));
  sys::Directory names(std::move(directory.file));
  if (!names.is_open()) return std::unexpected(system_error(EACCES));
  return FoundFile{.kind = FoundFile::Kind::listing,
                   .page = list_directory(names, query_.path, query_.hidden)};
}

Result<FoundFile> FileLookup::take(const std::string& name, OpenFile file) {
  if (file.status.kind != Kind::regular) return std::unexpected(system_error(ENOENT));
  const std::string_view type = content_type_of(name);
  if (is_compressible(type)) {
    if (const std::error_code error = prefer_compressed(name, file)) return std::unexpected(error);
  }
  FoundFile found{
      .type = type, .coding = coding_, .status = file.status, .file = std::move(file.file)};
  found.is_known = query_.known == found.status;
  if (!found.is_known && found.status.size <= query_.max_read) {
    if (const std::error_code error = read(found)) return std::unexpected(error);
  }
  return found;
}

// A compressed file that is older belongs to an earlier version of the file.
std::error_code FileLookup::prefer_compressed(const std::string& name, OpenFile& file) {
  for (const std::string_view coding : query_.codings) {
    if (coding.empty()) break;
    Result<OpenFile> found = root_.find(name + (coding == "br" ? ".br" : ".gz"), waiting_);
    if (!found && found.error().value() == EAGAIN && waiting_ == Waiting::never)
      return found.error();
    if (!found || found->status.kind != Kind::regular) continue;
    if (std::pair(found->status.seconds, found->status.nanoseconds) <
        std::pair(file.status.seconds, file.status.nanoseconds))
      continue;
    file = *std::move(found);
    coding_ = coding;
    break;
  }
  return {};
}

std::error_code FileLookup::read(FoundFile& found) {
  const auto size = static_cast<std::size_t>(found.status.size);
  if (waiting_ == Waiting::never && size > kMaxReadAtOnce) return system_error(EAGAIN);
  const std::span<std::byte> room = found.content.reserve(std::max<std::size_t>(size, 1));
  if (room.empty()) return system_error(ENOMEM);
  std::size_t done = 0;
  while (done < size) {
    const long count = root_.read(found.file.get(), room.subspan(done, size - done),
                                  static_cast<std::int64_t>(done), waiting_);
    if (count == -EINTR) continue;
    if (count < 0) return sys::error_code(count);
    if (count == 0) return system_error(EIO);  // The file became shorter.
    done += static_cast<std::size_t>(count);
  }
  found.content.commit(size);
  found.file = {};
  found.has_content = true;
  return {};
}

}  // namespace

Result<FoundFile> look_up(const FileRoot& root, const FileQuery& query, Waiting waiting) {
  return FileLookup(root, query, waiting).find();
}

}  // namespace spate::http
