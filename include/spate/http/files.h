// Files: serves what lies beneath a directory.
//
//   auto files = spate::must(spate::http::Files::open("/srv/www"));
//   auto server = spate::must(spate::http::serve(*loop, address, files));
//
//   router.get("/static/*path", [&](Exchange exchange) {
//     const std::string path = exchange.request().param("path");
//     files.serve(std::move(exchange), path);
//   });
//
// Nothing else is served: ".." and links cannot leave the root, whatever is moved meanwhile
// (openat2; before Linux 5.6 no link is followed at all). Names that begin with a dot are not
// there, except "/.well-known" (RFC 8615). What is neither a file nor a directory is not there
// either.
//
// GET and HEAD; other methods are answered 405. Answers have an ETag, made of size, time and inode,
// and Last-Modified, unless the file has changed within this second; If-* are heeded, and one Range
// or several. A directory is served by its index file, or as a list, if that is wanted; without '/'
// at the end it is redirected to the one with it.
//
// Blocking: opening a file and reading one that is not in the page cache blocks the loop for as
// long as the disk takes. Up to 8 KiB are read at once and sent with the head; more is sent by
// Stream::send_file(), a piece whenever the client takes one, and needs no memory.
//
// Ownership: keeps the root open, also if it is renamed. Must outlive its Servers; not the
// Exchanges, which it answers at once.
// Threads: one at a time. Each worker has Files of its own.
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
  std::string index = "index.html";  // What stands for a directory; empty: nothing.
  bool listing = false;              // Lists directories that have no index; else 403.
  bool hidden = false;               // Serves and lists names that begin with a dot.
  // Sends "name.br" or "name.gz" in place of "name" to clients that accept it, if it lies there and
  // is not older. For types that can be compressed; costs them an open() each.
  bool precompressed = false;
  std::string cache_control{};  // The field Cache-Control of answers with a file.
};

class SPATE_EXPORT Files final : public Service {
 public:
  // Errors: those of open(2) for the directory; ENOMEM.
  static Result<Files> open(const std::string& root, FilesOptions options = {});
  Files(Files&& other) noexcept;
  Files& operator=(Files&& other) noexcept;
  ~Files();

  // By the path of the request.
  void serve(Exchange exchange);
  // By a path beneath the root, percent-decoded, as Request::param() returns it. With or without a
  // '/' in front.
  void serve(Exchange exchange, std::string_view path);
  void on_request(Exchange exchange) override;

 private:
  class Tree;
  explicit Files(std::unique_ptr<Tree> tree);
  std::unique_ptr<Tree> tree_;
};

}  // namespace spate::http
