// spate_address: wraps an Address.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "c/net.h"
#include "spate_net.h"

using namespace spate;
using c::address_of;

namespace {

int store(const Result<Address>& result, spate_address* address) {
  if (!result) return c::to_code(result.error());
  c::store(*result, address);
  return 0;
}

}  // namespace

int spate_address_parse(spate_address* address, const char* text) {
  return text == nullptr ? -EINVAL : store(Address::parse(text), address);
}
int spate_address_parse_listen(spate_address* address, const char* text) {
  return text == nullptr ? -EINVAL : store(Address::parse_listen(text), address);
}
int spate_address_from_system(spate_address* address, const void* from, size_t size) {
  return from == nullptr ? -EINVAL : store(Address::from_system(from, size), address);
}

const void* spate_address_system(const spate_address* address, size_t* size) {
  *size = address_of(address).size();
  return address_of(address).data();
}

const char* spate_address_text(const spate_address* address, char* text, size_t size) {
  return c::copy_text(address_of(address).to_string(), text, size);
}

uint16_t spate_address_port(const spate_address* address) { return address_of(address).port(); }
