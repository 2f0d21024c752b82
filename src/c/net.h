// Declarations shared by the files that implement spate_net.h.
#pragma once

#include <type_traits>

#include "c/loop.h"
#include "spate/net/address.h"
#include "spate_net.h"

namespace spate::c {

static_assert(sizeof(spate_address) == sizeof(Address) &&
              alignof(spate_address) == alignof(Address) && std::is_trivially_copyable_v<Address>);

inline const Address& address_of(const spate_address* address) {
  return *reinterpret_cast<const Address*>(address);
}
inline void store(const Address& from, spate_address* to) { new (to) Address(from); }

}  // namespace spate::c
