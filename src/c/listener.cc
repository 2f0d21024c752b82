// spate_listener: a Listener that makes spate_streams.
#include "spate/net/listener.h"

#include <cerrno>
#include <memory>
#include <new>

#include "c/sized.h"
#include "c/stream.h"
#include "spate_net.h"

using namespace spate;

struct spate_listener {
  spate_loop& loop;
  spate_accept_fn* on_accept;
  void* data;
  Listener listener{};

  // When memory runs out, closes the connection.
  void accept(Stream stream, const Address& peer) {
    auto* const made = new (std::nothrow) spate_stream(loop, std::move(stream));
    spate_address address;
    c::store(peer, &address);
    if (made != nullptr) on_accept(this, made, &address);
  }
};

namespace {

ListenOptions to_options(const spate_listen_options& options) {
  ListenOptions result;
  if (options.backlog > 0) result.backlog = options.backlog;
  if (options.accepts_per_turn > 0) result.accepts_per_turn = options.accepts_per_turn;
  if (options.max_connections > 0) result.max_connections = options.max_connections;
  result.reuse_port = options.reuse_port != 0;
  result.v6_only = options.v6_only != 0;
  return result;
}

}  // namespace

int spate_listen(spate_listener** listener, spate_loop* loop, const spate_address* address,
                 spate_accept_fn* on_accept, void* data, const spate_listen_options* options) {
  *listener = nullptr;
  spate_listen_options known;
  if (const int code = c::copy_sized(options, known)) return code;
  if (address == nullptr || on_accept == nullptr) return -EINVAL;
  std::unique_ptr<spate_listener> made(new (std::nothrow) spate_listener{*loop, on_accept, data});
  if (made == nullptr) return -ENOMEM;
  Result<Listener> created = Listener::create(
      loop->loop(), c::address_of(address),
      [face = made.get()](Stream stream, const Address& peer) {
        face->accept(std::move(stream), peer);
      },
      to_options(known));
  if (!created) return c::to_code(created.error());
  made->listener = std::move(*created);
  *listener = made.release();
  return 0;
}

void spate_listener_destroy(spate_listener* listener) { delete listener; }
void* spate_listener_data(const spate_listener* listener) { return listener->data; }
void spate_listener_pause(spate_listener* listener) { listener->listener.pause(); }
void spate_listener_resume(spate_listener* listener) { listener->listener.resume(); }
void spate_listener_close(spate_listener* listener) { listener->listener.close(); }
void spate_listener_address(const spate_listener* listener, spate_address* address) {
  c::store(listener->listener.address(), address);
}
size_t spate_listener_connections(const spate_listener* listener) {
  return listener->listener.connections();
}
