// Talking: one end of a WebSocket of a PairWorld, and all that may be done with it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "spate/http/websocket.h"

namespace spate::testing {

class PairWorld;

class Talking final : public http::WebSocketHandler {
 public:
  // The other end has the same number; 0: there is none.
  Talking(PairWorld& world, bool is_client, std::size_t number)
      : is_client_(is_client), number_(number), world_(world) {}

  // Of a client.
  void connect();
  // Of a server; false if the exchange could not be upgraded.
  bool accept(http::Exchange exchange);
  // Something of what its user may do. It may be gone afterwards.
  void act();
  // Holds nobody up any more.
  void finish();
  // Nothing is to be told any more.
  void silence() { is_silent_ = true; }
  bool is_open() const { return socket_.is_open(); }
  bool is_client() const { return is_client_; }
  std::size_t number() const { return number_; }
  void lose_other_end() { number_ = 0; }
  void expect_over() const;

  void on_open() override;
  void on_message(Bytes bytes, http::MessageKind kind) override;
  void on_pong(Bytes bytes) override;
  void on_drained() override;
  void on_closed(http::CloseCode code, std::string_view reason, std::error_code error) override;

 private:
  void note(const char* what);
  http::WebSocketOptions options();
  void talk();

  const bool is_client_;
  std::size_t number_;
  PairWorld& world_;
  std::size_t heard_ = 0;
  bool is_open_ = false;
  bool is_silent_ = false;
  bool is_closed_ = false;
  http::WebSocket socket_;  // Destroyed first.
};

}  // namespace spate::testing
