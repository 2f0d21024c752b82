// Listener: forwards calls to its StreamAcceptor.
#include "spate/net/listener.h"

#include <cerrno>

#include "base/ask.h"
#include "net/listen/listening_socket.h"
#include "net/listen/stream_acceptor.h"
#include "net/socket_address.h"
#include "spate/assert.h"
#include "sys/socket.h"

namespace spate {

Listener::~Listener() { tell(own(), &StreamAcceptor::abandon); }

Result<Listener> Listener::create(Loop& loop, const Address& address, OnAccept on_accept,
                                  const ListenOptions& options) {
  auto socket = open_listening_socket(address, options);
  if (!socket) return std::unexpected(socket.error());
  auto* acceptor = Acceptor::make<StreamAcceptor>(loop, *socket, options, std::move(on_accept));
  if (acceptor == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  return Listener(acceptor);
}

Result<Listener> Listener::adopt(Loop& loop, int fd, OnAccept on_accept,
                                 const ListenOptions& options) {
  if (const std::error_code error = prepare_listening_socket(fd, options))
    return std::unexpected(error);
  sys::Descriptor socket(fd);
  auto* acceptor = Acceptor::make<StreamAcceptor>(loop, socket, options, std::move(on_accept));
  if (acceptor != nullptr) return Listener(acceptor);
  socket.release();
  return std::unexpected(sys::error_code(-ENOMEM));
}

Result<int> Listener::open(const Address& address, const ListenOptions& options) {
  auto socket = open_listening_socket(address, options);
  if (!socket) return std::unexpected(socket.error());
  return socket->release();
}

std::vector<int> Listener::inherited() {
  std::vector<int> fds;
  int fd = sys::kFirstInherited;
  for (int left = sys::take_inherited(); left > 0; ++fd, --left) {
    int listens = 0;
    // The number in the environment is wrong, perhaps by billions.
    if (sys::set_close_on_exec(fd) < 0) break;
    if (sys::get_option(fd, SOL_SOCKET, SO_ACCEPTCONN, listens) >= 0 && listens != 0)
      fds.push_back(fd);
  }
  return fds;
}

// All calls use this function, which asserts the thread.
StreamAcceptor* Listener::own() const {
  SPATE_ASSERT(acceptor_ == nullptr || acceptor_->may_be_touched(), kWrongThread);
  return acceptor_;
}

void Listener::pause() { tell(own(), &StreamAcceptor::pause); }
void Listener::resume() { tell(own(), &StreamAcceptor::resume); }
void Listener::close() { tell(own(), &StreamAcceptor::close); }
Result<int> Listener::release() {
  if (!is_open()) return std::unexpected(sys::error_code(-EBADF));
  return std::exchange(acceptor_, nullptr)->release();
}

int Listener::fd() const { return ask(own(), &StreamAcceptor::fd, -1); }
std::uint64_t Listener::accepted() const { return ask(own(), &StreamAcceptor::accepted); }
std::size_t Listener::connections() const { return ask(own(), &StreamAcceptor::connections); }
std::error_code Listener::last_error() const { return ask(own(), &StreamAcceptor::last_error); }

Address Listener::address() const { return local_address_of(fd()); }

}  // namespace spate
