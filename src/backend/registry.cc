#include "backend/registry.h"

#include "spate/error.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Backend> (*make)();
};

constexpr Entry kEntries[] = {
    {"epoll", make_epoll},
    {"poll", make_poll},
    {"select", make_select},
};

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  return names;
}

Result<OpenedBackend> open_backend(std::string_view name) {
  std::error_code error = Error::unknown_backend;
  std::string reason;
  for (const Entry& entry : kEntries) {
    if (name != "auto" && name != entry.name) continue;
    std::unique_ptr<Backend> backend = entry.make();
    if (backend == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
    error = backend->reopen();
    if (!error) return OpenedBackend{std::move(backend), std::move(reason)};
    if (error == std::errc::not_enough_memory) break;  // The others need memory, too.
    reason +=
        std::string(reason.empty() ? "" : "; ") + std::string(entry.name) + ": " + error.message();
  }
  return std::unexpected(error);
}

}  // namespace spate
