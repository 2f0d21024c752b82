// receive_to_file(): a handler that its exchange owns passes the body to a FileWriter.
#include "spate/http/receive_file.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "core/user_code.h"
#include "http/server/exchange_state.h"
#include "http/server/owned_handler.h"
#include "spate/file_writer.h"
#include "spate/http/exchange_keeper.h"

namespace spate::http {

namespace {

class FileReceiver final : public OwnedHandler {
 public:
  FileReceiver(Exchange exchange, std::string path, OnFileReceived done,
               const ReceiveFileOptions& options)
      : exchange_(std::move(exchange)),
        most_(options.most),
        done_(std::move(done)),
        writer_(exchange_.loop(), std::move(path), [this] { on_progress(); }, options.file) {}

  void on_body(Bytes bytes) override {
    if (bytes.size() > most_ - writer_.size()) return refuse();
    writer_.write(bytes);
    if (writer_.is_full()) exchange_.pause();
  }
  void on_body_end(const FieldsView&) override {
    writer_.finish([this](std::error_code error) { finish(error); });
  }

 private:
  void on_progress() {
    if (writer_.error()) return finish(writer_.error());
    exchange_.resume();
  }
  void refuse() {
    const std::unique_ptr<OwnedHandler> self = ExchangeState::of(exchange_)->take_owned();
    ExchangeState::of(exchange_)->respond_refusal(
        {Status::content_too_large, "the body is too long"});
  }
  void finish(std::error_code error) {
    const std::unique_ptr<OwnedHandler> self = ExchangeState::of(exchange_)->take_owned();
    exchange_.resume();
    const Result<std::uint64_t> size =
        error ? Result<std::uint64_t>(std::unexpected(error)) : writer_.size();
    ExchangeKeeper keeper(exchange_);
    guard_user([&] { done_(std::move(exchange_), size); }, [&] { keeper.fail(); });
  }

  Exchange exchange_;
  const std::uint64_t most_;
  OnFileReceived done_;
  FileWriter writer_;
};

}  // namespace

// On every failure the Exchange is destroyed here, which sends a response if it was not sent yet.
void receive_to_file(Exchange exchange, std::string path, OnFileReceived done,
                     const ReceiveFileOptions& options) {
  ExchangeState* state = ExchangeState::of(exchange);
  if (state == nullptr) return;
  std::unique_ptr<FileReceiver> receiver(new (std::nothrow) FileReceiver(
      std::move(exchange), std::move(path), std::move(done), options));
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(options.most, SIZE_MAX));
  if (receiver != nullptr) state->start(std::move(receiver), most);
}

}  // namespace spate::http
