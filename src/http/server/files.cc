#include "spate/http/files.h"
#include "http/codec/system_error.h"

#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "http/server/file_response.h"
#include "http/server/file_root.h"
#include "http/server/listing.h"
#include "spate/http/media_type.h"
#include "spate/http/negotiate.h"
#include "spate/http/url.h"

namespace spate::http {

namespace {

constexpr std::string_view kWellKnown = "/.well-known";

// True if a component begins with a dot. `path` is normalized.
bool is_hidden(std::string_view path) {
  const bool is_well_known = path.starts_with(kWellKnown) &&
                             (path.size() == kWellKnown.size() || path[kWellKnown.size()] == '/');
  return path.substr(is_well_known ? kWellKnown.size() : 0).contains("/.");
}

void refuse(Exchange& exchange, std::error_code error) {
  switch (error.value()) {
    case EACCES:
    case EPERM:
      exchange.respond(Status::forbidden, "this is not for everybody\n");
      break;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      exchange.respond(Status::service_unavailable, "too busy; try again\n");
      break;
    case EIO:
      exchange.respond(Status::internal_server_error, "the file cannot be read\n");
      break;
    default:  // Missing, outside of the root, or not a file or directory.
      exchange.respond(Status::not_found, "there is nothing here\n");
  }
}

}  // namespace

class Files::Tree {
 public:
  Tree(FileRoot root, FilesOptions options)
      : root_(std::move(root)), options_(std::move(options)) {}

  // `path` is normalized; nullopt if it must not be served.
  void serve(Exchange& exchange, const std::optional<std::string>& path);

 private:
  void serve_directory(Exchange& exchange, const std::string& path, OpenFile& directory);
  void send(Exchange& exchange, const std::string& name, OpenFile& file);
  void prefer_compressed(const Request& request, const std::string& name, OpenFile& file);
  static void redirect(Exchange& exchange, const std::string& path);

  FileRoot root_;
  FilesOptions options_;
  Fields fields_;  // The fields of the current response; a member so that its memory is reused.
};

void Files::Tree::serve(Exchange& exchange, const std::optional<std::string>& path) {
  const Method method = exchange.request().method();
  if (method != Method::get && method != Method::head) {
    Fields fields;
    fields.set(FieldId::allow, "GET, HEAD");
    exchange.respond(Status::method_not_allowed, fields);
    return;
  }
  if (!path || (!options_.hidden && is_hidden(*path)))
    return refuse(exchange, system_error(ENOENT));
  const std::string name = path->substr(1);
  Result<OpenFile> found = root_.find(name);
  if (!found) return refuse(exchange, found.error());
  if (found->status.kind == sys::FileStatus::Kind::directory)
    return serve_directory(exchange, *path, *found);
  send(exchange, name, *found);
}

// Redirects to the path of the request, because a route may have removed a prefix from `path`.
// Normalizing leaves one leading slash: two would name another host.
void Files::Tree::redirect(Exchange& exchange, const std::string& path) {
  std::string to = percent_encode_path(path) + '/';
  const std::string_view query = exchange.request().query();
  if (!query.empty()) to.append("?").append(query);
  Fields fields;
  fields.set(FieldId::location, to);
  exchange.respond(Status::moved_permanently, fields);
}

void Files::Tree::serve_directory(Exchange& exchange, const std::string& path,
                                  OpenFile& directory) {
  const std::string requested = normal_path(exchange.request().path()).value_or("/");
  if (!requested.ends_with('/')) return redirect(exchange, requested);
  std::string name = path.substr(1);
  if (!name.empty() && !name.ends_with('/')) name += '/';
  if (!options_.index.empty()) {
    Result<OpenFile> index = root_.find(name + options_.index);
    if (index) return send(exchange, name + options_.index, *index);
    if (index.error().value() != ENOENT) return refuse(exchange, index.error());
  }
  sys::Directory names(std::move(directory.file));
  if (!options_.listing || !names.is_open()) return refuse(exchange, system_error(EACCES));
  const Hidden hidden = options_.hidden ? Hidden::listed : Hidden::left_out;
  exchange.respond(Status::ok, list_directory(names, path, hidden), "text/html; charset=utf-8");
}

void Files::Tree::send(Exchange& exchange, const std::string& name, OpenFile& file) {
  if (file.status.kind != sys::FileStatus::Kind::regular)
    return refuse(exchange, system_error(ENOENT));
  const std::string_view type = content_type_of(name);
  fields_.clear();
  if (!options_.cache_control.empty()) fields_.set(FieldId::cache_control, options_.cache_control);
  if (options_.precompressed && is_compressible(type)) {
    fields_.set(FieldId::vary, "Accept-Encoding");
    prefer_compressed(exchange.request(), name, file);
  }
  FileResponse(exchange, fields_, file, type).send();
}

// A compressed file that is older belongs to an earlier version of the file.
void Files::Tree::prefer_compressed(const Request& request, const std::string& name,
                                    OpenFile& file) {
  struct Neighbour {
    std::string_view coding;
    std::string_view ending;
  };
  std::string accepted;
  for (const std::string_view value : request.fields().all(FieldId::accept_encoding))
    accepted.append(accepted.empty() ? "" : ",").append(value);
  std::array<Neighbour, 2> neighbours{{{"br", ".br"}, {"gzip", ".gz"}}};
  if (weight_of_encoding(accepted, "gzip") > weight_of_encoding(accepted, "br"))
    std::swap(neighbours[0], neighbours[1]);
  for (const Neighbour& each : neighbours) {
    const int weight = weight_of_encoding(accepted, each.coding);
    if (weight == 0 || weight < weight_of_encoding(accepted, "identity")) continue;
    Result<OpenFile> found = root_.find(name + std::string(each.ending));
    if (!found || found->status.kind != sys::FileStatus::Kind::regular) continue;
    if (std::pair(found->status.seconds, found->status.nanoseconds) <
        std::pair(file.status.seconds, file.status.nanoseconds))
      continue;
    file = std::move(*found);
    fields_.set(FieldId::content_encoding, each.coding);
    return;
  }
}

Files::Files(std::unique_ptr<Tree> tree) : tree_(std::move(tree)) {}
Files::Files(Files&& other) noexcept = default;
Files& Files::operator=(Files&& other) noexcept = default;
Files::~Files() = default;

Result<Files> Files::open(const std::string& root, FilesOptions options) {
  Result<FileRoot> opened = FileRoot::open(root);
  if (!opened) return std::unexpected(opened.error());
  std::unique_ptr<Tree> tree(new (std::nothrow) Tree(std::move(*opened), std::move(options)));
  if (tree == nullptr) return std::unexpected(system_error(ENOMEM));
  return Files(std::move(tree));
}

void Files::serve(Exchange exchange) {
  const std::optional<std::string> path = normal_path(exchange.request().path());
  tree_->serve(exchange, path);
}

// Encodes the path, so that it passes through the same normalization as a request's.
void Files::serve(Exchange exchange, std::string_view path) {
  const std::string encoded = percent_encode_path(path);
  const std::optional<std::string> normal = normal_path('/' + encoded);
  tree_->serve(exchange, normal);
}

void Files::on_request(Exchange exchange) { serve(std::move(exchange)); }

}  // namespace spate::http
