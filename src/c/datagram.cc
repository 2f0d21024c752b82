// spate_datagram: a Datagram and its handler.
#include "spate/net/datagram.h"

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "c/net.h"
#include "c/sized.h"
#include "spate_net.h"

using namespace spate;

struct spate_datagram final : DatagramHandler {
  ~spate_datagram() {
    if (is_gone != nullptr) *is_gone = true;
  }

  // Each may destroy this.
  void on_packets(std::span<const Packet> packets) override {
    if (callbacks->on_packet == nullptr) return;
    bool gone = false;
    bool* const outer = std::exchange(is_gone, &gone);
    for (const Packet& packet : packets) {
      const spate_packet given{packet.bytes.data(), packet.bytes.size(),
                               reinterpret_cast<const spate_address*>(&packet.peer),
                               packet.truncated, 0};
      callbacks->on_packet(this, &given);
      if (gone) {
        if (outer != nullptr) *outer = true;
        return;
      }
    }
    is_gone = outer;
  }
  void on_error(std::error_code error) override {
    if (callbacks->on_error != nullptr) callbacks->on_error(this, c::to_code(error));
  }
  void on_writable() override {
    if (callbacks->on_writable != nullptr) callbacks->on_writable(this);
  }

  Datagram socket;
  const spate_datagram_callbacks* callbacks = nullptr;
  void* data = nullptr;
  bool* is_gone = nullptr;  // Of the innermost on_packets().
};

int spate_datagram_create(spate_datagram** datagram, spate_loop* loop, const spate_address* local,
                          size_t packet_size) {
  *datagram = nullptr;
  std::unique_ptr<spate_datagram> made(new (std::nothrow) spate_datagram);
  if (made == nullptr) return -ENOMEM;
  DatagramOptions options;
  if (packet_size > 0) options.packet_size = packet_size;
  Result<Datagram> created = Datagram::create(loop->loop(), c::address_of(local), options);
  if (!created) return c::to_code(created.error());
  made->socket = std::move(*created);
  *datagram = made.release();
  return 0;
}

void spate_datagram_destroy(spate_datagram* datagram) { delete datagram; }

int spate_datagram_start(spate_datagram* datagram, const spate_datagram_callbacks* callbacks,
                         void* data) {
  spate_datagram_callbacks known;
  if (callbacks == nullptr) return -EINVAL;
  if (const int code = c::copy_sized(callbacks, known)) return code;
  datagram->callbacks = callbacks;
  datagram->data = data;
  datagram->socket.start(*datagram);
  return 0;
}

void* spate_datagram_data(const spate_datagram* datagram) { return datagram->data; }
void spate_datagram_pause(spate_datagram* datagram) { datagram->socket.pause(); }
void spate_datagram_resume(spate_datagram* datagram) { datagram->socket.resume(); }

int spate_datagram_send(spate_datagram* datagram, const void* bytes, size_t size,
                        const spate_address* peer) {
  const Bytes packet(static_cast<const std::byte*>(bytes), size);
  return c::to_code(peer == nullptr ? datagram->socket.send(packet)
                                    : datagram->socket.send(packet, c::address_of(peer)));
}
int spate_datagram_connect(spate_datagram* datagram, const spate_address* peer) {
  return c::to_code(datagram->socket.connect(c::address_of(peer)));
}
void spate_datagram_local_address(const spate_datagram* datagram, spate_address* address) {
  c::store(datagram->socket.local_address(), address);
}
int spate_datagram_fd(const spate_datagram* datagram) { return datagram->socket.fd(); }
