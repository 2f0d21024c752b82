#include "net/datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/user_code.h"
#include "net/net.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

iovec vector_of(Bytes bytes) {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
}

msghdr message_of(iovec& part, const Address* peer) {
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (peer != nullptr) {
    message.msg_name = const_cast<void*>(peer->data());
    message.msg_namelen = static_cast<socklen_t>(peer->size());
  }
  return message;
}

bool is_full(long result) { return result == -EAGAIN || result == -ENOBUFS; }

// An older kernel, a device without checksums of its own, or a packet that is too large: the single
// packets will tell.
bool may_be_for_joining(long result) {
  return result == -EINVAL || result == -EIO || result == -EOPNOTSUPP || result == -ENOPROTOOPT ||
         result == -EMSGSIZE;
}

}  // namespace

std::expected<DatagramSocket*, std::error_code> DatagramSocket::make(
    Loop& loop, sys::Descriptor& socket, const DatagramOptions& options) {
  Net* net = Net::of(loop);
  auto* made = net == nullptr || !net->open_packets()
                   ? nullptr
                   : new (std::nothrow) DatagramSocket(*net, std::move(socket), options);
  if (made == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  return made;
}

DatagramSocket::DatagramSocket(Net& net, sys::Descriptor socket, const DatagramOptions& options)
    : net_(net),
      socket_(std::move(socket)),
      options_(options),
      io_(net.loop(), socket_.get(), Events::none, bind<&DatagramSocket::on_ready>(this)) {
  net_.enter();
}

DatagramSocket::~DatagramSocket() {
  io_.stop_closing();
  net_.leave();
}

void DatagramSocket::abandon() {
  abandoned_ = true;
  handler_ = nullptr;
  if (!in_callback_) delete this;
}

void DatagramSocket::start(DatagramHandler& handler) {
  handler_ = &handler;
  resume();
}

void DatagramSocket::pause() { io_.modify(io_.events() & ~Events::read); }

void DatagramSocket::resume() {
  io_.modify(io_.events() | Events::read);
  watch();
}

// Without memory for it, it is tried again in the loop's own time.
void DatagramSocket::watch() {
  if (!io_.start()) io_.feed(Events::error);
}

// ---- receiving

void DatagramSocket::on_ready(Events events) {
  if (!io_.is_active()) return on_refused();
  if (any(events & Events::write) && any(io_.events() & Events::write)) {
    io_.modify(io_.events() & ~Events::write);
    if (!call([](DatagramHandler& handler) { handler.on_writable(); })) return;
  }
  if (any(events & Events::read) && any(io_.events() & Events::read)) receive();
}

// The kernel refuses to watch, for lack of memory mostly: it is asked again.
void DatagramSocket::on_refused() {
  const std::error_code error = io_.error() ? io_.error() : sys::error_code(-ENOMEM);
  watch();
  call([&](DatagramHandler& handler) { handler.on_error(error); });
}

// False if the socket is gone.
template <class Function>
bool DatagramSocket::call(Function function) {
  if (handler_ == nullptr) return true;
  in_callback_ = true;
  call_user("DatagramHandler", [&] { function(*handler_); });
  in_callback_ = false;
  if (!abandoned_) return true;
  delete this;
  return false;
}

// One call to the kernel; if it brought all that there is room for, the next turn goes on.
void DatagramSocket::receive() {
  PacketBatch& batch = net_.packets();
  const Loans<Arrivals>::Loan arrivals = net_.lend_arrivals();
  if (!arrivals) return;
  const std::span<std::byte> room = arrivals->room();
  const std::size_t size = options_.coalesce ? room.size() : options_.packet_size;
  const long received = batch.receive(socket_.get(), room, size);
  if (received == -EAGAIN || received == -EINTR) return;
  call([&](DatagramHandler& handler) {
    if (received < 0) return handler.on_error(sys::error_code(received));
    handler.on_packets(batch.packets());
  });
}

// ---- sending

// Notes that the kernel has no room, and has the handler told when it has.
std::error_code DatagramSocket::refused(long result) {
  if (is_full(result)) {
    io_.modify(io_.events() | Events::write);
    watch();
  }
  return sys::error_code(result);
}

std::error_code DatagramSocket::send(Bytes bytes, const Address* peer) {
  iovec part = vector_of(bytes);
  const long result = sys::send_message(socket_.get(), message_of(part, peer));
  return result < 0 ? refused(result) : std::error_code();
}

std::size_t DatagramSocket::send(std::span<const Outgoing> packets, std::error_code& error) {
  std::size_t sent = 0;
  while (sent < packets.size()) {
    mmsghdr messages[kBatch];
    iovec parts[kBatch];
    const std::size_t count = std::min(packets.size() - sent, kBatch);
    for (std::size_t i = 0; i < count; ++i) {
      parts[i] = vector_of(packets[sent + i].bytes);
      messages[i] = {.msg_hdr = message_of(parts[i], packets[sent + i].peer), .msg_len = 0};
    }
    const long result = sys::send_messages(socket_.get(), {messages, count});
    if (result == -EINTR) continue;
    if (result < 0) return error = refused(result), sent;
    sent += static_cast<std::size_t>(result);
  }
  return sent;
}

std::expected<std::size_t, std::error_code> DatagramSocket::send_segments(Bytes bytes,
                                                                          std::size_t segment,
                                                                          const Address& peer) {
  // What one message may carry: the kernel's bounds on packets and on bytes.
  constexpr std::size_t kMostSegments = 64;
  constexpr std::size_t kMostBytes = 65000;
  const std::size_t step = std::min(kMostSegments, std::max<std::size_t>(kMostBytes / segment, 1));
  std::size_t sent = 0;
  std::error_code error;
  while (sent < bytes.size() && !error) {
    const Bytes part = bytes.subspan(sent, std::min(step * segment, bytes.size() - sent));
    iovec vector = vector_of(part);
    const long result = can_join_ && part.size() > segment
                            ? sys::send_joined(socket_.get(), message_of(vector, &peer),
                                               static_cast<std::uint16_t>(segment))
                            : -EOPNOTSUPP;
    if (result == -EINTR) continue;
    if (result >= 0) {
      sent += part.size();
    } else if (!may_be_for_joining(result)) {
      error = refused(result);
    } else {
      can_join_ = can_join_ && part.size() <= segment;
      sent += send_one_by_one(part, segment, peer, error);
    }
  }
  if (sent == 0 && error) return std::unexpected(error);
  return sent;
}

std::size_t DatagramSocket::send_one_by_one(Bytes bytes, std::size_t segment, const Address& peer,
                                            std::error_code& error) {
  Outgoing packets[kBatch];
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size() && count < kBatch; at += segment)
    packets[count++] = {.bytes = bytes.subspan(at, std::min(segment, bytes.size() - at)),
                        .peer = &peer};
  const std::size_t sent = send(std::span(packets).first(count), error);
  return std::min(sent * segment, bytes.size());
}

}  // namespace spate
