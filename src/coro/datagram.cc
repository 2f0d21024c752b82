// Datagram: what has come goes to the one who receives; what nobody has asked for is copied.
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

// Hands out parts of one block of memory. What is made there needs no destructor.
class Parts {
 public:
  explicit Parts(std::byte* memory) : next_(memory) {}

  // Room for so many of them, which are made by the caller.
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

// Packets that came for nobody.
class Datagram::Kept {
 public:
  // nullptr when memory runs out.
  static std::unique_ptr<Kept> copy(std::span<const Packet> packets) {
    std::unique_ptr<Kept> made(new (std::nothrow) Kept);
    if (made == nullptr || !made->fill(packets)) return nullptr;
    return made;
  }

  std::span<const Packet> left;
  std::unique_ptr<Kept> behind;

 private:
  bool fill(std::span<const Packet> packets) {
    const std::size_t count = packets.size();
    memory_ = Block(aligned(count * sizeof(Packet)) + aligned(2 * count * sizeof(Address)) +
                    size_of_bytes(packets));
    if (!memory_) return false;
    Parts parts(memory_.data());
    Packet* const first = parts.room_for<Packet>(count);
    Address* const addresses = parts.room_for<Address>(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const Packet& packet = packets[i];
      new (first + i) Packet{.bytes = parts.copy(packet.bytes),
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
  SPATE_ASSERT(receiving_ == nullptr && first_ == nullptr, "somebody waits for this Datagram");
  if (arrival_ != nullptr) arrival_->is_gone = true;
}

// ---- receiving

// Whoever receives goes on inside, and may receive on. A call may be nested in another, as whoever
// goes on may run the loop: what that one has left came before.
void Datagram::on_packets(std::span<const Packet> packets) {
  Arrival* const outer = arrival_;
  if (outer != nullptr) keep(std::exchange(outer->left, {}));
  Arrival arrival{packets};
  arrival_ = &arrival;
  while (receiving_ != nullptr && !arrival.left.empty() && kept_ == nullptr) {
    const Then then = receiving_->then_;
    if (then.chain().is_running()) break;
    receiving_ = nullptr;
    then.go();
    if (arrival.is_gone) {
      if (outer != nullptr) outer->is_gone = true;
      return;
    }
  }
  arrival_ = outer;
  keep(arrival.left);
  look();
}

// Without memory they are lost, as packets may be, and that is told.
void Datagram::keep(std::span<const Packet> packets) {
  if (packets.empty()) return;
  std::unique_ptr<Kept> made = Kept::copy(packets);
  if (made == nullptr) {
    error_ = std::make_error_code(std::errc::not_enough_memory);
    return;
  }
  std::unique_ptr<Kept>* last = &kept_;
  while (*last != nullptr) last = &(*last)->behind;
  *last = std::move(made);
}

// Watches while somebody receives and has nothing.
void Datagram::look() {
  const bool has_something = has_packets() || error_;
  const bool is_wanted = receiving_ != nullptr && !has_something;
  if (is_wanted != std::exchange(is_watching_, is_wanted)) {
    is_wanted ? datagram_.resume() : datagram_.pause();
  }
  if (receiving_ == nullptr || !has_something || std::exchange(receiving_->is_woken_, true)) return;
  receiving_->then_.wake();
}

bool Datagram::has_packets() const {
  return kept_ != nullptr || (arrival_ != nullptr && !arrival_->left.empty());
}

std::span<const Packet> Datagram::take(std::size_t most) {
  shown_.reset();
  if (kept_ != nullptr) return take_kept(most);
  if (arrival_ == nullptr) return {};
  const auto taken = arrival_->left.first(std::min(most, arrival_->left.size()));
  arrival_->left = arrival_->left.subspan(taken.size());
  return taken;
}

std::span<const Packet> Datagram::take_kept(std::size_t most) {
  const auto taken = kept_->left.first(std::min(most, kept_->left.size()));
  kept_->left = kept_->left.subspan(taken.size());
  if (!kept_->left.empty()) return taken;
  shown_ = std::move(kept_);
  kept_ = std::move(shown_->behind);
  return taken;
}

// Of who only sends it is told to the next one who receives.
void Datagram::on_error(std::error_code error) {
  error_ = error;
  look();
}

bool Datagram::Receive::await_ready() const {
  SPATE_ASSERT(datagram_.receiving_ == nullptr, "one coroutine receives at a time");
  return datagram_.has_packets() || datagram_.error_ || datagram_.datagram_.fd() < 0;
}

bool Datagram::Receive::start(Promise&, Then then) {
  then_ = then;
  datagram_.receiving_ = this;
  datagram_.look();
  return true;
}

void Datagram::Receive::cancel() {
  std::exchange(then_, Then()).leave();
  if (datagram_.receiving_ != this) return;
  datagram_.receiving_ = nullptr;
  datagram_.look();
}

Result<std::span<const Packet>> Datagram::Receive::take(std::size_t most) {
  then_ = Then();
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

// Who was sent what he waited with is woken: nobody goes on inside.
void Datagram::on_writable() {
  while (first_ != nullptr && first_->try_now()) {
    const Then then = first_->then_;
    first_->is_waiting_ = false;
    first_ = first_->next_;
    (first_ != nullptr ? first_->previous_ : last_) = nullptr;
    then.wake();
  }
}

// False: there is no room.
bool Datagram::Send::try_now() {
  const std::size_t sent = datagram_.datagram_.send(rest_, &error_);
  rest_ = rest_.subspan(sent);
  if (!has_no_room(error_)) return true;
  error_ = {};
  return false;
}

bool Datagram::Send::await_ready() { return datagram_.first_ == nullptr && (try_now() || !keep()); }

// False when memory runs out.
bool Datagram::Send::keep() {
  const std::size_t count = rest_.size();
  copy_ = Block(aligned(count * sizeof(Outgoing)) + aligned(count * sizeof(Address)) +
                size_of_bytes(rest_));
  if (!copy_) {
    error_ = std::make_error_code(std::errc::not_enough_memory);
    return false;
  }
  Parts parts(copy_.data());
  Outgoing* const first = parts.room_for<Outgoing>(count);
  Address* const addresses = parts.room_for<Address>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Outgoing& packet = rest_[i];
    const Address* peer =
        packet.peer == nullptr ? nullptr : new (addresses + i) Address(*packet.peer);
    new (first + i) Outgoing{.bytes = parts.copy(packet.bytes), .peer = peer};
  }
  rest_ = {first, count};
  return true;
}

bool Datagram::Send::start(Promise&, Then then) {
  if (!copy_ && !keep()) return false;
  then_ = then;
  is_waiting_ = true;
  previous_ = datagram_.last_;
  (previous_ != nullptr ? previous_->next_ : datagram_.first_) = this;
  datagram_.last_ = this;
  return true;
}

void Datagram::Send::cancel() {
  std::exchange(then_, Then()).leave();
  if (!std::exchange(is_waiting_, false)) return;
  (previous_ != nullptr ? previous_->next_ : datagram_.first_) = next_;
  (next_ != nullptr ? next_->previous_ : datagram_.last_) = previous_;
}

Result<void> Datagram::Send::await_resume() {
  then_ = Then();
  if (error_) return std::unexpected(error_);
  return {};
}

}  // namespace spate::coro
