#include "http/server/file_root.h"

#include <cerrno>

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
  const long probe = sys::open_beneath(opened.get(), ".");
  const sys::Descriptor closed_at_once(probe);
  return FileRoot(std::move(opened), probe != -ENOSYS && probe != -EPERM);
}

Result<OpenFile> FileRoot::find(const std::string& path) const {
  const long file = open_path(path.empty() ? "." : path);
  if (file < 0) return std::unexpected(sys::error_code(file));
  OpenFile found{.file = sys::Descriptor(file), .status = {}};
  const long error = sys::status_of(found.file.get(), found.status);
  if (error < 0) return std::unexpected(sys::error_code(error));
  return found;
}

long FileRoot::open_path(const std::string& path) const {
  if (!has_openat2_) return walk(path);
  long file = -EAGAIN;
  for (int tries = 0; tries < kMostTries && file == -EAGAIN; ++tries)
    file = sys::open_beneath(root_.get(), path.c_str());
  return file;
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
