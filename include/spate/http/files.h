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
// Slow disks: the loop's thread does not wait for one. Names and bytes that are in the kernel's
// cache are read at once. A thread of `pool` opens and reads everything else, and the response
// follows from the loop. It reads all bytes of file systems without RWF_NOWAIT (NFS, FUSE,
// overlayfs), and all files on kernels before 5.12.
// Up to 8 KiB are sent with the header section. Larger files that are not in memory are sent by
// Exchange::send_file(), in pieces of 512 KiB as the client reads, without a copy in memory. A
// piece is sent when samples of it are in the page cache; other pages of it are read on the loop.
//
// Cache: the contents of settled files (unchanged for two seconds) stay in memory, small ones from
// the first request on, others from the second. They are compared with the file at most every
// `check_every`, by device, inode, size and both times: a replaced file is served after that time
// at the latest. Bytes that are being sent stay in memory until they were sent, beside the budget.
//
// Consistency: the length, the ETag and the bytes are those of one open file, or of one content in
// memory. If a file becomes shorter while it is sent, the connection is reset.
//
// Ownership: keeps the root open, also if it is renamed. Must outlive its Servers, but not the
// Exchanges passed to it. An Exchange may be responded to later, and gets no more calls of its
// handler then. If the client disconnects, its work in the pool is cancelled.
// Errors: 503 if the pool refuses the work, or descriptors or memory run out.
// Threads: one at a time. Each worker needs its own Files, and has its own cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/server.h"
#include "spate/offload.h"
#include "spate/time.h"

namespace spate::http {

class FileTree;

struct FilesOptions {
  std::string index = "index.html";  // The file that is served for a directory; empty: none.
  bool listing = false;              // Lists directories that have no index; otherwise 403.
  bool hidden = false;               // Serves and lists names that begin with a dot.
  // Sends "name.br" or "name.gz" in place of "name" to clients that accept it, if that file exists
  // and is not older. For compressible types only; costs an open() for each candidate.
  bool precompressed = false;
  std::string cache_control{};  // The Cache-Control field of responses with a file.
  // The most bytes of the cache, with about a KiB for each entry; zero: no cache.
  std::uint64_t cache_size = 16 * 1024 * 1024;
  // Larger files, and those above half of the cache, are not kept in memory.
  std::uint64_t max_cached_file = 1024 * 1024;
  Nanos check_every{1'000'000'000};  // Zero: a file in the cache is compared at each request.
  ThreadPool* pool = &ThreadPool::shared();  // Must outlive the Files and its exchanges.
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
  explicit Files(std::shared_ptr<FileTree> tree);
  std::shared_ptr<FileTree> tree_;
};

}  // namespace spate::http
