// Client's face, over its Reconnector.
#include "spate/net/client.h"

#include "net/connect/reconnector.h"
#include "spate/assert.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

std::unexpected<std::error_code> invalid() { return std::unexpected(sys::error_code(-EINVAL)); }

}  // namespace

Client::~Client() {
  if (Reconnector* reconnector = own()) reconnector->abandon();
}

Result<Client> Client::create(Loop& loop, const Address& address, OnConnected callback,
                              const ClientOptions& options) {
  if (address.family() == Address::Family::none) return invalid();
  const auto made = Reconnector::make(loop, {.address = address}, std::move(callback), options);
  if (!made) return std::unexpected(made.error());
  return Client(*made);
}

Result<Client> Client::create(Loop& loop, std::string_view host, std::uint16_t port,
                              OnConnected callback, const ClientOptions& options) {
  if (host.empty()) return invalid();
  const auto made = Reconnector::make(loop, {.host = std::string(host), .port = port},
                                      std::move(callback), options);
  if (!made) return std::unexpected(made.error());
  return Client(*made);
}

// For all that is done with one: from another thread, it is found here.
Reconnector* Client::own() const {
  SPATE_ASSERT(reconnector_ == nullptr || reconnector_->may_be_touched(), kWrongThread);
  return reconnector_;
}

void Client::connect() {
  if (Reconnector* reconnector = own()) reconnector->connect();
}
void Client::disconnect() {
  if (Reconnector* reconnector = own()) reconnector->disconnect();
}
void Client::stop() {
  if (Reconnector* reconnector = own()) reconnector->stop();
}

Client::State Client::state() const {
  const Reconnector* reconnector = own();
  return reconnector == nullptr ? State::idle : reconnector->state();
}
std::uint64_t Client::attempts() const {
  const Reconnector* reconnector = own();
  return reconnector == nullptr ? 0 : reconnector->attempts();
}
std::uint64_t Client::connections() const {
  const Reconnector* reconnector = own();
  return reconnector == nullptr ? 0 : reconnector->connections();
}
std::uint32_t Client::failures() const {
  const Reconnector* reconnector = own();
  return reconnector == nullptr ? 0 : reconnector->failures();
}
std::error_code Client::last_error() const {
  const Reconnector* reconnector = own();
  return reconnector == nullptr ? std::error_code() : reconnector->last_error();
}
Nanos Client::retry_in() const {
  const Reconnector* reconnector = own();
  return reconnector == nullptr ? Nanos{0} : reconnector->retry_in();
}

}  // namespace spate
