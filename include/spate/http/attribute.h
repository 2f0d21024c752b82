// Attribute: the key of a typed value that one part of a program attaches to an Exchange, and
// another part reads: the user that an authentication found, the id of the request.
//
//   inline constexpr spate::http::Attribute<User> kUser;
//
//   exchange.set_attribute(kUser, User{"ada"});              // in the middleware
//   const User* user = exchange.request().attribute(kUser);  // in the handler, and in the log
//
// An Attribute is identified by its address: define it once, at namespace scope, as above.
//
// Ownership: the Exchange owns the values. They are destroyed, in reverse order, with the Exchange
// or at the end of the exchange, whichever is later.
// Threads: the loop's thread only.
#pragma once

#include <utility>

namespace spate::http {

template <class T>
class Attribute {
 public:
  constexpr Attribute() = default;
  Attribute(const Attribute&) = delete;
  Attribute& operator=(const Attribute&) = delete;

 private:
  [[maybe_unused]] char address_ = 0;
};

// Not for programs: a value with its key.
struct AttributeNode {
  const void* key;
  void (*destroy)(AttributeNode* node);
  AttributeNode* next = nullptr;
};

template <class T>
struct AttributeValue final : AttributeNode {
  AttributeValue(const Attribute<T>& attribute, T&& of)
      : AttributeNode{&attribute,
                      [](AttributeNode* node) { delete static_cast<AttributeValue*>(node); }},
        value(std::move(of)) {}
  T value;
};

}  // namespace spate::http
