// The backends there are, by name. A new one adds a line here and one in registry.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace spate {

std::unique_ptr<Backend> make_epoll();
std::unique_ptr<Backend> make_poll();
std::unique_ptr<Backend> make_select();
std::unique_ptr<Backend> make_io_uring();

struct OpenedBackend {
  std::unique_ptr<Backend> backend;
  std::string reason;  // Why not an earlier one of the list; empty for the first.
};

// Best first: the order in which "auto" tries them, but for io_uring, which it never takes.
std::vector<std::string_view> backend_names();

// By name, or "auto". Errors: Error::unknown_backend; for a name, what opening it reports. Where
// io_uring cannot be had, which many sandboxes forbid, it is as if "auto" had been asked for.
Result<OpenedBackend> open_backend(std::string_view name);

}  // namespace spate
