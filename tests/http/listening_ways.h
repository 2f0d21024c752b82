// The functions that listen by ListenOptions.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "spate/http/server.h"
#include "spate/loop.h"
#include "spate/net/listener.h"
#include "spate/net/server.h"
#include "spate/net/workers.h"
#include "support/listening_sockets.h"

namespace spate::testing {

// None if there is a result.
inline std::error_code refusal_of(const auto& result) {
  return result ? std::error_code() : result.error();
}

class IdleSession : public Session {
 public:
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
};

inline const auto kIgnoreStream = [](Stream, const Address&) {};
inline const auto kSayHello = [](http::Exchange exchange) { exchange.respond("hello\n"); };

// Each function that listens by ListenOptions. Keeps the listeners and servers that it made.
class Listening {
 public:
  using Open = Result<Address> (Listening::*)(const ListenOptions&);
  struct Way {
    const char* name;
    Open open;
    bool is_on_workers;
  };
  static constexpr int kWays = 8;
  static const Way kAll[kWays];

  explicit Listening(Address here = Address::any_ipv6(0), unsigned threads = 2)
      : here_(std::move(here)), workers_(must(Workers::create({.threads = threads}))) {}
  ~Listening() { workers_.reset(); }  // Before what its threads use.
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  Loop& loop() { return *loop_; }
  Loop& loop_that_accepts(const Way& way) { return way.is_on_workers ? workers_->loop(0) : *loop_; }

  Result<Address> by_listener(const ListenOptions& options) {
    auto made = Listener::create(*loop_, here_, keep(), options);
    if (!made) return std::unexpected(made.error());
    listener_ = std::move(*made);
    return listener_.address();
  }
  Result<Address> by_workers(const ListenOptions& options) {
    return workers_->listen(here_, keep(), Balance::reuse_port, options);
  }
  Result<Address> by_sharing_workers(const ListenOptions& options) {
    return workers_->listen(here_, keep(), Balance::round_robin, options);
  }
  Result<Address> by_serve(const ListenOptions& options) {
    auto made = spate::serve<IdleSession>(*loop_, here_, {.listen = options});
    if (!made) return std::unexpected(made.error());
    sessions_ = std::move(*made);
    return sessions_.address();
  }
  Result<Address> by_serve_on_workers(const ListenOptions& options) {
    const auto made = spate::serve<IdleSession>(*workers_, here_, {.listen = options});
    if (!made) return std::unexpected(made.error());
    return made->address();
  }
  Result<Address> by_http_server(const ListenOptions& options) {
    server_ = must(http::Server::create(*loop_, kSayHello));
    return server_.listen(here_, options);
  }
  Result<Address> by_http_serve(const ListenOptions& options) {
    auto made = http::serve(*loop_, here_, kSayHello, {}, options);
    if (!made) return std::unexpected(made.error());
    server_ = std::move(*made);
    return server_.address();
  }
  Result<Address> by_http_serve_on_workers(const ListenOptions& options) {
    const auto made = http::serve(*workers_, here_, kSayHello, {}, {.listen = options});
    if (!made) return std::unexpected(made.error());
    return made->address();
  }

 private:
  // Keeps accepted Streams open, whichever thread they belong to.
  struct Keep {
    Listening* owner;
    void operator()(Stream stream, const Address&) const {
      const std::scoped_lock lock(owner->mutex_);
      owner->accepted_.push_back(std::move(stream));
    }
  };
  Keep keep() { return {this}; }

  const Address here_;
  std::mutex mutex_;
  std::list<Stream> accepted_;
  std::unique_ptr<Loop> loop_ = must(Loop::create());
  std::unique_ptr<Workers> workers_;
  Listener listener_;
  spate::Server<IdleSession> sessions_;
  http::Server server_;
};

inline const Listening::Way Listening::kAll[kWays] = {
    {"Listener::create()", &Listening::by_listener, false},
    {"Workers::listen()", &Listening::by_workers, true},
    {"Workers::listen(), sharing", &Listening::by_sharing_workers, true},
    {"serve()", &Listening::by_serve, false},
    {"serve() on Workers", &Listening::by_serve_on_workers, true},
    {"http::Server::listen()", &Listening::by_http_server, false},
    {"http::serve()", &Listening::by_http_serve, false},
    {"http::serve() on Workers", &Listening::by_http_serve_on_workers, true},
};

}  // namespace spate::testing
