// download(): writes the body of a response to a file, which appears when it is complete.
//
//   download_ = http::download(client, "https://example.org/data", "data.bin",
//                              [](Result<http::Status> status) {
//                                if (!status || !is_success(*status)) ...
//                              });
//
// Ownership: the returned Download is the handle; destroying it cancels, without a call of `done`.
// It must not outlive the Client's loop.
// Threads: the loop's thread only. The file is written on a thread of the pool (file_writer.h).
// `done` is called once, from the loop and never from inside download(). Inside it everything is
// allowed, destroying the Download and the Client included.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/file.h"
#include "spate/function.h"
#include "spate/http/client.h"
#include "spate/http/status.h"

namespace spate::http {

class DownloadState;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT DownloadEnd {
  void operator()(DownloadState* state) const;
};

class [[nodiscard("a discarded Download is cancelled at once")]] Download {
 public:
  Download() = default;
  explicit Download(DownloadState* state) : state_(state) {}

  // Prevents the call of `done`, and removes the temporary file.
  void cancel() { state_.reset(); }

 private:
  std::unique_ptr<DownloadState, DownloadEnd> state_;
};

using OnDownloaded = Function<void(Result<Status> status)>;

// Sends a request, and writes the body of its response to a temporary file beside `path`. When the
// body is complete, renames the file to `path`. While the disk is slower than the server, the Call
// is paused. Calls `done` with the status. If the status is not a success (2xx), the body is not
// received. Unless the status is a success, nothing is changed at `path`. CallOptions::max_body
// limits the size. For a long download, raise CallOptions::deadline, or use `idle_timeout` instead.
// Errors of `done`: those of Client::send() and CallHandler::on_closed(); those of FileWriter.
SPATE_EXPORT Download download(Client& client, std::string_view url, std::string path,
                               OnDownloaded done, CallOptions options = {},
                               const WriteFileOptions& file = {});

}  // namespace spate::http
