#include "backend/registry.h"

#include <span>

#include "spate/error.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Backend> (*make)();
};

constexpr Entry kEntries[] = {
#ifdef SPATE_TESTS_ON_KQUEUE
    {"kqueue", make_kqueue},
#endif
#ifdef __linux__
    {"epoll", make_epoll},
#endif
#if defined(SPATE_HAS_KQUEUE) && !defined(SPATE_TESTS_ON_KQUEUE)
    {"kqueue", make_kqueue},
#endif
    {"poll", make_poll},
    {"select", make_select},
};
// Used only on request; where it is forbidden, another one is used.
#ifdef __linux__
constexpr Entry kOnRequest[] = {{"io_uring", make_io_uring}};
#else
constexpr std::span<const Entry> kOnRequest;
#endif

// On failure, `reason` is set.
std::error_code open(const Entry& entry, OpenedBackend& opened) {
  opened.backend = entry.make();
  const std::error_code error =
      opened.backend == nullptr ? sys::error_code(-ENOMEM) : opened.backend->reopen();
  if (!error) return {};
  if (!opened.reason.empty()) opened.reason += "; ";
  opened.reason += std::string(entry.name) + ": " + error.message();
  return error;
}

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  for (const Entry& entry : kOnRequest) names.push_back(entry.name);
  return names;
}

Result<OpenedBackend> open_backend(std::string_view name) {
  OpenedBackend opened;
  for (const Entry& entry : kOnRequest) {
    if (name != entry.name) continue;
    if (!open(entry, opened)) return opened;
    name = "auto";
  }
  std::error_code error = Error::unknown_backend;
  for (const Entry& entry : kEntries) {
    if (name != "auto" && name != entry.name) continue;
    error = open(entry, opened);
    if (!error) return opened;
    if (error == std::errc::not_enough_memory) break;  // The others need memory, too.
  }
  return std::unexpected(error);
}

}  // namespace spate
