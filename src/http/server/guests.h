// Guests: what connections of a server have become by upgrades, and what its drain is to end as
// well. They may outlive the server.
#pragma once

#include <system_error>

namespace spate::http {

class ServerCore;

class Guests {
 public:
  // nullptr: of no server.
  explicit Guests(ServerCore* host);
  Guests(const Guests&) = delete;
  Guests& operator=(const Guests&) = delete;

  ServerCore* host() const { return host_; }

  // ---- what their server calls

  virtual bool are_gone() const = 0;
  // They are told that it goes. Calls nobody.
  virtual void say_goodbye() = 0;
  // Resets one of those that are left, which is told: this may be gone then.
  virtual void end_one(std::error_code error) = 0;

 protected:
  virtual ~Guests();
  // To be called when they are gone.
  void tell_gone();

 private:
  friend class GuestList;
  ServerCore* host_;
  Guests* next_ = nullptr;
  Guests* previous_ = nullptr;
};

// Those of a server.
class GuestList {
 public:
  GuestList() = default;
  GuestList(const GuestList&) = delete;
  GuestList& operator=(const GuestList&) = delete;

  bool are_gone() const { return first_left() == nullptr; }
  Guests* first_left() const;
  void say_goodbye();
  // The server ends: from here on they have none.
  void disown();

 private:
  friend class Guests;
  void add(Guests& guests);
  void remove(Guests& guests);

  Guests* first_ = nullptr;
};

}  // namespace spate::http
