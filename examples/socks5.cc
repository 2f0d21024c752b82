// A SOCKS5 proxy (RFC 1928): CONNECT without authentication. A side that reads slowly slows the
// other one down, the end of a side is passed on while the other still flows, and so is a reset.
// With an address as argument it serves there; without one it shows itself that it works.
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "spate/delegate.h"
#include "spate/loop.h"
#include "spate/net/connect.h"
#include "spate/net/framing.h"
#include "spate/net/listener.h"
#include "spate/net/relay.h"
#include "spate/net/resolver.h"
#include "spate/net/stream.h"

using spate::Address;
using spate::Bytes;
using spate::Frame;
using spate::Stream;
using spate::text_of;
using namespace std::chrono_literals;

namespace {

constexpr spate::Nanos kHandshakeLimit = 5s;
constexpr spate::Nanos kConnectLimit = 20s;
constexpr spate::Nanos kIdleLimit = 5min;

constexpr char kVersion = 5;
constexpr char kNoAuthentication = 0;
constexpr char kNoneAcceptable = '\xff';
constexpr char kConnect = 1;
enum AddressType : char { kIpv4 = 1, kName = 3, kIpv6 = 4 };

enum class Reply : char {
  succeeded = 0,
  general_failure = 1,
  network_unreachable = 3,
  host_unreachable = 4,
  connection_refused = 5,
  command_not_supported = 7,
  address_type_not_supported = 8,
};

Reply reply_for(std::error_code error) {
  if (error == std::errc::connection_refused) return Reply::connection_refused;
  if (error == std::errc::network_unreachable) return Reply::network_unreachable;
  if (error == std::errc::host_unreachable || error == std::errc::timed_out ||
      error == spate::Error::connect_timeout || error.category() == spate::name_category())
    return Reply::host_unreachable;
  return Reply::general_failure;
}

// An address and port as the protocol has them.
std::string wire_format(const Address& address) {
  std::string wire(1, address.family() == Address::Family::ipv6 ? kIpv6 : kIpv4);
  wire += text_of(address.ip_bytes());
  wire += static_cast<char>(address.port() >> 8);
  wire += static_cast<char>(address.port());
  return wire;
}

// A client: one that has not yet said where it wants to go, or is on its way there, or through.
class Client final : public spate::StreamHandler {
 public:
  explicit Client(Stream client) : client_(std::move(client)) {
    client_.set_deadline(kHandshakeLimit);
    client_.start(*this);
  }

 private:
  // Versions, then the methods offered, then where to: what is not there yet comes again.
  std::size_t on_data(Bytes bytes) override {
    const std::string_view text = text_of(bytes);
    if (text[0] != kVersion) return hang_up(bytes);
    if (is_greeted_) return take_request(bytes);
    const Frame greeting = spate::LengthField{.width = 1, .offset = 1}.next(bytes);
    if (greeting.state != Frame::State::whole) return 0;
    if (text_of(greeting.message).find(kNoAuthentication) == std::string_view::npos) {
      client_.write(std::string{kVersion, kNoneAcceptable});
      return hang_up(bytes);
    }
    client_.write(std::string{kVersion, kNoAuthentication});
    is_greeted_ = true;
    const Bytes rest = bytes.subspan(greeting.size);
    return greeting.size + (rest.empty() ? 0 : on_data(rest));
  }
  void on_closed(std::error_code) override { delete this; }

  std::size_t take_request(Bytes bytes) {
    const std::optional<Frame> request = frame_request(bytes);
    if (!request) return refuse(Reply::address_type_not_supported), bytes.size();
    if (request->state != Frame::State::whole) return 0;
    if (text_of(bytes)[1] != kConnect) return refuse(Reply::command_not_supported), bytes.size();
    client_.set_deadline(0s);
    client_.pause();
    go_to(request->message);
    return request->size;
  }
  // Version, command, nothing, type of address, address, port.
  static std::optional<Frame> frame_request(Bytes bytes) {
    if (bytes.size() < 4) return Frame::unfinished(4);
    switch (text_of(bytes)[3]) {
      case kIpv4:
        return spate::FixedSize{4 + 4 + 2}.next(bytes);
      case kIpv6:
        return spate::FixedSize{4 + 16 + 2}.next(bytes);
      case kName:
        return spate::LengthField{.width = 1, .offset = 4, .adjustment = 2, .keep_header = true}
            .next(bytes);
      default:
        return {};
    }
  }
  static std::uint16_t port_of(Bytes request) {
    const Bytes port = request.last(2);
    return static_cast<std::uint16_t>(std::to_integer<int>(port[0]) << 8 |
                                      std::to_integer<int>(port[1]));
  }

  void go_to(Bytes request) {
    const Bytes host = request.subspan(4, request.size() - 6);
    const bool is_name = text_of(request)[3] == kName;
    const std::string name =
        is_name ? std::string(text_of(host.subspan(1))) : spate::must(Address::ip(host, 0)).host();
    connecting_ = connect(client_.loop(), name, port_of(request),
                          spate::bind<&Client::on_server>(this), {.timeout = kConnectLimit});
  }
  void on_server(spate::Result<Stream> server) {
    if (!server) return refuse(reply_for(server.error()));
    answer(Reply::succeeded, server->local_address());
    relaying_ =
        relay(std::move(client_), std::move(*server),
              [this](const spate::RelayResult&) { delete this; }, {.idle_timeout = kIdleLimit});
  }

  void answer(Reply reply, const Address& bound) {
    client_.write(std::string{kVersion, static_cast<char>(reply), '\0'} + wire_format(bound));
  }
  void refuse(Reply reply) {
    answer(reply, Address::any_ipv4(0));
    delete this;
  }
  std::size_t hang_up(Bytes bytes) {
    delete this;
    return bytes.size();
  }

  Stream client_;
  spate::Connecting connecting_;
  spate::Relaying relaying_;
  bool is_greeted_ = false;
};

// Sends a large page to whoever comes.
class Origin final : public spate::StreamHandler {
 public:
  static constexpr std::size_t kPage = 3'000'000;

  explicit Origin(Stream stream) : stream_(std::move(stream)) {
    stream_.start(*this);
    stream_.write(std::string(kPage, '.'));
    stream_.end();
  }

 private:
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code) override { delete this; }

  Stream stream_;
};

// Asks the proxy for the origin's page, all in one message.
class Visitor final : public spate::StreamHandler {
 public:
  static constexpr std::size_t kAnswers = 2 + 4 + 4 + 2;

  Visitor(spate::Loop& loop, const Address& proxy, const Address& origin) {
    connecting_ = connect(loop, proxy, [this, origin](spate::Result<Stream> stream) {
      stream_ = std::move(stream).value();
      stream_.start(*this);
      stream_.write(std::string{kVersion, 1, kNoAuthentication} +
                    std::string{kVersion, kConnect, '\0'} + wire_format(origin));
    });
  }
  std::size_t received() const { return received_; }

 private:
  std::size_t on_data(Bytes bytes) override {
    received_ += bytes.size();
    return bytes.size();
  }
  void on_closed(std::error_code) override { stream_.loop().stop(); }

  spate::Connecting connecting_;
  Stream stream_;
  std::size_t received_ = 0;
};

int demonstrate(spate::Loop& loop, const Address& proxy) {
  const spate::Listener origin = spate::must(spate::Listener::create(
      loop, Address::loopback_ipv4(0),
      [](Stream stream, const Address&) { new Origin(std::move(stream)); }));
  const Visitor visitor(loop, proxy, origin.address());
  loop.run();
  std::printf("%zu bytes came through the proxy\n", visitor.received());
  return visitor.received() == Visitor::kAnswers + Origin::kPage ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  const Address address =
      argc > 1 ? spate::must(Address::parse(argv[1])) : Address::loopback_ipv4(0);
  const spate::Listener proxy = spate::must(spate::Listener::create(
      *loop, address, [](Stream client, const Address&) { new Client(std::move(client)); }));
  if (argc == 1) return demonstrate(*loop, proxy.address());

  if (loop->on_signal(SIGTERM, [&loop] { loop->stop(); })) return 1;
  std::puts(proxy.address().to_string().c_str());
  std::fflush(stdout);
  loop->run();
  return 0;
}
