// Datagram: passes packets to the receiver; packets that no coroutine has asked for are copied.
#include "spate/coro/datagram.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace spate::coro {
namespace {

constexpr std::size_t kAligned = 16;
constexpr std::size_t aligned(std::size_t size) { return (size + kAligned - 1) & ~(kAligned - 1); }

// Allocates from one block of memory. Its objects need no destructor.
class BlockAllocator {
 public:
  explicit BlockAllocator(std::byte* memory) : next_(memory) {}

  // Returns room for `count` objects, which the caller constructs.
  template <class T>
  T* room_for(std::size_t count) {
    static_assert(alignof(T) <= kAligned && std::is_trivially_destructible_v<T>);
    return reinterpret_cast<T*>(std::exchange(next_, next_ + aligned(count * sizeof(T))));
  }
  Bytes copy(Bytes bytes) {
    if (!bytes.empty()) std::memcpy(next_, bytes.data(), bytes.size());
    return {std::exchange(next_, next_ + bytes.size()), bytes.size()};
  }

 private:
  std::byte* next_;
};

template <class T>
std::size_t size_of_bytes(std::span<const T> packets) {
  std::size_t size = 0;
  for (const T& packet : packets) size += packet.bytes.size();
  return size;
}

bool has_no_room(std::error_code error) {
  return error == std::errc::resource_unavailable_try_again || error == std::errc::no_buffer_space;
}

}  // namespace

// Packets that arrived while no coroutine was receiving.
class Datagram::StoredPackets {
 public:
  // Returns nullptr when memory runs out.
  static std::unique_ptr<StoredPackets> copy(std::span<const Packet> packets) {
    std::unique_ptr<StoredPackets> made(new (std::nothrow) StoredPackets);
    if (made == nullptr || !made->fill(packets)) return nullptr;
    return made;
  }

  std::span<const Packet> left;
  std::unique_ptr<StoredPackets> next;

 private:
  bool fill(std::span<const Packet> packets) {
    const std::size_t count = packets.size();
    memory_ = Block(aligned(count * sizeof(Packet)) + aligned(2 * count * sizeof(Address)) +
                    size_of_bytes(packets));
    if (!memory_) return false;
    BlockAllocator block(memory_.data());
    Packet* const first = block.room_for<Packet>(count);
    Address* const addresses = block.room_for<Address>(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const Packet& packet = packets[i];
      new (first + i) Packet{.bytes = block.copy(packet.bytes),
                             .peer = *new (addresses + 2 * i) Address(packet.peer),
                             .local = *new (addresses + 2 * i + 1) Address(packet.local),
                             .ecn = packet.ecn,
                             .truncated = packet.truncated};
    }
    left = {first, count};
    return true;
  }

  Block memory_;
};

Datagram::Datagram(spate::Datagram datagram) : datagram_(std::move(datagram)) {
  if (datagram_.fd() < 0) return;
  datagram_.start(*this);
  datagram_.pause();
}

Datagram::~Datagram() {
  SPATE_ASSERT(receiving_ == nullptr && first_ == nullptr,
               "a Datagram was destroyed while a coroutine waits for it");
  if (batch_ != nullptr) batch_->is_destroyed = true;
}

// ---- receiving

// Resumes the receiver inside, which may receive further packets, and may run the loop. So calls
// may be nested: the packets left by the outer call came first.
void Datagram::on_packets(std::span<const Packet> packets) {
  Batch* const outer = batch_;
  if (outer != nullptr) store(std::exchange(outer->left, {}));
  Batch arrival{packets};
  batch_ = &arrival;
  while (receiving_ != nullptr && !arrival.left.empty() && stored_ == nullptr) {
    const Continuation continuation = receiving_->continuation_;
    if (continuation.fiber().is_running()) break;
    receiving_ = nullptr;
    continuation.resume();
    if (arrival.is_destroyed) {
      if (outer != nullptr) outer->is_destroyed = true;
      return;
    }
  }
  batch_ = outer;
  store(arrival.left);
  update_receiving();
}

// When memory runs out the packets are lost, which UDP allows, and the error is reported.
void Datagram::store(std::span<const Packet> packets) {
  if (packets.empty()) return;
  std::unique_ptr<StoredPackets> made = StoredPackets::copy(packets);
  if (made == nullptr) {
    error_ = std::make_error_code(std::errc::not_enough_memory);
    return;
  }
  std::unique_ptr<StoredPackets>* last = &stored_;
  while (*last != nullptr) last = &(*last)->next;
  *last = std::move(made);
}

// Receives from the socket only while a receiver waits without a packet.
void Datagram::update_receiving() {
  const bool has_something = has_packets() || error_;
  const bool is_wanted = receiving_ != nullptr && !has_something;
  if (is_wanted != std::exchange(is_watching_, is_wanted)) {
    is_wanted ? datagram_.resume() : datagram_.pause();
  }
  if (receiving_ == nullptr || !has_something || std::exchange(receiving_->is_woken_, true)) return;
  receiving_->continuation_.wake();
}

bool Datagram::has_packets() const {
  return stored_ != nullptr || (batch_ != nullptr && !batch_->left.empty());
}

std::span<const Packet> Datagram::take(std::size_t most) {
  current_.reset();
  if (stored_ != nullptr) return take_stored(most);
  if (batch_ == nullptr) return {};
  const auto taken = batch_->left.first(std::min(most, batch_->left.size()));
  batch_->left = batch_->left.subspan(taken.size());
  return taken;
}

std::span<const Packet> Datagram::take_stored(std::size_t most) {
  const auto taken = stored_->left.first(std::min(most, stored_->left.size()));
  stored_->left = stored_->left.subspan(taken.size());
  if (!stored_->left.empty()) return taken;
  current_ = std::move(stored_);
  stored_ = std::move(current_->next);
  return taken;
}

// A coroutine that only sends never sees it: the next receiver gets it.
void Datagram::on_error(std::error_code error) {
  error_ = error;
  update_receiving();
}

bool Datagram::Receive::await_ready() const {
  SPATE_ASSERT(datagram_.receiving_ == nullptr, "only one coroutine may receive at a time");
  return datagram_.has_packets() || datagram_.error_ || datagram_.datagram_.fd() < 0;
}

bool Datagram::Receive::start(Promise&, Continuation continuation) {
  continuation_ = continuation;
  datagram_.receiving_ = this;
  datagram_.update_receiving();
  return true;
}

void Datagram::Receive::cancel() {
  std::exchange(continuation_, Continuation()).cancel();
  if (datagram_.receiving_ != this) return;
  datagram_.receiving_ = nullptr;
  datagram_.update_receiving();
}

Result<std::span<const Packet>> Datagram::Receive::take(std::size_t most) {
  continuation_ = Continuation();
  if (datagram_.receiving_ == this) datagram_.receiving_ = nullptr;
  const std::span<const Packet> taken = datagram_.take(most);
  if (!taken.empty()) return taken;
  const std::error_code error = std::exchange(datagram_.error_, {});
  return std::unexpected(error ? error : std::make_error_code(std::errc::bad_file_descriptor));
}

Result<Packet> Datagram::Receive::await_resume() {
  const Result<std::span<const Packet>> taken = take(1);
  if (!taken) return std::unexpected(taken.error());
  return taken->front();
}

// ---- sending

// Wakes senders whose packets were sent. They are resumed later, so that they cannot change the
// list here.
void Datagram::on_writable() {
  while (first_ != nullptr && first_->try_now()) {
    const Continuation continuation = first_->continuation_;
    first_->is_waiting_ = false;
    first_ = first_->next_;
    (first_ != nullptr ? first_->previous_ : last_) = nullptr;
    continuation.wake();
  }
}

// Returns false if the kernel has no room.
bool Datagram::Send::try_now() {
  const std::size_t sent = datagram_.datagram_.send(rest_, &error_);
  rest_ = rest_.subspan(sent);
  if (!has_no_room(error_)) return true;
  error_ = {};
  return false;
}

bool Datagram::Send::await_ready() {
  return datagram_.first_ == nullptr && (try_now() || !copy_packets());
}

// Copies the packets that wait. False when memory runs out.
bool Datagram::Send::copy_packets() {
  const std::size_t count = rest_.size();
  copy_ = Block(aligned(count * sizeof(Outgoing)) + aligned(2 * count * sizeof(Address)) +
                size_of_bytes(rest_));
  if (!copy_) {
    error_ = std::make_error_code(std::errc::not_enough_memory);
    return false;
  }
  BlockAllocator block(copy_.data());
  Outgoing* const first = block.room_for<Outgoing>(count);
  Address* addresses = block.room_for<Address>(2 * count);
  const auto copy_of = [&](const Address* address) {
    return address == nullptr ? nullptr : new (addresses++) Address(*address);
  };
  for (std::size_t i = 0; i < count; ++i) {
    Outgoing* const packet = new (first + i) Outgoing(rest_[i]);
    packet->bytes = block.copy(packet->bytes);
    packet->peer = copy_of(packet->peer);
    packet->local = copy_of(packet->local);
  }
  rest_ = {first, count};
  return true;
}

bool Datagram::Send::start(Promise&, Continuation continuation) {
  if (!copy_ && !copy_packets()) return false;
  continuation_ = continuation;
  is_waiting_ = true;
  previous_ = datagram_.last_;
  (previous_ != nullptr ? previous_->next_ : datagram_.first_) = this;
  datagram_.last_ = this;
  return true;
}

void Datagram::Send::cancel() {
  std::exchange(continuation_, Continuation()).cancel();
  if (!std::exchange(is_waiting_, false)) return;
  (previous_ != nullptr ? previous_->next_ : datagram_.first_) = next_;
  (next_ != nullptr ? next_->previous_ : datagram_.last_) = previous_;
}

Result<void> Datagram::Send::await_resume() {
  continuation_ = Continuation();
  if (error_) return std::unexpected(error_);
  return {};
}

}  // namespace spate::coro
