#include "sim/unix/names.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "sim/unix/socket.h"

namespace spate::sim {

namespace {

constexpr std::size_t kHead = offsetof(sockaddr_un, sun_path);

bool is_path(const std::string& name) { return !name.empty() && name.front() != '\0'; }

// Files of the system other than sockets occupy their paths also in a World.
bool is_system_file(const std::string& name) {
  struct stat status{};
  return is_path(name) && ::lstat(name.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode);
}

}  // namespace

long LocalNames::bind(LocalSocket& socket, std::string& name) {
  while (name.empty()) {
    char text[7] = {};
    std::snprintf(text + 1, sizeof(text) - 1, "%05x", ++drawn_ & 0xfffff);
    const std::string drawn(text, 6);
    if (!names_.contains({socket.host(), drawn})) name = drawn;
  }
  if (is_system_file(name)) return -EADDRINUSE;
  return names_.try_emplace({socket.host(), name}, &socket).second ? 0 : -EADDRINUSE;
}

LocalSocket* LocalNames::find(int host, const std::string& name, long& error) const {
  const auto found = names_.find({host, name});
  if (found != names_.end() && found->second != nullptr) return found->second;
  const bool is_there = found != names_.end() || !is_path(name) || is_system_file(name);
  error = is_there ? -ECONNREFUSED : -ENOENT;
  return nullptr;
}

long LocalNames::remove(int host, const std::string& path) {
  return is_path(path) && names_.erase({host, path}) != 0 ? 0 : -ENOENT;
}

void LocalNames::release(LocalSocket& socket) {
  const auto found = names_.find({socket.host(), socket.name()});
  if (found == names_.end() || found->second != &socket) return;
  if (is_path(socket.name())) {
    found->second = nullptr;
  } else {
    names_.erase(found);
  }
}

void LocalNames::remove(LocalSocket& socket) {
  release(socket);
  std::erase(sockets_, &socket);
}

void LocalNames::drop_all() {
  Passed dropped;
  for (LocalSocket* socket : sockets_) socket->give_up(dropped);
}

std::string name_from_system(const sockaddr* address, socklen_t size, long& error) {
  error = -EINVAL;
  if (size < kHead || size > sizeof(sockaddr_un) || address->sa_family != AF_UNIX) return {};
  error = 0;
  const char* path = reinterpret_cast<const char*>(address) + kHead;
  if (size == kHead || *path == '\0') return {path, size - kHead};
  return {path, ::strnlen(path, size - kHead)};
}

void name_to_system(const std::string& name, sockaddr* address, socklen_t* size) {
  sockaddr_un system{};
  system.sun_family = AF_UNIX;
  std::ranges::copy(name, system.sun_path);
  const bool ends_with_nul = is_path(name) && name.size() < sizeof(system.sun_path);
  const auto whole = static_cast<socklen_t>(kHead + name.size() + (ends_with_nul ? 1 : 0));
  std::memcpy(address, &system, std::min(*size, whole));
  *size = whole;
}

}  // namespace spate::sim
