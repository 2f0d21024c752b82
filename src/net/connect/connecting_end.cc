#include "net/connect/connecting_end.h"

#include <new>

#include "net/stream/connection.h"
#include "net/stream/hub.h"

namespace spate {

ConnectingEnd* ConnectingEnd::make(Hub& hub) {
  auto* end = new (std::nothrow) ConnectingEnd(hub);
  if (end == nullptr) return nullptr;
  end->connection_ = Connection::make(*end);
  if (end->connection_ != nullptr) return end;
  delete end;
  return nullptr;
}

ConnectingEnd::ConnectingEnd(Hub& hub)
    : Transport(hub), later_(hub.loop(), bind<&ConnectingEnd::settle>(this)) {}

OnSocket ConnectingEnd::on_socket() {
  return [this](Result<sys::Descriptor> socket) {
    socket_ = std::move(socket);
    settle();
  };
}

// Not while a callback of this connection runs the loop.
void ConnectingEnd::settle() {
  if (connection_->is_calling()) {
    if (!later_.start(Nanos{1'000'000})) later_.feed();
    return;
  }
  if (!socket_) return connection_->on_refused(socket_.error());
  Connection& connection = *connection_;
  Hub& hub = this->hub();
  const int fd = socket_->release();
  const bool is_ended = is_ended_;
  delete this;
  connection.on_connected(hub.sockets(), fd, is_ended);
}

void ConnectingEnd::close(Connection&, bool) {
  attempt_.cancel();
  later_.stop();
  socket_ = sys::Descriptor();
}

}  // namespace spate
