// WebSocketConnecting: a client's handshake. Its WebSocket owns it until the server has responded.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include "http/client/call_state.h"
#include "spate/http/call.h"
#include "spate/http/client.h"
#include "spate/http/websocket.h"
#include "spate/timer.h"

namespace spate::http {

class WebSocketConnecting final : public CallHandler, ClientWitness {
 public:
  // Starts the handshake of a new state. Errors: EINVAL, ENOMEM.
  static std::error_code start(WebSocketState& state, Client& client, std::string_view url,
                               CallOptions call);
  // Cancels it: the loop calls on_closed().
  void cancel();
  bool is_open() const { return call_.is_open() || is_lost_.is_active() || is_lost_.is_pending(); }

  void on_response(const Response& response) override;
  void on_upgraded(const Response& response, Stream stream) override;
  void on_closed(std::error_code error) override;

 private:
  explicit WebSocketConnecting(WebSocketState& state);
  void on_client_gone() override;
  bool open(Client& client, std::string_view url, CallOptions call);
  bool add_fields(Fields& fields) const;
  bool has_accepted_key(const Response& response) const;
  std::error_code enter(const Response& response, Stream stream);

  WebSocketState& state_;
  std::string key_;
  Timer is_lost_;  // After cancel(), or after the Client was destroyed: on_closed() is due.
  Call call_;
};

}  // namespace spate::http
