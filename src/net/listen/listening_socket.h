// Makes listening sockets.
#pragma once

#include <cstddef>
#include <system_error>
#include <vector>

#include "spate/net/listener.h"
#include "sys/descriptor.h"

namespace spate {

// Errors: those of Listener::create().
Result<sys::Descriptor> open_listening_socket(const Address& address, const ListenOptions& options);

// Makes `count` sockets at one address, among which the kernel distributes connections. No other
// process may listen there, unless options.reuse_port is set.
Result<std::vector<sys::Descriptor>> open_listening_group(const Address& address,
                                                          const ListenOptions& options,
                                                          std::size_t count);

// Prepares a socket that another program has made. Errors: those of Listener::adopt().
std::error_code prepare_listening_socket(int fd, const ListenOptions& options);

}  // namespace spate
