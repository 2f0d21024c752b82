// Client: forwards calls to its Reconnector.
#include "spate/net/client.h"

#include "base/ask.h"
#include "net/reconnect/reconnector.h"
#include "spate/assert.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

std::unexpected<std::error_code> invalid() { return std::unexpected(sys::error_code(-EINVAL)); }

bool is_good(const TlsContext& context) { return !context || context.is_client(); }

}  // namespace

Client::~Client() { tell(own(), &Reconnector::abandon); }

Result<Client> Client::create(Loop& loop, const Address& address, OnConnected callback,
                              const ClientOptions& options) {
  if (address.family() == Address::Family::none || !is_good(options.tls)) return invalid();
  if (options.tls && !address.is_ip()) return invalid();
  const auto made = Reconnector::make(loop, {.address = address}, std::move(callback), options);
  if (!made) return std::unexpected(made.error());
  return Client(*made);
}

Result<Client> Client::create(Loop& loop, std::string_view host, std::uint16_t port,
                              OnConnected callback, const ClientOptions& options) {
  if (host.empty() || !is_good(options.tls)) return invalid();
  const auto made = Reconnector::make(loop, {.host = std::string(host), .port = port},
                                      std::move(callback), options);
  if (!made) return std::unexpected(made.error());
  return Client(*made);
}

// All calls use this function, which asserts the thread.
Reconnector* Client::own() const {
  SPATE_ASSERT(reconnector_ == nullptr || reconnector_->may_be_touched(), kWrongThread);
  return reconnector_;
}

void Client::connect() { tell(own(), &Reconnector::connect); }
void Client::disconnect() { tell(own(), &Reconnector::disconnect); }
void Client::stop() { tell(own(), &Reconnector::stop); }

Client::State Client::state() const { return ask(own(), &Reconnector::state, State::idle); }
std::uint64_t Client::attempts() const { return ask(own(), &Reconnector::attempts); }
std::uint64_t Client::connections() const { return ask(own(), &Reconnector::connections); }
std::uint32_t Client::failures() const { return ask(own(), &Reconnector::failures); }
std::error_code Client::last_error() const { return ask(own(), &Reconnector::last_error); }
std::string_view Client::last_failure() const { return ask(own(), &Reconnector::last_failure); }
Nanos Client::retry_in() const { return ask(own(), &Reconnector::retry_in); }

}  // namespace spate
