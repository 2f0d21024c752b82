// FileRoot: opens files beneath a directory, and never outside of it.
#pragma once

#include <string>
#include <utility>

#include "spate/error.h"
#include "sys/directory.h"

namespace spate::http {

struct OpenFile {
  sys::Descriptor file;
  sys::FileStatus status;
};

class FileRoot {
 public:
  static Result<FileRoot> open(const std::string& directory);

  // `path` must have no dot segments and no leading slash; empty is the root.
  Result<OpenFile> find(const std::string& path) const;

 private:
  FileRoot(sys::Descriptor root, bool has_openat2)
      : root_(std::move(root)), has_openat2_(has_openat2) {}
  long open_path(const std::string& path) const;
  long walk(const std::string& path) const;

  sys::Descriptor root_;
  bool has_openat2_;
};

}  // namespace spate::http
