// Connector: makes one connection for a route, through a proxy if there is one. All connections of
// a Client are made here.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "http/client/route.h"
#include "spate/error.h"
#include "spate/http/client.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"
#include "spate/net/tls.h"
#include "spate/timer.h"

namespace spate::http {

// The handshake with a proxy, after which its connection leads to the server.
class Handshake {
 public:
  virtual ~Handshake() = default;
  // Returns the first message.
  virtual std::string greeting() = 0;
  struct Step {
    enum class State : std::uint8_t { unfinished, whole, broken };
    State state = State::unfinished;
    std::size_t used = 0;
    std::string reply{};  // Sent next.
    std::error_code error{};
  };
  virtual Step next(Bytes bytes) = 0;
};
std::unique_ptr<Handshake> make_http_tunnel(const Route& route);
std::unique_ptr<Handshake> make_socks5(const Route& route);

class Connector;

class ConnectorUser {
 public:
  // Called once, by the loop; may destroy the Connector.
  virtual void on_made(Connector& connector, TlsResult<Stream> stream) = 0;

 protected:
  ~ConnectorUser() = default;
};

class Connector final : public StreamHandler {
 public:
  Connector(Loop& loop, ClientOptions& options, const Route& route, ConnectorUser& user);
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  ~Connector() = default;

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_closed(std::error_code error) override;

 private:
  void open();
  void open_later();
  void on_connected_to(Result<Stream> stream);
  void on_way(Stream stream);
  void done(TlsResult<Stream> stream);
  // The text of the failure is that of the error.
  void fail(std::error_code error) { done(std::unexpected(TlsFailure{error, {}})); }
  void connect_to(std::string_view host, std::uint16_t port);

  Loop& loop_;
  ClientOptions& options_;
  const Route& route_;
  ConnectorUser& user_;
  Connecting connecting_;
  Stream stream_;  // During the handshake with a proxy.
  std::unique_ptr<Handshake> handshake_;
  bool is_agreed_ = false;
  Timer begin_;
  Timer timeout_;
};

}  // namespace spate::http
