// Listener's face, over its Acceptor.
#include "spate/net/listener.h"

#include <cerrno>

#include "net/listen/acceptor.h"
#include "net/listen/listening_socket.h"
#include "spate/assert.h"
#include "sys/socket.h"

namespace spate {

Listener::~Listener() {
  if (Acceptor* acceptor = own()) acceptor->abandon();
}

Result<Listener> Listener::create(Loop& loop, const Address& address, OnAccept on_accept,
                                  const ListenOptions& options) {
  auto socket = open_listening_socket(address, options);
  if (!socket) return std::unexpected(socket.error());
  const auto made = Acceptor::make(loop, *socket, std::move(on_accept), options);
  if (!made) return std::unexpected(made.error());
  return Listener(*made);
}

Result<Listener> Listener::adopt(Loop& loop, int fd, OnAccept on_accept,
                                 const ListenOptions& options) {
  if (const std::error_code error = prepare_listening_socket(fd)) return std::unexpected(error);
  sys::Descriptor socket(fd);
  const auto made = Acceptor::make(loop, socket, std::move(on_accept), options);
  if (made) return Listener(*made);
  socket.release();
  return std::unexpected(made.error());
}

std::vector<int> Listener::inherited() {
  std::vector<int> fds;
  for (int fd = sys::kFirstInherited, end = fd + sys::take_inherited(); fd < end; ++fd) {
    int listens = 0;
    sys::set_close_on_exec(fd);
    if (sys::get_option(fd, SOL_SOCKET, SO_ACCEPTCONN, listens) >= 0 && listens != 0)
      fds.push_back(fd);
  }
  return fds;
}

// For all that is done with one: from another thread, it is found here.
Acceptor* Listener::own() const {
  SPATE_ASSERT(acceptor_ == nullptr || acceptor_->may_be_touched(), kWrongThread);
  return acceptor_;
}

void Listener::pause() {
  if (Acceptor* acceptor = own()) acceptor->pause();
}
void Listener::resume() {
  if (Acceptor* acceptor = own()) acceptor->resume();
}
void Listener::close() {
  if (Acceptor* acceptor = own()) acceptor->close();
}
Result<int> Listener::release() {
  if (!is_open()) return std::unexpected(sys::error_code(-EBADF));
  return std::exchange(acceptor_, nullptr)->release();
}

int Listener::fd() const {
  const Acceptor* acceptor = own();
  return acceptor == nullptr ? -1 : acceptor->fd();
}
std::uint64_t Listener::accepted() const {
  const Acceptor* acceptor = own();
  return acceptor == nullptr ? 0 : acceptor->accepted();
}
std::size_t Listener::connections() const {
  const Acceptor* acceptor = own();
  return acceptor == nullptr ? 0 : acceptor->connections();
}
std::error_code Listener::last_error() const {
  const Acceptor* acceptor = own();
  return acceptor == nullptr ? std::error_code() : acceptor->last_error();
}

Address Listener::address() const {
  sys::SystemAddress system;
  if (sys::local_address(fd(), system) < 0) return {};
  return Address::from_system(&system.storage, system.size).value_or(Address());
}

}  // namespace spate
