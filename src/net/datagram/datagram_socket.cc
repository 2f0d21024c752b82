#include "net/datagram/datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/ownership.h"
#include "core/user_code.h"
#include "net/socket_address.h"
#include "spate/assert.h"
#include "spate/named_callback.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

bool is_full(long result) { return result == -EAGAIN || result == -ENOBUFS; }

// Errors of UDP_SEGMENT: an old kernel, a device without checksum offload, or a packet that is too
// large. Sending the packets one by one returns the real error.
bool may_be_for_joining(long result) {
  return result == -EINVAL || result == -EIO || result == -EOPNOTSUPP || result == -ENOPROTOOPT ||
         result == -EMSGSIZE;
}

PacketShape shape_of(const DatagramOptions& options) {
  return {.packet_size = options.packet_size,
          .joined = options.coalesce,
          .has_info = options.local_address || options.ecn || options.coalesce};
}

void show_datagram(const Node& node, ActiveInfo& info) {
  info.label = local_address_of(reinterpret_cast<const FdNode&>(node).fd).to_string();
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
      io_(room.loop(), socket_.get(), Events::none,
          named<Io, ActiveKind::datagram, show_datagram>(bind<&DatagramSocket::on_ready>(this))),
      resting_(room.loop(),
               named<Timer, ActiveKind::datagram>(bind<&DatagramSocket::look_again>(this))),
      retry_(room.loop(),
             named<Timer, ActiveKind::datagram>(bind<&DatagramSocket::report_writable>(this))),
      loop_ends_(room.loop(), bind<&DatagramSocket::drop_callbacks>(this)),
      family_(sys::domain_of(socket_.get())),
      can_join_(sys::is_udp(socket_.get())) {
  loop_ends_.set_priority(kPriorityMin);  // After the program's own hooks.
  room_.enter();
}

DatagramSocket::~DatagramSocket() { room_.leave(); }

// Returns whether the calling thread may use it.
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
  loop_ends_.stop();
  socket_ = sys::Descriptor();
  handler_ = nullptr;
  Abandonable::abandon();
}

void DatagramSocket::start(DatagramHandler& handler) {
  handler_ = &handler;
  resume();
  if (callbacks_.get() != handler_) drop_callbacks();
}

// Destroying them may destroy the Datagram, so callers do nothing after this.
void DatagramSocket::drop_callbacks() {
  loop_ends_.stop();
  const OwnCallbacks gone = std::move(callbacks_);
  if (gone != nullptr && handler_ == gone.get()) handler_ = nullptr;
}

bool DatagramSocket::start(DatagramCallbacks callbacks) {
  OwnCallbacks made(new (std::nothrow) DatagramCallbackHandler(std::move(callbacks)));
  if (made == nullptr || (room_.is_alive() && !loop_ends_.start())) return false;
  std::swap(callbacks_, made);
  start(*callbacks_);
  return true;  // Last, because destroying the replaced functions may destroy the Datagram.
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

// Without memory for the timer, retries in the next turn.
void DatagramSocket::rest() {
  if (!resting_.start(kRest)) io_.feed(Events::custom);
}

void DatagramSocket::look_again() {
  if (!any(io_.events())) return;
  const std::error_code error = io_.start_now();
  if (error) return on_refused(error);
  is_error_reported_ = false;
}

// An immediate retry would fail again, in a busy loop.
void DatagramSocket::on_refused(std::error_code error) {
  rest();
  if (std::exchange(is_error_reported_, true)) return;
  tell([&](DatagramHandler& handler) { handler.on_error(error); });
}

// ---- receiving

void DatagramSocket::on_ready(Events events) {
  if (any(events & Events::custom)) return look_again();
  if (!io_.is_active()) return on_refused(io_.error());
  if (any(events & io_.events() & Events::write)) {
    watch(io_.events() & ~Events::write);
    if (!report_writable()) return;
  }
  if (any(events & io_.events() & Events::read)) receive();
}

// Returns false if the Datagram was destroyed; this is invalid then.
template <class Function>
bool DatagramSocket::tell(Function function) {
  return handler_ == nullptr ||
         call([&] { call_user("DatagramHandler", [&] { function(*handler_); }); });
}

// Makes one system call per turn; more packets wait for the next turn.
void DatagramSocket::receive() {
  const auto batch = room_.borrow();
  const long received = batch ? batch->receive(socket_.get(), shape_) : -ENOMEM;
  if (received < 0) return receive_errors(received);
  if (connected_.family() != Address::Family::none) {
    drop_foreign_packets(*batch);
    if (batch->packets().empty()) return;
  }
  tell([&](DatagramHandler& handler) { handler.on_packets(batch->packets()); });
}

// The kernel compares packets with the peer when they arrive. So packets from others may be queued
// until the queue has been empty once.
std::error_code DatagramSocket::connect(const Address& peer) {
  SPATE_ASSERT(may_be_used(), kWrongThread);
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  const bool is_named = peer.family() != Address::Family::none;
  const long result = is_named ? sys::connect(fd(), peer.data(), peer.size())
                               : sys::connect(fd(), &nobody, sizeof(nobody));
  if (result >= 0) connected_ = is_named ? peer_address_of(fd()) : Address();
  return sys::error_code(result);
}

void DatagramSocket::drop_foreign_packets(PacketBatch& batch) {
  batch.keep_from(connected_);
  if (sys::look_for_input(fd()) == 0) connected_ = Address();
}

// Called when the socket had no packet. Reports and removes the errors in its error queue:
// otherwise it would be ready forever. The first of them is often the one that recvmmsg() has just
// returned.
void DatagramSocket::receive_errors(long received) {
  int errors[1 + sys::kMostQueuedErrors];
  std::size_t count = 0;
  if (received != -EAGAIN && received != -EINTR) errors[count++] = static_cast<int>(-received);
  for (std::size_t i = 0; i < sys::kMostQueuedErrors; ++i) {
    const long error = sys::take_queued_error(socket_.get());
    if (error < 0) break;
    if (error > 0 && (i > 0 || error != -received)) errors[count++] = static_cast<int>(error);
  }
  for (const int error : std::span(errors).first(count)) {
    if (!tell([error](DatagramHandler& handler) { handler.on_error(sys::error_code(-error)); }))
      return;
  }
}

// ---- sending

// Checks the peer's family here, because the kernel's result depends on the socket: it may ignore
// such a peer. Returns 0, or a negated errno.
inline long DatagramSocket::wrong_with(const Address* peer) const {
  if (peer == nullptr) return 0;
  const int family = sys::family_of(peer->data());
  if (family == family_ || (family == AF_INET && family_ == AF_INET6)) return 0;
  return family == AF_UNSPEC ? -EINVAL : -EAFNOSUPPORT;
}

// Handles the result of a send. If the kernel had no room, on_writable() follows.
inline std::error_code DatagramSocket::settle(long result) {
  if (result >= 0) {
    had_room_ = false;
    return none_;
  }
  if (is_full(result) && room_.is_alive()) wait_for_room();
  return sys::error_code(result);
}

// An unconnected unix socket is always writable, and so is a socket whose device queue is full.
// Waiting for EPOLLOUT would call a handler that fails again in every turn, so it waits for a
// timer.
void DatagramSocket::wait_for_room() {
  if (!had_room_ || !retry_.start(kRetry)) watch(io_.events() | Events::write);
}

bool DatagramSocket::report_writable() {
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

// Repeats an interrupted call.
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

// Checks here that the families of the addresses match, because the kernel ignores a source address
// of another family than the peer's.
long DatagramSocket::wrong_with_info(const Outgoing& packet) const {
  if (packet.segment != 0 && packet.bytes.size() > kBatch * packet.segment) return -EINVAL;
  if (packet.ecn && *packet.ecn > Ecn::congested) return -EINVAL;
  if (family_ == AF_UNIX && (packet.local != nullptr || packet.ecn)) return -EOPNOTSUPP;
  if (packet.local == nullptr) return 0;
  const bool is_foreign = packet.peer != nullptr &&
                          packet.local->unmapped().family() != packet.peer->unmapped().family();
  return is_foreign ? -EINVAL : wrong_with(packet.local);
}

// Returns 0, or a negated errno.
long DatagramSocket::add_info(std::size_t index, const Outgoing& packet) {
  if (const long wrong = wrong_with_info(packet)) return wrong;
  return room_.outgoing().add_info(index, packet, family_ == AF_INET6), 0;
}

// Sends in one system call, or one packet that the kernel cannot split in several.
std::size_t DatagramSocket::send_some(std::span<const Outgoing> packets, std::error_code& error) {
  OutgoingBatch& batch = room_.outgoing();
  long wrong = 0;
  std::size_t count = 0;
  for (const std::size_t end = std::min(packets.size(), kBatch); count < end; ++count) {
    const Outgoing& packet = packets[count];
    if ((wrong = wrong_with(packet.peer))) break;
    batch.put(count, packet);
    if (!OutgoingBatch::has_info(packet)) continue;
    if (!can_join_ && OutgoingBatch::is_joined(packet)) break;
    if ((wrong = add_info(count, packet))) break;
  }
  if (count == 0 && wrong != 0) return error = sys::error_code(wrong), 0;
  const std::optional<std::size_t> sent = send_batch(count, packets[0], error);
  if (sent) return *sent;
  return send_one_by_one(packets[0], error) == packets[0].bytes.size() ? 1 : 0;
}

// Sends the first `count` packets of the batch. Returns how many were sent, or nothing if the
// kernel cannot split `first`.
std::optional<std::size_t> DatagramSocket::send_batch(std::size_t count, const Outgoing& first,
                                                      std::error_code& error) {
  if (count == 0) return std::nullopt;
  const long result = room_.outgoing().send(socket_.get(), count);
  if (result == -EINTR) return 0;
  if (OutgoingBatch::is_joined(first) && may_be_for_joining(result)) return std::nullopt;
  error = settle(result);
  return error ? 0 : static_cast<std::size_t>(result);
}

Result<std::size_t> DatagramSocket::send_segments(Bytes bytes, std::size_t segment,
                                                  const Address& peer) {
  SPATE_ASSERT(may_be_used(), kWrongThread);
  constexpr std::size_t kLongest = 65507;  // The largest packet.
  // The most bytes to be split by the kernel, in at most kBatch packets.
  constexpr std::size_t kMaxBytes = 65000;
  if (segment == 0 || segment > kLongest) return std::unexpected(sys::error_code(-EINVAL));
  const std::size_t step = segment * std::clamp<std::size_t>(kMaxBytes / segment, 1, kBatch);
  std::size_t sent = 0;
  std::error_code error = sys::error_code(wrong_with(&peer));
  while (sent < bytes.size() && !error) {
    const Outgoing part{.bytes = bytes.subspan(sent, std::min(step, bytes.size() - sent)),
                        .peer = &peer,
                        .segment = static_cast<std::uint16_t>(segment)};
    sent += send_joined(part, error);
  }
  if (sent == 0 && error) return std::unexpected(error);
  return sent;
}

// Returns how many bytes were sent. Whether UDP_SEGMENT works may depend on the peer and the sizes,
// so it is tried each time. The cost of a failure is one extra call in 65 at most.
std::size_t DatagramSocket::send_joined(const Outgoing& packet, std::error_code& error) {
  if (!can_join_ || !OutgoingBatch::is_joined(packet)) return send_one_by_one(packet, error);
  room_.outgoing().put(0, packet);
  room_.outgoing().add_info(0, packet, family_ == AF_INET6);
  const std::optional<std::size_t> sent = send_batch(1, packet, error);
  return sent ? *sent * packet.bytes.size() : send_one_by_one(packet, error);
}

// Returns how many bytes were sent.
std::size_t DatagramSocket::send_one_by_one(const Outgoing& packet, std::error_code& error) {
  const Bytes bytes = packet.bytes;
  const std::size_t segment = packet.segment;
  Outgoing packets[kBatch];
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size(); at += segment) {
    Outgoing& part = packets[count++] = packet;
    part.bytes = bytes.subspan(at, std::min(segment, bytes.size() - at));
    part.segment = 0;
  }
  const std::size_t sent = send(std::span(packets).first(count), error);
  return std::min(sent * segment, bytes.size());
}

}  // namespace spate
