#include "spate/http/files.h"

#include <utility>

#include "http/server/file_tree.h"
#include "spate/http/url.h"

namespace spate::http {

Files::Files(std::shared_ptr<FileTree> tree) : tree_(std::move(tree)) {}
Files::Files(Files&& other) noexcept = default;
Files& Files::operator=(Files&& other) noexcept = default;
Files::~Files() = default;

Result<Files> Files::open(const std::string& root, FilesOptions options) {
  Result<FileRoot> opened = FileRoot::open(root);
  if (!opened) return std::unexpected(opened.error());
  return Files(std::make_shared<FileTree>(std::make_shared<const FileRoot>(*std::move(opened)),
                                          std::move(options)));
}

void Files::serve(Exchange exchange) {
  std::optional<std::string> path = normal_path(exchange.request().path());
  const bool has_slash = path && path->ends_with('/');
  tree_->serve(std::move(exchange), std::move(path), has_slash);
}

// Encodes the path, so that it passes through the same normalization as a request's.
void Files::serve(Exchange exchange, std::string_view path) {
  const std::optional<std::string> requested = normal_path(exchange.request().path());
  const bool has_slash = !requested || requested->ends_with('/');
  const std::string encoded = percent_encode_path(path);
  tree_->serve(std::move(exchange), normal_path('/' + encoded), has_slash);
}

void Files::on_request(Exchange exchange) { serve(std::move(exchange)); }

}  // namespace spate::http
