// download(): a handler of a Call passes the body to a FileWriter.
#include "spate/http/download.h"

#include <utility>

#include "spate/file_writer.h"

namespace spate::http {

class DownloadState final : public CallHandler {
 public:
  DownloadState(Loop& loop, std::string path, OnDownloaded done, const WriteFileOptions& file)
      : done_(std::move(done)), writer_(loop, std::move(path), [this] { on_progress(); }, file) {}

  void start(Client& client, std::string_view url, CallOptions options) {
    call_ = client.send(url, *this, std::move(options));
  }

 private:
  void on_response(const Response& response) override {
    status_ = response.status();
    if (!response.is_success()) end(status_);
  }
  void on_body(Bytes bytes) override {
    writer_.write(bytes);
    if (writer_.is_full()) call_.pause();
  }
  void on_closed(std::error_code error) override {
    if (error) return end(std::unexpected(error));
    writer_.finish([this](std::error_code failure) {
      end(failure ? Result<Status>(std::unexpected(failure)) : status_);
    });
  }
  void on_progress() {
    if (writer_.error()) return end(std::unexpected(writer_.error()));
    call_.resume();
  }
  // Calls the callback, which may destroy this.
  void end(Result<Status> status) {
    call_.cancel();
    writer_ = FileWriter();  // Removes the temporary file, unless it was renamed.
    OnDownloaded done = std::move(done_);
    done(status);
  }

  OnDownloaded done_;
  Status status_{};
  FileWriter writer_;
  Call call_;
};

void DownloadEnd::operator()(DownloadState* state) const { delete state; }

Download download(Client& client, std::string_view url, std::string path, OnDownloaded done,
                  CallOptions options, const WriteFileOptions& file) {
  auto* state = new DownloadState(client.loop(), std::move(path), std::move(done), file);
  Download handle(state);
  state->start(client, url, std::move(options));
  return handle;
}

}  // namespace spate::http
