// Sockets that listen.
#pragma once

#include <system_error>

#include "spate/net/listener.h"
#include "sys/descriptor.h"

namespace spate {

// Errors: Listener::create()'s.
Result<sys::Descriptor> open_listening_socket(const Address& address, const ListenOptions& options);

// Makes a socket that listens already fit for a loop. Errors: Listener::adopt()'s.
std::error_code prepare_listening_socket(int fd);

}  // namespace spate
