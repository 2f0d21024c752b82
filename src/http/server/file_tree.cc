#include "http/server/file_tree.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/file_request.h"
#include "http/server/file_response.h"
#include "spate/http/media_type.h"
#include "spate/http/negotiate.h"
#include "spate/http/url.h"
#include "spate/loop.h"

namespace spate::http {

namespace {

constexpr std::string_view kWellKnown = "/.well-known";
// Files up to this size are read at the first request.
constexpr std::uint64_t kAlwaysRead = 8 * 1024;
// A file that changed within this time may change again without another modification time.
constexpr std::chrono::seconds kSettled{2};

// True if a component begins with a dot. `path` is normalized.
bool is_hidden(std::string_view path) {
  const bool is_well_known = path.starts_with(kWellKnown) &&
                             (path.size() == kWellKnown.size() || path[kWellKnown.size()] == '/');
  return path.substr(is_well_known ? kWellKnown.size() : 0).contains("/.");
}

void refuse(Exchange& exchange, std::error_code error) {
  const bool is_system = error.category() == std::system_category();
  switch (is_system ? error.value() : EAGAIN) {  // Others are the pool's.
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

// Redirects to the path of the request, because a route may have removed a prefix.
// Normalizing leaves one leading slash: two would name another host.
void redirect(Exchange& exchange) {
  const std::string path = normal_path(exchange.request().path()).value_or("/");
  std::string to = percent_encode_path(path) + '/';
  const std::string_view query = exchange.request().query();
  if (!query.empty()) to.append("?").append(query);
  Fields fields;
  fields.set(FieldId::location, to);
  exchange.respond(Status::moved_permanently, fields);
}

Codings codings_of(const Request& request) {
  std::string accepted;
  for (const std::string_view value : request.fields().all(FieldId::accept_encoding))
    accepted.append(accepted.empty() ? "" : ",").append(value);
  Codings ordered{"br", "gzip"};
  if (weight_of_encoding(accepted, "gzip") > weight_of_encoding(accepted, "br"))
    std::swap(ordered[0], ordered[1]);
  Codings codings{};
  std::size_t count = 0;
  for (const std::string_view coding : ordered) {
    const int weight = weight_of_encoding(accepted, coding);
    if (weight != 0 && weight >= weight_of_encoding(accepted, "identity"))
      codings[count++] = coding;
  }
  return codings;
}

// Requests with equal keys have the same file. No path has a zero byte.
void make_key(const FileQuery& query, std::string& key) {
  key.assign(query.path);
  key += '\0';
  key += query.has_slash ? '/' : '-';
  for (const std::string_view coding : query.codings) {
    if (!coding.empty()) key += coding.front();
  }
}

}  // namespace

void FileTree::serve(Exchange exchange, std::optional<std::string> path, bool has_slash) {
  const Request& request = exchange.request();
  if (request.method() != Method::get && request.method() != Method::head) {
    Fields fields;
    fields.set(FieldId::allow, "GET, HEAD");
    exchange.respond(Status::method_not_allowed, fields);
    return;
  }
  if (!path || (!options_.hidden && is_hidden(*path)))
    return refuse(exchange, system_error(ENOENT));
  FileQuery query{.path = *std::move(path),
                  .index = options_.index,
                  .has_slash = has_slash,
                  .lists = options_.listing,
                  .hidden = options_.hidden ? Hidden::listed : Hidden::left_out,
                  .codings = options_.precompressed ? codings_of(request) : Codings{},
                  .max_read = kAlwaysRead};
  find(std::move(exchange), std::move(query));
}

void FileTree::find(Exchange exchange, FileQuery query) {
  const Nanos now = exchange.loop().now();
  make_key(query, key_);
  if (const FileCache::Entry* entry = cache_.find(key_)) {
    if (entry->file != nullptr && now - entry->checked < options_.check_every)
      return send_kept(exchange, KeptFile(entry->file));
    if (entry->file != nullptr) query.known = entry->file->status;
    query.max_read = std::max(kAlwaysRead, max_kept_);
  }
  const std::string key = key_;  // The response may call a function that serves another request.
  Result<FoundFile> found = look_up(*root_, query, Waiting::never);
  if (found || found.error().value() != EAGAIN)
    return respond(exchange, key, now, std::move(found));
  const std::error_code error =
      FileRequest::start(exchange, shared_from_this(), key, std::move(query));
  if (error) refuse(exchange, error);
}

void FileTree::respond(Exchange& exchange, std::string_view key, Nanos began,
                       Result<FoundFile> found) {
  if (found && found->kind == FoundFile::Kind::file)
    return respond_with_file(exchange, key, began, *std::move(found));
  cache_.drop(key);
  if (!found) return refuse(exchange, found.error());
  if (found->kind == FoundFile::Kind::needs_slash) return redirect(exchange);
  exchange.respond(Status::ok, found->page, "text/html; charset=utf-8");
}

// The entry may have been dropped or replaced during the look-up. If another request has read the
// same content meanwhile, that one is sent, so that it is in memory once.
void FileTree::respond_with_file(Exchange& exchange, std::string_view key, Nanos began,
                                 FoundFile found) {
  FileCache::Entry* entry = cache_.find(key);
  if (entry != nullptr && entry->file != nullptr && entry->file->status == found.status) {
    entry->checked = began;
    return send_kept(exchange, KeptFile(entry->file));
  }
  const bool may_keep = this->may_keep(exchange, found.status);
  if (!may_keep) cache_.drop(key);
  if (!found.has_content) {
    if (may_keep) cache_.put({.key = std::string(key), .file = nullptr, .checked = began});
    return send_open(exchange, found);
  }
  const auto file = std::make_shared<const FileCache::File>(found.type, found.coding, found.status,
                                                            std::move(found.content));
  if (may_keep) cache_.put({.key = std::string(key), .file = file, .checked = began});
  send_kept(exchange, file);
}

bool FileTree::may_keep(Exchange& exchange, const sys::FileStatus& status) const {
  const std::chrono::sys_seconds written{std::chrono::seconds(status.seconds)};
  return status.size <= max_kept_ && written + kSettled <= exchange.loop().wall_now();
}

void FileTree::send_kept(Exchange& exchange, const KeptFile& file) {
  set_fields(file->type, file->coding);
  const FileToSend sent{.type = file->type,
                        .status = file->status,
                        .content = &file->content,
                        .root = root_,
                        .pool = pool()};
  FileResponse(exchange, fields_, sent).send();
}

void FileTree::send_open(Exchange& exchange, FoundFile& found) {
  set_fields(found.type, found.coding);
  const FileToSend sent{.type = found.type,
                        .status = found.status,
                        .file = &found.file,
                        .root = root_,
                        .pool = pool()};
  FileResponse(exchange, fields_, sent).send();
}

void FileTree::set_fields(std::string_view type, std::string_view coding) {
  fields_.clear();
  if (!options_.cache_control.empty()) fields_.set(FieldId::cache_control, options_.cache_control);
  if (options_.precompressed && is_compressible(type))
    fields_.set(FieldId::vary, "Accept-Encoding");
  if (!coding.empty()) fields_.set(FieldId::content_encoding, coding);
}

}  // namespace spate::http
