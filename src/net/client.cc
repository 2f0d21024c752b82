// Client's face, over its Reconnector.
#include "spate/net/client.h"

#include "net/reconnector.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

std::unexpected<std::error_code> invalid() { return std::unexpected(sys::error_code(-EINVAL)); }

}  // namespace

Client::~Client() {
  if (reconnector_ != nullptr) reconnector_->abandon();
}

Client::Made Client::make(Loop& loop, const Address& address, OnConnected callback,
                          const ClientOptions& options) {
  if (address.family() == Address::Family::none) return invalid();
  const auto made = Reconnector::make(loop, {.address = address}, std::move(callback), options);
  if (!made) return std::unexpected(made.error());
  return Client(*made);
}

Client::Made Client::make(Loop& loop, std::string_view host, std::uint16_t port,
                          OnConnected callback, const ClientOptions& options) {
  if (host.empty()) return invalid();
  const auto made = Reconnector::make(loop, {.host = std::string(host), .port = port},
                                      std::move(callback), options);
  if (!made) return std::unexpected(made.error());
  return Client(*made);
}

void Client::connect() {
  if (reconnector_ != nullptr) reconnector_->connect();
}
void Client::disconnect() {
  if (reconnector_ != nullptr) reconnector_->disconnect();
}
void Client::stop() {
  if (reconnector_ != nullptr) reconnector_->stop();
}

Client::State Client::state() const {
  return reconnector_ == nullptr ? State::idle : reconnector_->state();
}
std::uint64_t Client::attempts() const {
  return reconnector_ == nullptr ? 0 : reconnector_->attempts();
}
std::uint64_t Client::connections() const {
  return reconnector_ == nullptr ? 0 : reconnector_->connections();
}
std::uint32_t Client::failures() const {
  return reconnector_ == nullptr ? 0 : reconnector_->failures();
}
std::error_code Client::last_error() const {
  return reconnector_ == nullptr ? std::error_code() : reconnector_->last_error();
}
Nanos Client::retry_in() const {
  return reconnector_ == nullptr ? Nanos{0} : reconnector_->retry_in();
}

}  // namespace spate
