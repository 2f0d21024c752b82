// SOCKS5 (RFC 1928), with a user name and password if set (RFC 1929).
#include <cerrno>
#include <memory>
#include <new>
#include <string>

#include "http/client/connector.h"
#include "http/codec/system_error.h"

namespace spate::http {

namespace {

constexpr char kVersion = 5;
constexpr char kNoCredentials = 0;
constexpr char kPassword = 2;
constexpr char kPasswordVersion = 1;
constexpr char kConnect = 1;
constexpr char kReserved = 0;
enum AddressType : char { kIpv4 = 1, kName = 3, kIpv6 = 4 };

// Returns the error of a reply other than "succeeded".
std::error_code error_of_reply(char reply) {
  switch (reply) {
    case 3:
      return system_error(ENETUNREACH);
    case 4:
      return system_error(EHOSTUNREACH);
    case 5:
      return system_error(ECONNREFUSED);
    default:
      return HttpError::proxy_refused;
  }
}

void append_counted(std::string& text, std::string_view part) {
  text += static_cast<char>(part.size());
  text += part;
}

class Socks5 final : public Handshake {
 public:
  explicit Socks5(const Route& route) : route_(route) {}

  std::string greeting() override {
    if (route_.proxy.user.empty()) return {kVersion, 1, kNoCredentials};
    return {kVersion, 2, kNoCredentials, kPassword};
  }

  Step next(Bytes bytes) override {
    const std::string_view text = text_of(bytes);
    if (place_ == Place::reply) return take_reply(text);
    if (text.size() < 2) return {};
    Step step = place_ == Place::method ? take_method(text) : take_verdict(text);
    step.used = 2;
    return step;
  }

 private:
  enum class Place : std::uint8_t { method, verdict, reply };

  static Step broken(std::error_code error) {
    return {.state = Step::State::broken, .error = error};
  }

  Step take_method(std::string_view text) {
    if (text[0] != kVersion) return broken(HttpError::bad_proxy);
    if (text[1] == kNoCredentials) return ask();
    if (text[1] != kPassword || route_.proxy.user.empty()) return broken(HttpError::proxy_refused);
    place_ = Place::verdict;
    std::string credentials(1, kPasswordVersion);
    append_counted(credentials, route_.proxy.user);
    append_counted(credentials, route_.proxy.password);
    return {.reply = std::move(credentials)};
  }

  Step take_verdict(std::string_view text) {
    if (text[0] != kPasswordVersion) return broken(HttpError::bad_proxy);
    if (text[1] != 0) return broken(HttpError::proxy_refused);
    return ask();
  }

  // Requests a connection to the server, by name unless the host is an address.
  Step ask() {
    place_ = Place::reply;
    std::string request{kVersion, kConnect, kReserved};
    const Result<Address> address = Address::ip(route_.host, route_.port);
    if (address && address->family() == Address::Family::ipv4) {
      request += kIpv4;
      request += text_of(address->ip_bytes());
    } else if (address && address->family() == Address::Family::ipv6) {
      request += kIpv6;
      request += text_of(address->ip_bytes());
    } else {
      request += kName;
      append_counted(request, route_.host);
    }
    request += static_cast<char>(route_.port >> 8);
    request += static_cast<char>(route_.port);
    return {.reply = std::move(request)};
  }

  Step take_reply(std::string_view text) {
    constexpr std::size_t kFront = 4;
    if (text.size() <= kFront) return {};
    if (text[0] != kVersion || text[2] != kReserved) return broken(HttpError::bad_proxy);
    if (text[1] != 0) return broken(error_of_reply(text[1]));
    const std::size_t address = size_of_address(text[3], text[4]);
    if (address == 0) return broken(HttpError::bad_proxy);
    const std::size_t size = kFront + address + 2;
    if (text.size() < size) return {};
    return {.state = Step::State::whole, .used = size};
  }

  static std::size_t size_of_address(char type, char first) {
    switch (type) {
      case kIpv4:
        return 4;
      case kIpv6:
        return 16;
      case kName:
        return 1 + static_cast<std::size_t>(static_cast<unsigned char>(first));
      default:
        return 0;
    }
  }

  const Route& route_;
  Place place_ = Place::method;
};

}  // namespace

std::unique_ptr<Handshake> make_socks5(const Route& route) {
  return std::unique_ptr<Handshake>(new (std::nothrow) Socks5(route));
}

}  // namespace spate::http
