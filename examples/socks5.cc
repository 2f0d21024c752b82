// A SOCKS5 proxy (RFC 1928): CONNECT without authentication.
//   socks5 1080          use it: curl --socks5 localhost:1080 http://example.org/
#include <csignal>
#include <iostream>
#include <optional>
#include <string>

#include "spate/net/connect.h"
#include "spate/net/framing.h"
#include "spate/net/relay.h"
#include "spate/net/resolver.h"
#include "spate/net/server.h"

using spate::Address;
using spate::Bytes;
using spate::Frame;
using spate::text_of;
using namespace std::chrono_literals;

namespace {

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

std::string wire_format(const Address& address) {
  std::string wire(1, address.family() == Address::Family::ipv6 ? kIpv6 : kIpv4);
  wire += text_of(address.ip_bytes());
  wire += static_cast<char>(address.port() >> 8);
  wire += static_cast<char>(address.port());
  return wire;
}

std::uint16_t port_in(Bytes request) {
  const Bytes port = request.last(2);
  return static_cast<std::uint16_t>(std::to_integer<int>(port[0]) << 8 |
                                    std::to_integer<int>(port[1]));
}

std::string host_in(Bytes request) {
  const Bytes host = request.subspan(4, request.size() - 6);
  if (text_of(request)[3] == kName) return std::string(text_of(host.subspan(1)));
  return spate::must(Address::ip(host, 0)).host();
}

// Parses version, command, zero, address type, address and port. Returns nothing for an unknown
// address type.
std::optional<Frame> frame_request(Bytes bytes) {
  if (bytes.size() < 4) return Frame::unfinished(4);
  switch (text_of(bytes)[3]) {
    case kIpv4:
      return spate::FixedSize{4 + 4 + 2}.next(bytes);
    case kIpv6:
      return spate::FixedSize{4 + 16 + 2}.next(bytes);
    case kName:
      return spate::LengthField{.width = 1, .offset = 4, .adjustment = 2, .keep_header = true}.next(
          bytes);
    default:
      return {};
  }
}

class Client : public spate::Session {
 public:
  void on_open() override { stream().set_deadline(5s); }
  std::size_t on_data(Bytes bytes) override {
    if (text_of(bytes)[0] != kVersion) return hang_up(bytes);
    return is_greeted_ ? take_request(bytes) : take_greeting(bytes);
  }

 private:
  std::size_t take_greeting(Bytes bytes) {
    const Frame greeting = spate::LengthField{.width = 1, .offset = 1}.next(bytes);
    if (greeting.state != Frame::State::whole) return 0;
    if (text_of(greeting.message).find(kNoAuthentication) == std::string_view::npos) {
      stream().write(std::string{kVersion, kNoneAcceptable});
      return hang_up(bytes);
    }
    stream().write(std::string{kVersion, kNoAuthentication});
    is_greeted_ = true;
    const Bytes rest = bytes.subspan(greeting.size);
    return greeting.size + (rest.empty() ? 0 : on_data(rest));
  }
  std::size_t take_request(Bytes bytes) {
    const std::optional<Frame> request = frame_request(bytes);
    if (!request) return refuse(Reply::address_type_not_supported), bytes.size();
    if (request->state != Frame::State::whole) return 0;
    if (text_of(bytes)[1] != kConnect) return refuse(Reply::command_not_supported), bytes.size();
    stream().set_deadline(0s);
    stream().pause();
    connecting_ = connect(stream().loop(), host_in(request->message), port_in(request->message),
                          spate::bind<&Client::on_server>(this), {.timeout = 20s});
    return request->size;
  }
  void on_server(spate::Result<spate::Stream> server) {
    if (!server) return refuse(reply_for(server.error()));
    answer(Reply::succeeded, server->local_address());
    relaying_ = relay(std::move(stream()), std::move(*server),
                      [this](const spate::RelayResult&) { abort(); }, {.idle_timeout = 5min});
  }

  void answer(Reply reply, const Address& bound) {
    stream().write(std::string{kVersion, static_cast<char>(reply), '\0'} + wire_format(bound));
  }
  void refuse(Reply reply) {
    answer(reply, Address::any_ipv4(0));
    stream().close();
  }
  std::size_t hang_up(Bytes bytes) {
    stream().close();
    return bytes.size();
  }

  spate::Connecting connecting_;
  spate::Relaying relaying_;
  bool is_greeted_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: socks5 [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(Address::parse_listen(argv[1]));
  auto server = spate::must(spate::serve<Client>(*loop, address));

  spate::must(loop->on_signal(SIGTERM, [&] { loop->stop(); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
