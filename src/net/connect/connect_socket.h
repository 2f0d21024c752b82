// Connects a socket, for connect() and Client, which make a Connection of it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "spate/error.h"
#include "spate/function.h"
#include "spate/net/connect.h"
#include "sys/descriptor.h"

namespace spate {

// Called once, from the loop and never from inside connect_socket(). It may destroy the Connecting.
using OnSocket = Function<void(Result<sys::Descriptor>)>;

Connecting connect_socket(Loop& loop, const std::vector<Address>& addresses, OnSocket callback,
                          const ConnectOptions& options);
Connecting connect_socket(Loop& loop, std::string_view host, std::uint16_t port, OnSocket callback,
                          const ConnectOptions& options);

}  // namespace spate
