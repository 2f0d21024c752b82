// Talking: one end of a WebSocket of a PairWorld, and all operations on it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "spate/http/websocket.h"

namespace spate::testing {

class PairWorld;

class Talking final : public http::WebSocketHandler {
 public:
  // The other end has the same number; 0: it does not exist.
  Talking(PairWorld& world, bool is_client, std::size_t number)
      : is_client_(is_client), number_(number), world_(world) {}

  // Opens the client's side.
  void connect();
  // Opens the server's side. Returns false if the exchange could not be upgraded.
  bool accept(http::Exchange exchange);
  // Performs a random operation. Its owner may destroy it meanwhile.
  void act();
  // Lifts everything that delays its end.
  void finish();
  // No callback may come from now on.
  void silence() { is_silent_ = true; }
  bool is_open() const { return socket_.is_open(); }
  bool is_client() const { return is_client_; }
  std::size_t number() const { return number_; }
  void lose_other_end() { number_ = 0; }
  void expect_over() const;

  void on_open() override;
  void on_message(http::MessageKind kind, Bytes bytes) override;
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
