// A tunnel through an HTTP proxy by CONNECT (RFC 9110 §9.3.6).
#include <memory>
#include <new>
#include <string>

#include "http/client/connector.h"
#include "http/client/proxy_fields.h"
#include "http/codec/head.h"

namespace spate::http {

namespace {

class HttpTunnel final : public Handshake {
 public:
  explicit HttpTunnel(const Route& route) : route_(route) {}

  std::string greeting() override {
    const bool is_ipv6 = route_.host.find(':') != std::string::npos;
    const std::string host = is_ipv6 ? "[" + route_.host + "]" : route_.host;
    const std::string authority = host + ":" + std::to_string(route_.port);
    std::string text = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n";
    if (!route_.proxy.user.empty())
      text += "Proxy-Authorization: " + basic_credentials(route_.proxy) + "\r\n";
    return text + "\r\n";
  }

  Step next(Bytes bytes) override {
    ResponseHead head;
    const Parsed parsed = parse_response(bytes, looked_at_, HeadLimits(), head);
    looked_at_ = parsed.looked_at;
    if (parsed.state == Parsed::State::unfinished) return {};
    if (parsed.state == Parsed::State::broken) return broken(HttpError::bad_proxy);
    if (is_informational(head.status) && head.status != Status::switching_protocols)
      return skip(bytes, head.size);
    if (!is_success(head.status)) return broken(HttpError::proxy_refused);
    return {.state = Step::State::whole, .used = head.size};
  }

 private:
  static Step broken(std::error_code error) {
    return {.state = Step::State::broken, .error = error};
  }

  Step skip(Bytes bytes, std::size_t size) {
    if (++skipped_ > 32) return broken(HttpError::bad_proxy);
    Step step = next(bytes.subspan(size));
    step.used += size;
    return step;
  }

  const Route& route_;
  std::size_t looked_at_ = 0;
  int skipped_ = 0;
};

}  // namespace

std::unique_ptr<Handshake> make_http_tunnel(const Route& route) {
  return std::unique_ptr<Handshake>(new (std::nothrow) HttpTunnel(route));
}

}  // namespace spate::http
