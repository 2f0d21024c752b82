#include "http/server/file_root.h"

#include <cerrno>

#include "sys/page_cache.h"

namespace spate::http {

namespace {

// openat2() fails with EAGAIN while directories are being moved.
constexpr int kMostTries = 4;

}  // namespace

// Sandboxes whose filter predates openat2 return EPERM.
Result<FileRoot> FileRoot::open(const std::string& directory) {
  const long root = sys::open_root(directory.c_str());
  if (root < 0) return std::unexpected(sys::error_code(root));
  sys::Descriptor opened(root);
  const long probe = sys::open_beneath(opened.get(), ".", Waiting::allowed);
  const sys::Descriptor closed_at_once(probe);
  Abilities abilities{.has_openat2 = probe != -ENOSYS && probe != -EPERM, .finds_at_once = false};
  if (abilities.has_openat2 && sys::medium_of(opened.get()) != sys::Medium::other) {
    const long again = sys::open_beneath(opened.get(), ".", Waiting::never);
    const sys::Descriptor also_closed(again);
    abilities.finds_at_once = again >= 0 || again == -EAGAIN;
  }
  return FileRoot(std::move(opened), abilities);
}

Result<OpenFile> FileRoot::find(const std::string& path, Waiting waiting) const {
  const long file = open_path(path.empty() ? "." : path, waiting);
  if (file < 0) return std::unexpected(sys::error_code(file));
  OpenFile found{.file = sys::Descriptor(file), .status = {}};
  const long error = sys::status_of(found.file.get(), found.status);
  if (error < 0) return std::unexpected(sys::error_code(error));
  return found;
}

// A file of another file system is opened by a thread that may wait.
long FileRoot::open_path(const std::string& path, Waiting waiting) const {
  if (waiting == Waiting::never) {
    if (!abilities_.finds_at_once) return -EAGAIN;
    const long file = sys::open_beneath(root_.get(), path.c_str(), waiting);
    return file == -EXDEV ? -EAGAIN : file;
  }
  if (!abilities_.has_openat2) return walk(path);
  long file = -EAGAIN;
  for (int tries = 0; tries < kMostTries && file == -EAGAIN; ++tries)
    file = sys::open_beneath(root_.get(), path.c_str(), waiting);
  return file;
}

long FileRoot::read(int file, std::span<std::byte> room, std::int64_t offset,
                    Waiting waiting) const {
  if (waiting == Waiting::allowed) return sys::read_at(file, room.data(), room.size(), offset);
  return abilities_.finds_at_once ? sys::read_at_once(file, room.data(), room.size(), offset)
                                  : -EAGAIN;
}

// Opens each component without following links, so that the path cannot leave the root.
long FileRoot::walk(const std::string& path) const {
  sys::Descriptor through;
  int from = root_.get();
  std::size_t begin = 0;
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', begin)) {
    const long next =
        sys::open_step(from, path.substr(begin, end - begin).c_str(), sys::Step::through);
    if (next < 0) return next;
    through = sys::Descriptor(next);
    from = through.get();
    begin = end + 1;
  }
  const bool is_directory = begin == path.size();
  return sys::open_step(from, is_directory ? "." : path.c_str() + begin, sys::Step::to);
}

}  // namespace spate::http
