#include "net/datagram/datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/ownership.h"
#include "core/user_code.h"
#include "spate/assert.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

msghdr message_of(const Bytes& bytes, const Address& peer) {
  msghdr message{};
  message.msg_iov = sys::as_vector(&bytes);
  message.msg_iovlen = 1;
  message.msg_name = const_cast<void*>(peer.data());
  message.msg_namelen = static_cast<socklen_t>(peer.size());
  return message;
}

bool is_full(long result) { return result == -EAGAIN || result == -ENOBUFS; }

// Errors of UDP_SEGMENT: an old kernel, a device without checksum offload, or a packet that is too
// large. Sending the packets one by one gives the real error.
bool may_be_for_joining(long result) {
  return result == -EINVAL || result == -EIO || result == -EOPNOTSUPP || result == -ENOPROTOOPT ||
         result == -EMSGSIZE;
}

PacketShape shape_of(const DatagramOptions& options) {
  return {.packet_size = options.packet_size,
          .joined = options.coalesce,
          .has_info = options.local_address || options.ecn || options.coalesce};
}

}  // namespace

Result<DatagramSocket*> DatagramSocket::make(Loop& loop, sys::Descriptor& socket,
                                             const DatagramOptions& options) {
  PacketRoom* room = PacketRoom::of(loop);
  auto* made = room == nullptr ? nullptr
                               : new (std::nothrow)
                                     DatagramSocket(*room, std::move(socket), options);
  if (made == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  return made;
}

DatagramSocket::DatagramSocket(PacketRoom& room, sys::Descriptor socket,
                               const DatagramOptions& options)
    : room_(room),
      socket_(std::move(socket)),
      shape_(shape_of(options)),
      io_(room.loop(), socket_.get(), Events::none, bind<&DatagramSocket::on_ready>(this)),
      resting_(room.loop(), bind<&DatagramSocket::look_again>(this)),
      retry_(room.loop(), bind<&DatagramSocket::tell_of_room>(this)),
      family_(sys::domain_of(socket_.get())),
      can_join_(sys::is_udp(socket_.get())) {
  room_.enter();
}

DatagramSocket::~DatagramSocket() { room_.leave(); }

// Whether this thread may.
bool DatagramSocket::may_be_used() const { return !room_.is_alive() || may_touch(room_.loop()); }

int DatagramSocket::fd() const {
  SPATE_ASSERT(may_be_used(), kWrongThread);
  return socket_.get();
}

void DatagramSocket::abandon() {
  SPATE_ASSERT(may_be_used(), kWrongThread);
  io_.stop_before_close();
  resting_.stop();
  retry_.stop();
  socket_ = sys::Descriptor();
  handler_ = nullptr;
  Abandonable::abandon();
}

void DatagramSocket::start(DatagramHandler& handler) {
  handler_ = &handler;
  resume();
}

bool DatagramSocket::start(DatagramCallbacks callbacks) {
  std::unique_ptr<DatagramCallbackHandler> made(new (std::nothrow)
                                                    DatagramCallbackHandler(std::move(callbacks)));
  if (made == nullptr) return false;
  made->keep(std::move(callbacks_));
  callbacks_ = std::move(made);
  start(*callbacks_);
  return true;
}

void DatagramSocket::pause() { watch(io_.events() & ~Events::read); }
void DatagramSocket::resume() { watch(io_.events() | Events::read); }

// ---- watching

void DatagramSocket::watch(Events events) {
  SPATE_ASSERT(may_be_used(), kWrongThread);
  if (!room_.is_alive()) return;
  if (!any(events)) io_.stop();
  io_.modify(events);
  if (any(events) && !resting_.is_active() && !io_.start()) rest();
}

// Without memory for the timer, it is retried in the next turn.
void DatagramSocket::rest() {
  if (!resting_.start(kRest)) io_.feed(Events::custom);
}

void DatagramSocket::look_again() {
  if (!any(io_.events())) return;
  const std::error_code error = io_.start_now();
  if (error) return on_refused(error);
  is_told_ = false;
}

// Retried at once, it would fail again, in a busy loop.
void DatagramSocket::on_refused(std::error_code error) {
  rest();
  if (std::exchange(is_told_, true)) return;
  tell([&](DatagramHandler& handler) { handler.on_error(error); });
}

// ---- receiving

void DatagramSocket::on_ready(Events events) {
  if (any(events & Events::custom)) return look_again();
  if (!io_.is_active()) return on_refused(io_.error());
  if (any(events & io_.events() & Events::write)) {
    watch(io_.events() & ~Events::write);
    if (!tell_of_room()) return;
  }
  if (any(events & io_.events() & Events::read)) receive();
}

// False if the Datagram was destroyed; *this may be gone.
template <class Function>
bool DatagramSocket::tell(Function function) {
  return handler_ == nullptr ||
         call([&] { call_user("DatagramHandler", [&] { function(*handler_); }); });
}

// One system call a turn; more packets wait for the next turn.
void DatagramSocket::receive() {
  const auto batch = room_.borrow();
  const long received = batch ? batch->receive(socket_.get(), shape_) : -ENOMEM;
  if (received == -EAGAIN || received == -EINTR) return;
  tell([&](DatagramHandler& handler) {
    if (received < 0) return handler.on_error(sys::error_code(received));
    handler.on_packets(batch->packets());
  });
}

// ---- sending

// Checked here since the kernel's answer depends on the socket: it may ignore such a peer. 0, or a
// negated errno.
inline long DatagramSocket::wrong_with(const Address* peer) const {
  if (peer == nullptr) return 0;
  const int family = sys::family_of(peer->data());
  if (family == family_ || (family == AF_INET && family_ == AF_INET6)) return 0;
  return family == AF_UNSPEC ? -EINVAL : -EAFNOSUPPORT;
}

// The result of a send. If the kernel had no room, on_writable() follows.
inline std::error_code DatagramSocket::settle(long result) {
  if (result >= 0) {
    had_room_ = false;
    return none_;
  }
  if (is_full(result) && room_.is_alive()) wait_for_room();
  return sys::error_code(result);
}

// An unconnected unix socket is always writable, and so is a socket whose device queue is full: a
// handler that is refused again would be called in every turn.
void DatagramSocket::wait_for_room() {
  if (!had_room_ || !retry_.start(kRetry)) watch(io_.events() | Events::write);
}

bool DatagramSocket::tell_of_room() {
  had_room_ = true;
  return tell([](DatagramHandler& handler) { handler.on_writable(); });
}

std::error_code DatagramSocket::send(Bytes bytes, const Address* peer) {
  SPATE_ASSERT(may_be_used(), kWrongThread);
  if (const long wrong = wrong_with(peer)) return sys::error_code(wrong);
  const long result = send_once(bytes, peer);
  return result < 0 ? send_again(bytes, peer, result) : settle(result);
}

inline long DatagramSocket::send_once(Bytes bytes, const Address* peer) {
  const void* address = peer == nullptr ? nullptr : peer->data();
  const std::size_t size = peer == nullptr ? 0 : peer->size();
  return sys::send_to(socket_.get(), bytes.data(), bytes.size(), address, size);
}

// If it was only interrupted.
std::error_code DatagramSocket::send_again(Bytes bytes, const Address* peer, long result) {
  while (result == -EINTR) result = send_once(bytes, peer);
  return settle(result);
}

std::size_t DatagramSocket::send(std::span<const Outgoing> packets, std::error_code& error) {
  SPATE_ASSERT(may_be_used(), kWrongThread);
  error = none_;
  std::size_t sent = 0;
  while (sent < packets.size() && !error) sent += send_some(packets.subspan(sent), error);
  return sent;
}

// In one system call.
std::size_t DatagramSocket::send_some(std::span<const Outgoing> packets, std::error_code& error) {
  OutgoingBatch& batch = room_.outgoing();
  long wrong = 0;
  std::size_t count = 0;
  for (; count < std::min(packets.size(), kBatch); ++count) {
    const Outgoing& packet = packets[count];
    if ((wrong = wrong_with(packet.peer))) break;
    batch.put(count, packet);
  }
  if (count == 0) return error = sys::error_code(wrong), 0;
  const long result = batch.send(socket_.get(), count);
  if (result == -EINTR) return 0;
  error = settle(result);
  return error ? 0 : static_cast<std::size_t>(result);
}

Result<std::size_t> DatagramSocket::send_segments(Bytes bytes, std::size_t segment,
                                                  const Address& peer) {
  SPATE_ASSERT(may_be_used(), kWrongThread);
  constexpr std::size_t kLongest = 65507;   // Of a packet.
  constexpr std::size_t kMaxBytes = 65000;  // Of packets that are joined; no more than kBatch.
  if (segment == 0 || segment > kLongest) return std::unexpected(sys::error_code(-EINVAL));
  const std::size_t step = segment * std::clamp<std::size_t>(kMaxBytes / segment, 1, kBatch);
  std::size_t sent = 0;
  std::error_code error = sys::error_code(wrong_with(&peer));
  while (sent < bytes.size() && !error)
    sent +=
        send_part(bytes.subspan(sent, std::min(step, bytes.size() - sent)), segment, peer, error);
  if (sent == 0 && error) return std::unexpected(error);
  return sent;
}

// Whether UDP_SEGMENT works may depend on the peer and the sizes, so it is tried each time: one
// extra call in 65 at most.
std::size_t DatagramSocket::send_part(Bytes bytes, std::size_t segment, const Address& peer,
                                      std::error_code& error) {
  if (!can_join_ || bytes.size() <= segment) return send_one_by_one(bytes, segment, peer, error);
  const long result =
      sys::send_joined(socket_.get(), message_of(bytes, peer), static_cast<std::uint16_t>(segment));
  if (result == -EINTR) return 0;
  if (may_be_for_joining(result)) return send_one_by_one(bytes, segment, peer, error);
  error = settle(result);
  return error ? 0 : bytes.size();
}

std::size_t DatagramSocket::send_one_by_one(Bytes bytes, std::size_t segment, const Address& peer,
                                            std::error_code& error) {
  Outgoing packets[kBatch];
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size(); at += segment)
    packets[count++] = {.bytes = bytes.subspan(at, std::min(segment, bytes.size() - at)),
                        .peer = &peer};
  const std::size_t sent = send(std::span(packets).first(count), error);
  return std::min(sent * segment, bytes.size());
}

}  // namespace spate
