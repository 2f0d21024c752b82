#include "net/listen/stream_acceptor.h"

#include <new>
#include <utility>

#include "core/user_code.h"
#include "net/stream/connection.h"

namespace spate {

StreamAcceptor::StreamAcceptor(LoopStreams& loop_state, sys::Descriptor socket,
                               const ListenOptions& options, Listener::OnAccept on_accept)
    : Acceptor(loop_state, std::move(socket), options),
      on_accept_(loop_state.loop(), std::move(on_accept)),
      pending_(new(std::nothrow) CountedTransport(loop_state, *this)),
      max_connections_(options.max_connections) {}

StreamAcceptor::~StreamAcceptor() {
  if (pending_ != nullptr) pending_->abandon();
}

bool StreamAcceptor::hand_over(sys::Descriptor& socket, const Address& peer) {
  Connection* connection = pending_->adopt(socket);
  if (connection == nullptr) return false;
  ++accepted_;
  if (is_full()) update();  // A nested run() inside the callback must not accept more.
  call_user("Listener", [&] { on_accept_(Connection::stream_of(connection), peer); });
  return true;
}

void StreamAcceptor::on_left(Connection&) {
  if (!is_listening() && !is_full()) update();
}

}  // namespace spate
