// The list of backends, by name. A new one adds a line here and one in registry.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

// macOS and the BSDs have kqueue. On Linux, the tests have a stand-in.
#if !defined(__linux__) || defined(SPATE_KQUEUE_STAND_IN)
#define SPATE_HAS_KQUEUE 1
#endif

namespace spate {

#ifdef __linux__
std::unique_ptr<Backend> make_epoll();
std::unique_ptr<Backend> make_io_uring();
#endif
#ifdef SPATE_HAS_KQUEUE
std::unique_ptr<Backend> make_kqueue();
#endif
std::unique_ptr<Backend> make_poll();
std::unique_ptr<Backend> make_select();

struct OpenedBackend {
  std::unique_ptr<Backend> backend;
  std::string reason;  // Why a preferred one was not used; empty for the first.
};

// Returns the names in the order in which "auto" tries them, and io_uring, which it never uses.
std::vector<std::string_view> backend_names();

// Opens a backend by name, or "auto". Errors: Error::unknown_backend; for a name, the error of
// opening it. If io_uring is forbidden, as in many sandboxes, "auto" is used.
Result<OpenedBackend> open_backend(std::string_view name);

}  // namespace spate
