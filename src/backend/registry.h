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

struct OpenedBackend {
  std::unique_ptr<Backend> backend;
  std::string reason;  // Why not an earlier one of the list; empty for the first.
};

// Best first: the order in which "auto" tries them.
std::vector<std::string_view> backend_names();

// By name, or "auto". Errors: Error::unknown_backend; for a name, what opening it reports.
Result<OpenedBackend> open_backend(std::string_view name);

}  // namespace spate
