// receive_to_file(): writes the body of a request to a file, which appears when it is complete.
//
//   server.route("PUT /upload", [](http::Exchange exchange) {
//     http::receive_to_file(std::move(exchange), "upload.bin",
//                           [](http::Exchange exchange, Result<std::uint64_t> size) {
//                             exchange.respond(size ? http::Status::created
//                                                   : http::Status::insufficient_storage);
//                           });
//   });
//
// A name that the client sends may lead out of the directory: check it with is_file_name().
//
// Ownership: the exchange is kept until `done` is called.
// Threads: the loop's thread only. The file is written on a thread of the pool (file_writer.h).
#pragma once

#include <cstdint>
#include <string>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/file.h"
#include "spate/function.h"
#include "spate/http/exchange.h"

namespace spate::http {

struct ReceiveFileOptions {
  std::uint64_t most = std::uint64_t{1} << 30;  // The longest body.
  WriteFileOptions file{};
};

// Gets the exchange, whose body was received, and the size of the file.
using OnFileReceived = Function<void(Exchange exchange, Result<std::uint64_t> size)>;

// Writes the body to a temporary file beside `path`, renames it to `path` when the body is
// complete, and then calls `done`, from the loop. A request without a body makes an empty file.
// While the disk is slower than the client, the exchange is paused. If a file operation fails,
// calls `done` with its error; the rest of the body is then discarded. If the body is longer than
// `options.most` bytes, sends 413, at once if Content-Length shows it. If the client disconnects
// before the end, or 413 was sent, `done` is destroyed uncalled. Except for success, nothing is
// changed at `path`, and the temporary file is removed.
SPATE_EXPORT void receive_to_file(Exchange exchange, std::string path, OnFileReceived done,
                                  const ReceiveFileOptions& options = {});

}  // namespace spate::http
