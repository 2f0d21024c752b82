// Making listening sockets, and Listener's face.
#include "spate/net/listener.h"

#include <cerrno>

#include "net/acceptor.h"
#include "sys/socket.h"

namespace spate {

namespace {

std::unexpected<std::error_code> failed(long result) {
  return std::unexpected(sys::error_code(result));
}

// The options that come before bind().
long prepare(int fd, const Address& address, const ListenOptions& options) {
  long result = 0;
  if (address.is_ip()) result = sys::set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (result >= 0 && options.reuse_port) result = sys::set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  if (result >= 0 && address.family() == Address::Family::ipv6)
    result = sys::set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, int{options.v6_only});
  return result;
}

// What TCP may do without: an older kernel's refusal is no reason not to listen.
void tune(int fd, const ListenOptions& options) {
  if (!sys::is_tcp(fd)) return;
  const auto seconds =
      static_cast<int>((options.defer_accept.count() + 999'999'999) / 1'000'000'000);
  if (seconds > 0) sys::set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, seconds);
  if (options.fast_open > 0) sys::set_option(fd, IPPROTO_TCP, TCP_FASTOPEN, options.fast_open);
}

// A socket file stays behind when its process ends. It is in nobody's use if nobody answers there.
bool remove_stale(const Address& address) {
  if (address.family() != Address::Family::local || address.is_abstract()) return false;
  sys::Descriptor probe(sys::open_socket(AF_UNIX, SOCK_STREAM));
  if (sys::connect(probe.get(), address.data(), address.size()) != -ECONNREFUSED) return false;
  return sys::remove_socket_file(std::string(address.name()).c_str()) >= 0;
}

long bind(int fd, const Address& address, const ListenOptions& options) {
  long result = sys::bind(fd, address.data(), address.size());
  if (result == -EADDRINUSE && options.replace_path && remove_stale(address))
    result = sys::bind(fd, address.data(), address.size());
  return result;
}

}  // namespace

Listener::~Listener() {
  if (acceptor_ != nullptr) acceptor_->abandon();
}

Listener::Made Listener::listen(Loop& loop, const Address& address, OnAccept on_accept,
                                const ListenOptions& options) {
  if (address.family() == Address::Family::none) return failed(-EINVAL);
  sys::Descriptor socket(sys::open_socket(sys::family_of(address.data()), SOCK_STREAM));
  if (!socket.is_open()) return failed(socket.get());
  long result = prepare(socket.get(), address, options);
  if (result >= 0) result = bind(socket.get(), address, options);
  if (result >= 0) result = sys::listen(socket.get(), options.backlog);
  if (result < 0) return failed(result);
  tune(socket.get(), options);
  const auto made = Acceptor::make(loop, std::move(socket), std::move(on_accept), options);
  if (!made) return std::unexpected(made.error());
  return Listener(*made);
}

Listener::Made Listener::adopt(Loop& loop, int fd, OnAccept on_accept,
                               const ListenOptions& options) {
  int listens = 0;
  if (const long result = sys::get_option(fd, SOL_SOCKET, SO_ACCEPTCONN, listens); result < 0)
    return failed(result);
  if (listens == 0) return failed(-EINVAL);
  if (const long result = sys::set_nonblocking(fd); result < 0) return failed(result);
  sys::Descriptor socket(fd);
  const auto made = Acceptor::make(loop, std::move(socket), std::move(on_accept), options);
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

void Listener::pause() { acceptor_->pause(); }
void Listener::resume() { acceptor_->resume(); }
int Listener::fd() const { return acceptor_->fd(); }
std::uint64_t Listener::accepted() const { return acceptor_->accepted(); }
std::size_t Listener::connections() const { return acceptor_->connections(); }
std::error_code Listener::last_error() const { return acceptor_->last_error(); }

Address Listener::address() const {
  sys::SystemAddress system;
  if (sys::local_address(fd(), system) < 0) return {};
  return Address::from_system(&system.storage, system.size).value_or(Address());
}

}  // namespace spate
