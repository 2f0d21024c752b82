// Names of unix sockets, by host: paths, and abstract names, which begin with a NUL. A path stays
// when its socket is closed, as a file does, also through a crash of its host; connect() then
// fails.
//
// Paths are the World's: no file is made. The path of a real file is occupied.
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
  // Returns 0, or a negated errno. An empty `name` becomes a free abstract name.
  long bind(LocalSocket& socket, std::string& name);
  // Returns the socket with the name, or nullptr with the error: ENOENT, ECONNREFUSED.
  LocalSocket* find(int host, const std::string& name, long& error) const;
  bool has_path(int host, const std::string& path) const { return names_.contains({host, path}); }
  // Removes a name, as unlink(2).
  long remove(int host, const std::string& path);

  void add(LocalSocket& socket) { sockets_.push_back(&socket); }
  // Frees its name; a path stays.
  void release(LocalSocket& socket);
  void remove(LocalSocket& socket);
  // Drops messages in flight, which may hold sockets that hold each other.
  void drop_all();

 private:
  std::map<std::pair<int, std::string>, LocalSocket*> names_;  // nullptr: the socket is closed.
  std::vector<LocalSocket*> sockets_;
  std::uint32_t drawn_ = 0;
};

// Returns the name in a sockaddr_un; empty if unnamed. `error` becomes 0 or a negated errno.
std::string name_from_system(const sockaddr* address, socklen_t size, long& error);
// As getsockname(): truncated to `size`, which becomes the full size.
void name_to_system(const std::string& name, sockaddr* address, socklen_t* size);

}  // namespace spate::sim
