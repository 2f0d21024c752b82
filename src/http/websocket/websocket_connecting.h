// WebSocketConnecting: a client's handshake. It belongs to its WebSocket, until the server has
// answered.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include "spate/http/call.h"
#include "spate/http/client.h"
#include "spate/http/websocket.h"

namespace spate::http {

class WebSocketConnecting final : public CallHandler {
 public:
  // Of a state that is no more than that. Errors: EINVAL, ENOMEM.
  static std::error_code start(WebSocketState& state, Client& client, std::string_view url,
                               CallOptions call);
  bool is_open() const { return call_.is_open(); }

  void on_response(const Response& response) override;
  void on_upgraded(const Response& response, Stream stream) override;
  void on_closed(std::error_code error) override;

 private:
  explicit WebSocketConnecting(WebSocketState& state) : state_(state) {}
  bool open(Client& client, std::string_view url, CallOptions call);
  bool add_fields(Fields& fields) const;
  bool has_answered_key(const Response& response) const;
  std::error_code enter(const Response& response, Stream stream);

  WebSocketState& state_;
  std::string key_;
  Call call_;
};

}  // namespace spate::http
