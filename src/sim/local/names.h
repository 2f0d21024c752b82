// Names of Unix sockets, by host: paths, and those of the abstract namespace, which begin with a
// NUL. A path remains when its socket has gone, as a file does, also through a crash of its host;
// that nobody listens there is found out by connecting.
//
// Paths are the World's: no file is made. One that a file of the system's has is taken.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/kernel/file.h"

namespace spate::sim {

class LocalSocket;

class LocalNames {
 public:
  // 0, or a negated errno. Empty: a free abstract name, which `name` becomes.
  long bind(LocalSocket& socket, std::string& name);
  // The socket that has the name, or nullptr and why there is none: ENOENT, ECONNREFUSED.
  LocalSocket* find(int host, const std::string& name, long& error) const;
  bool has_path(int host, const std::string& path) const { return names_.contains({host, path}); }
  // unlink(2).
  long remove(int host, const std::string& path);

  void add(LocalSocket& socket) { sockets_.push_back(&socket); }
  // Its name goes, a path stays.
  void release(LocalSocket& socket);
  void remove(LocalSocket& socket);
  // Drops what is under way, which may hold sockets that hold each other.
  void drop_all();

 private:
  std::map<std::pair<int, std::string>, LocalSocket*> names_;  // nullptr: left behind.
  std::vector<LocalSocket*> sockets_;
  std::uint32_t drawn_ = 0;
};

// The name in a sockaddr_un; empty if it has none. A negated errno in `error`, or 0.
std::string name_from_system(const sockaddr* address, socklen_t size, long& error);
// As getsockname(): cut to `size`, which becomes the whole size.
void name_to_system(const std::string& name, sockaddr* address, socklen_t* size);

}  // namespace spate::sim
