#include "http/server/upgraded_connections.h"

#include "http/server/server_core.h"

namespace spate::http {

UpgradedConnections::UpgradedConnections(ServerCore* host) : host_(host) {
  if (host_ != nullptr) host_->upgraded().add(*this);
}

UpgradedConnections::~UpgradedConnections() {
  if (host_ != nullptr) unlink();
}

void UpgradedConnections::report_closed_all() {
  if (host_ != nullptr) host_->on_upgraded_closed();
}

UpgradedConnections* UpgradedList::first_open() const {
  UpgradedConnections* each = all_.first();
  while (each != nullptr && each->are_gone()) each = all_.after(*each);
  return each;
}

void UpgradedList::say_goodbye() {
  all_.for_each([](UpgradedConnections& each) { each.say_goodbye(); });
}

void UpgradedList::disown() {
  while (UpgradedConnections* each = all_.pop_front()) each->host_ = nullptr;
}

}  // namespace spate::http
