// Shows the cost of spate's WebSockets beyond its Streams: the floor's frame parser, on Streams
// that http::Server upgraded. A message for all connections lies in one Buffer, which the Streams
// share.
#include <spate/http/exchange.h>
#include <spate/http/fields.h>
#include <spate/http/server.h>
#include <spate/net/listener.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "harness/server.h"
#include "harness/spate_loop.h"
#include "workloads/websocket/message.h"

namespace {

class Talk final : public spate::StreamHandler {
 public:
  using All = std::vector<std::unique_ptr<Talk>>;

  Talk(spate::Stream stream, const All* told) : stream_(std::move(stream)), told_(told) {
    stream_.start(*this);
  }

  std::size_t on_data(spate::Bytes bytes) override {
    std::size_t used = 0;
    while (const std::size_t size = take_message(bytes.subspan(used))) used += size;
    return used;
  }
  void on_closed(std::error_code) override {}

 private:
  // How long its frame is; 0 if it is not whole.
  std::size_t take_message(spate::Bytes bytes) {
    const Arrived arrived = unmask(spate::text_of(bytes), room_);
    if (arrived.frame_size == 0) return 0;
    const std::string head = frame_head(arrived.message.size());
    if (told_ == nullptr) {
      const spate::Bytes pieces[] = {spate::bytes_of(head), spate::bytes_of(arrived.message)};
      stream_.write(pieces);
    } else {
      tell(head, arrived.message);
    }
    return arrived.frame_size;
  }
  void tell(std::string_view head, std::string_view message) const {
    spate::Buffer all;  // In one piece.
    const auto room = all.reserve(head.size() + message.size());
    std::ranges::copy(spate::bytes_of(message),
                      std::ranges::copy(spate::bytes_of(head), room.begin()).out);
    all.commit(head.size() + message.size());
    for (const auto& talk : *told_) {
      spate::Buffer share;
      share.append_shared(all);
      talk->stream_.write(std::move(share));
    }
  }

  static inline char room_[kReadSize];

  spate::Stream stream_;
  const All* told_;  // Nullptr: only this one.
};

class Server final : public spate::http::Service {
 public:
  static constexpr std::size_t kUserBytes = sizeof(Talk);

  Server(int socket, const ServerOptions& options, Tally& tally)
      : loop_(bench_loop(options.argc, options.argv)),
        server_(std::move(*spate::http::Server::create(*loop_, *this))),
        listener_(std::move(*spate::Listener::adopt(
            *loop_, socket, [this, &tally](spate::Stream stream, const spate::Address&) {
              ++tally.accepted;
              server_.add(std::move(stream));
            }))) {}

  void on_request(spate::http::Exchange exchange) override {
    const bool is_for_all = exchange.request().path() == "/tell";
    spate::http::Fields fields;
    fields.add("Sec-WebSocket-Accept", kAccepted);
    spate::Result<spate::Stream> stream = exchange.upgrade("websocket", fields);
    if (!stream) return;
    Talk::All& all = is_for_all ? told_ : others_;
    all.push_back(std::make_unique<Talk>(std::move(*stream), is_for_all ? &told_ : nullptr));
  }

  void run() { loop_->run(); }
  static void version() { bench_version("0.1.0", nullptr); }

 private:
  std::unique_ptr<spate::Loop> loop_;
  Talk::All told_, others_;
  spate::http::Server server_;
  spate::Listener listener_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
