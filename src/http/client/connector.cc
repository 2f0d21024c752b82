#include "http/client/connector.h"

#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/loop.h"
#include "spate/named_callback.h"

namespace spate::http {

// Begins in a later turn: no user code, such as an OpenStream, may be called from inside a call.
Connector::Connector(Loop& loop, ClientOptions& options, const Route& route, ConnectorUser& user)
    : loop_(loop),
      options_(options),
      route_(route),
      user_(user),
      begin_(loop, named<Timer, ActiveKind::connecting>([this] { open(); })),
      timeout_(loop,
               named<Timer, ActiveKind::connecting>([this] { fail(Error::connect_timeout); })) {
  open_later();
  if (options.connect.timeout > Nanos{0}) timeout_.start(options.connect.timeout);
}

void Connector::open_later() {
  if (!begin_.start(Nanos{0})) begin_.feed();
}

void Connector::open() {
  if (is_agreed_) return on_way(std::move(stream_));
  const Proxy& proxy = route_.proxy;
  if (proxy.kind == ProxyKind::none) {
    connect_to(route_.host, route_.port);
  } else {
    connect_to(proxy.host, proxy.port);
  }
}

void Connector::connect_to(std::string_view host, std::uint16_t port) {
  if (options_.open) return on_connected_to(options_.open(host, port));
  ConnectOptions options = options_.connect;
  options.timeout = Nanos{0};  // The Connector's own timer covers it.
  auto callback = [this](Result<Stream> stream) { on_connected_to(std::move(stream)); };
  const bool is_direct = route_.proxy.kind == ProxyKind::none;
  if (is_direct && route_.address.family() != Address::Family::none) {
    connecting_ = spate::connect(loop_, route_.address, std::move(callback), options);
  } else {
    connecting_ = spate::connect(loop_, host, port, std::move(callback), options);
  }
}

void Connector::on_connected_to(Result<Stream> stream) {
  if (!stream) return fail(stream.error());
  const ProxyKind kind = route_.proxy.kind;
  if (kind == ProxyKind::none || route_.sends_absolute_url()) return on_way(std::move(*stream));
  handshake_ = kind == ProxyKind::socks5 ? make_socks5(route_) : make_http_tunnel(route_);
  if (handshake_ == nullptr) return fail(system_error(ENOMEM));
  stream_ = std::move(*stream);
  stream_.start(*this);
  stream_.write(handshake_->greeting());
}

std::size_t Connector::on_data(Bytes bytes) {
  using State = Handshake::Step::State;
  std::size_t used = 0;
  if (is_agreed_) return fail(HttpError::bad_proxy), bytes.size();
  Handshake::Step step;
  do {
    step = handshake_->next(bytes.subspan(used));
    used += step.used;
    if (!step.reply.empty()) stream_.write(step.reply);
  } while (step.state == State::unfinished && step.used > 0 && used < bytes.size());
  if (step.state == State::unfinished) return used;
  if (step.state == State::broken) {
    fail(step.error);
  } else if (used < bytes.size()) {  // The server must not send anything before the request.
    fail(HttpError::bad_proxy);
  } else {  // Begins TLS after this returns: only then are the proxy's bytes used up.
    is_agreed_ = true;
    open_later();
  }
  return bytes.size();
}

void Connector::on_end() { fail(HttpError::bad_proxy); }
void Connector::on_closed(std::error_code error) {
  fail(error ? error : std::error_code(HttpError::bad_proxy));
}

// Connected to the server, or to a proxy that accepts its requests.
void Connector::on_way(Stream stream) {
  if (!route_.proxy_header.empty() && !stream.write(route_.proxy_header))
    return fail(system_error(ENOMEM));
  if (!route_.is_secure) return done(std::move(stream));
  const bool is_other = route_.is_http1 && options_.tls_for_upgrades;
  const TlsContext& tls = is_other ? options_.tls_for_upgrades : options_.tls;
  connecting_ = start_tls(std::move(stream), tls, route_.host, [this](auto secured) {
    done(std::move(secured));
  });
}

void Connector::done(TlsResult<Stream> stream) {
  timeout_.stop();
  user_.on_made(*this, std::move(stream));
}

}  // namespace spate::http
