// FileTree: the state behind a Files, with the cache. Its FileRequests keep it after the Files was
// destroyed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/server/file_cache.h"
#include "http/server/file_lookup.h"
#include "http/server/file_root.h"
#include "spate/http/exchange.h"
#include "spate/http/files.h"

namespace spate::http {

class FileTree : public std::enable_shared_from_this<FileTree> {
 public:
  FileTree(std::shared_ptr<const FileRoot> root, FilesOptions options)
      : root_(std::move(root)),
        options_(std::move(options)),
        max_kept_(std::min(options_.max_cached_file, options_.cache_size / 2)),
        cache_(options_.cache_size) {}

  // `path` is normalized; nullopt if it must not be served. `has_slash`: the path of the request
  // ends with a slash.
  void serve(Exchange exchange, std::optional<std::string> path, bool has_slash);
  // Responds with the result of a look-up that began at `began`, and keeps it under `key`.
  void respond(Exchange& exchange, std::string_view key, Nanos began, Result<FoundFile> found);

  const std::shared_ptr<const FileRoot>& root() const { return root_; }
  ThreadPool& pool() const { return *options_.pool; }

 private:
  using KeptFile = std::shared_ptr<const FileCache::File>;

  void find(Exchange exchange, FileQuery query);
  void respond_with_file(Exchange& exchange, std::string_view key, Nanos began, FoundFile found);
  bool may_keep(Exchange& exchange, const sys::FileStatus& status) const;
  void send_kept(Exchange& exchange, const KeptFile& file);
  void send_open(Exchange& exchange, FoundFile& found);
  void set_fields(std::string_view type, std::string_view coding);

  const std::shared_ptr<const FileRoot> root_;
  const FilesOptions options_;
  const std::uint64_t max_kept_;  // Larger contents are not kept.
  FileCache cache_;
  // Members so that their memory is reused.
  Fields fields_;    // Fields of the current response.
  std::string key_;  // Key of the current request.
};

}  // namespace spate::http
