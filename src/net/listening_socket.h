// Sockets that listen.
#pragma once

#include <expected>
#include <system_error>

#include "spate/net/listener.h"
#include "sys/descriptor.h"

namespace spate {

// Errors: Listener::listen()'s.
std::expected<sys::Descriptor, std::error_code> open_listening_socket(const Address& address,
                                                                      const ListenOptions& options);

}  // namespace spate
