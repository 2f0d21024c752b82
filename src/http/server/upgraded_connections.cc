#include "http/server/upgraded_connections.h"

#include <utility>

#include "http/server/server_core.h"

namespace spate::http {

UpgradedConnections::UpgradedConnections(ServerCore* host) : host_(host) {
  if (host_ != nullptr) host_->upgraded().add(*this);
}

UpgradedConnections::~UpgradedConnections() {
  if (host_ != nullptr) host_->upgraded().remove(*this);
}

void UpgradedConnections::report_closed_all() {
  if (host_ != nullptr) host_->on_upgraded_closed();
}

void UpgradedList::add(UpgradedConnections& upgraded) {
  upgraded.next_ = std::exchange(first_, &upgraded);
  if (upgraded.next_ != nullptr) upgraded.next_->previous_ = &upgraded;
}

void UpgradedList::remove(UpgradedConnections& upgraded) {
  if (upgraded.next_ != nullptr) upgraded.next_->previous_ = upgraded.previous_;
  (upgraded.previous_ == nullptr ? first_ : upgraded.previous_->next_) = upgraded.next_;
}

UpgradedConnections* UpgradedList::first_open() const {
  UpgradedConnections* each = first_;
  while (each != nullptr && each->are_gone()) each = each->next_;
  return each;
}

void UpgradedList::say_goodbye() {
  for (UpgradedConnections* each = first_; each != nullptr; each = each->next_) each->say_goodbye();
}

void UpgradedList::disown() {
  for (UpgradedConnections* each = std::exchange(first_, nullptr); each != nullptr;
       each = each->next_)
    each->host_ = nullptr;
}

}  // namespace spate::http
