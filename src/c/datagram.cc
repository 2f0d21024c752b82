// spate_datagram: a Datagram and its handler.
#include "spate/net/datagram.h"

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

#include "c/net.h"
#include "c/sized.h"
#include "spate_net.h"

using namespace spate;

namespace {

// A packet as callbacks receive it.
struct GivenPacket {
  explicit GivenPacket(const Packet& packet)
      : shown{packet.bytes.data(), packet.bytes.size(),
              reinterpret_cast<const spate_address*>(&packet.peer), packet.truncated, 0},
        whole(&packet) {}

  const spate_packet shown;  // First, so that its address is this object's.
  const Packet* const whole;
};

const Packet& packet_of(const spate_packet* packet) {
  return *reinterpret_cast<const GivenPacket*>(packet)->whole;
}

}  // namespace

struct spate_datagram final : DatagramHandler {
  ~spate_datagram() {
    if (is_gone != nullptr) *is_gone = true;
  }

  // Each call may destroy this.
  void on_packets(std::span<const Packet> packets) override {
    if (callbacks->on_packet == nullptr) return;
    bool gone = false;
    bool* const outer = std::exchange(is_gone, &gone);
    for (const Packet& packet : packets) {
      const GivenPacket given(packet);
      callbacks->on_packet(this, &given.shown);
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
  bool* is_gone = nullptr;  // For the innermost on_packets().
};

namespace {

DatagramOptions to_options(const spate_datagram_options& from) {
  DatagramOptions to;
  if (from.packet_size > 0) to.packet_size = from.packet_size;
  to.reuse_address = from.reuse_address != 0;
  to.reuse_port = from.reuse_port != 0;
  to.v6_only = from.v6_only != 0;
  to.local_address = from.local_address != 0;
  to.ecn = from.ecn != 0;
  to.coalesce = from.coalesce != 0;
  to.broadcast = from.broadcast != 0;
  to.dont_fragment = from.dont_fragment != 0;
  return to;
}

// An ECN out of range becomes one that Datagram refuses.
Ecn to_ecn(int ecn) { return static_cast<Ecn>(ecn < 0 || ecn > 255 ? 255 : ecn); }

const Address* address_or_null(const spate_address* address) {
  return address == nullptr ? nullptr : &c::address_of(address);
}

Outgoing to_outgoing(const spate_outgoing& from) {
  Outgoing to{.bytes = {static_cast<const std::byte*>(from.bytes), from.size},
              .peer = address_or_null(from.peer),
              .local = address_or_null(from.local),
              .segment = static_cast<std::uint16_t>(from.segment)};
  if (from.has_ecn != 0) to.ecn = to_ecn(from.ecn);
  return to;
}

}  // namespace

int spate_packet_ecn(const spate_packet* packet) { return static_cast<int>(packet_of(packet).ecn); }
const spate_address* spate_packet_local(const spate_packet* packet) {
  return reinterpret_cast<const spate_address*>(&packet_of(packet).local);
}

int spate_datagram_create(spate_datagram** datagram, spate_loop* loop, const spate_address* local,
                          size_t packet_size) {
  spate_datagram_options options{};
  options.size = sizeof(options);
  options.packet_size = packet_size;
  return spate_datagram_open(datagram, loop, local, &options);
}

int spate_datagram_open(spate_datagram** datagram, spate_loop* loop, const spate_address* local,
                        const spate_datagram_options* options) {
  *datagram = nullptr;
  spate_datagram_options known;
  if (const int code = c::copy_sized(options, known)) return code;
  if (local == nullptr) return -EINVAL;
  std::unique_ptr<spate_datagram> made(new (std::nothrow) spate_datagram);
  if (made == nullptr) return -ENOMEM;
  Result<Datagram> created =
      Datagram::create(loop->loop(), c::address_of(local), to_options(known));
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

// Converts as many packets at a time as one system call takes.
int spate_datagram_send_packets(spate_datagram* datagram, const spate_outgoing* packets,
                                size_t count, size_t* sent) {
  size_t unwanted = 0;
  size_t& done = sent == nullptr ? unwanted : *sent;
  done = 0;
  if (packets == nullptr && count > 0) return -EINVAL;
  while (done < count) {
    Outgoing some[64];
    size_t size = 0;
    for (; size < std::size(some) && done + size < count; ++size) {
      if (packets[done + size].segment > UINT16_MAX) break;
      some[size] = to_outgoing(packets[done + size]);
    }
    if (size == 0) return -EINVAL;
    std::error_code error;
    done += datagram->socket.send(std::span(some).first(size), &error);
    if (error) return c::to_code(error);
  }
  return 0;
}

int spate_datagram_set_ecn(spate_datagram* datagram, int ecn) {
  return c::to_code(datagram->socket.set_ecn(to_ecn(ecn)));
}
int spate_datagram_path_mtu(const spate_datagram* datagram, size_t* mtu) {
  const Result<std::size_t> found = datagram->socket.path_mtu();
  if (!found) return c::to_code(found.error());
  *mtu = *found;
  return 0;
}
int spate_datagram_dropped(const spate_datagram* datagram, uint32_t* count) {
  const Result<std::uint32_t> found = datagram->socket.dropped();
  if (!found) return c::to_code(found.error());
  *count = *found;
  return 0;
}
int spate_datagram_connect(spate_datagram* datagram, const spate_address* peer) {
  if (peer == nullptr) return -EINVAL;
  return c::to_code(datagram->socket.connect(c::address_of(peer)));
}
void spate_datagram_local_address(const spate_datagram* datagram, spate_address* address) {
  c::store(datagram->socket.local_address(), address);
}
int spate_datagram_fd(const spate_datagram* datagram) { return datagram->socket.fd(); }
