// Listening sockets.
#pragma once

#include <cstddef>
#include <system_error>
#include <vector>

#include "spate/net/listener.h"
#include "sys/descriptor.h"

namespace spate {

// Errors: Listener::create()'s.
Result<sys::Descriptor> open_listening_socket(const Address& address, const ListenOptions& options);

// `count` sockets at one address, among which the kernel distributes connections. No other process
// may listen there, unless options.reuse_port is set.
Result<std::vector<sys::Descriptor>> open_listening_group(const Address& address,
                                                          const ListenOptions& options,
                                                          std::size_t count);

// Prepares a listening socket of somebody else for a loop. Errors: Listener::adopt()'s.
std::error_code prepare_listening_socket(int fd);

}  // namespace spate
