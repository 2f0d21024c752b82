// Files: serves the files of a directory tree.
//
//   auto files = spate::must(spate::http::Files::open("/srv/www"));
//   auto server = spate::must(spate::http::serve(*loop, address, files));
//
//   router.get("/static/*path", [&](Exchange exchange) {
//     const std::string path = exchange.request().param("path");
//     files.serve(std::move(exchange), path);
//   });
//
// Safety: ".." and links cannot leave the root, whatever is moved meanwhile (openat2; before Linux
// 5.6 no link is followed at all). Names that begin with a dot are treated as missing, except
// "/.well-known" (RFC 8615). So is anything that is neither a file nor a directory.
//
// Requests: GET and HEAD; other methods get 405. Responses have an ETag, made of size and time, and
// Last-Modified, unless the file changed within this second. Conditional requests and Range, with
// one or several ranges, are supported. A directory is served by its index file, or, by option, as
// a list; without a trailing '/' the client is redirected.
//
// Blocking: opening a file, and reading one that is not in the page cache, blocks the loop until
// the disk has responded. Up to 8 KiB are read at once and sent with the header section. Larger
// files are sent by Stream::send_file(), in pieces as the client reads, without a copy in memory.
//
// Ownership: keeps the root open, also if it is renamed. Must outlive its Servers, but not the
// Exchanges passed to it, to which it responds at once.
// Threads: one at a time. Each worker needs its own Files.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/server.h"

namespace spate::http {

struct FilesOptions {
  std::string index = "index.html";  // The file that is served for a directory; empty: none.
  bool listing = false;              // Lists directories that have no index; otherwise 403.
  bool hidden = false;               // Serves and lists names that begin with a dot.
  // Sends "name.br" or "name.gz" in place of "name" to clients that accept it, if that file exists
  // and is not older. For compressible types only; costs an open() for each candidate.
  bool precompressed = false;
  std::string cache_control{};  // The Cache-Control field of responses with a file.
};

class SPATE_EXPORT Files final : public Service {
 public:
  // Opens the root. Errors: those of open(2) for the directory; ENOMEM.
  static Result<Files> open(const std::string& root, FilesOptions options = {});
  Files(Files&& other) noexcept;
  Files& operator=(Files&& other) noexcept;
  ~Files();

  // Serves the file that the path of the request names.
  void serve(Exchange exchange);
  // Serves the file at a path beneath the root, percent-decoded, as Request::param() returns it. A
  // leading '/' is optional.
  void serve(Exchange exchange, std::string_view path);
  void on_request(Exchange exchange) override;

 private:
  class Tree;
  explicit Files(std::unique_ptr<Tree> tree);
  std::unique_ptr<Tree> tree_;
};

}  // namespace spate::http
