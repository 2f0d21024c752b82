#include "http/server/guests.h"

#include <utility>

#include "http/server/server_core.h"

namespace spate::http {

Guests::Guests(ServerCore* host) : host_(host) {
  if (host_ != nullptr) host_->guests().add(*this);
}

Guests::~Guests() {
  if (host_ != nullptr) host_->guests().remove(*this);
}

void Guests::tell_gone() {
  if (host_ != nullptr) host_->on_guests_gone();
}

void GuestList::add(Guests& guests) {
  guests.next_ = std::exchange(first_, &guests);
  if (guests.next_ != nullptr) guests.next_->previous_ = &guests;
}

void GuestList::remove(Guests& guests) {
  if (guests.next_ != nullptr) guests.next_->previous_ = guests.previous_;
  (guests.previous_ == nullptr ? first_ : guests.previous_->next_) = guests.next_;
}

Guests* GuestList::first_left() const {
  Guests* each = first_;
  while (each != nullptr && each->are_gone()) each = each->next_;
  return each;
}

void GuestList::say_goodbye() {
  for (Guests* each = first_; each != nullptr; each = each->next_) each->say_goodbye();
}

void GuestList::disown() {
  for (Guests* each = std::exchange(first_, nullptr); each != nullptr; each = each->next_)
    each->host_ = nullptr;
}

}  // namespace spate::http
