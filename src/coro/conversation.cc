// Conversation: pieces go to the one who reads, and ends to all.
#include "spate/coro/conversation.h"

#include <cstring>
#include <new>
#include <utility>

namespace spate::coro {

// A piece that came for nobody.
class Conversation::Kept {
 public:
  // Both: nullptr when memory runs out.
  static std::unique_ptr<Kept> make(std::size_t size, std::uint8_t kind) {
    std::unique_ptr<Kept> made(new (std::nothrow) Kept(size));
    if (made == nullptr || !made->memory_) return nullptr;
    made->piece = {{made->memory_.data(), size}, kind};
    return made;
  }
  static std::unique_ptr<Kept> copy(Bytes bytes, std::uint8_t kind) {
    std::unique_ptr<Kept> made = make(bytes.size(), kind);
    if (made != nullptr && !bytes.empty())
      std::memcpy(made->memory_.data(), bytes.data(), bytes.size());
    return made;
  }

  std::span<std::byte> room() { return {memory_.data(), piece.bytes.size()}; }

  Piece piece;
  std::unique_ptr<Kept> behind;

 private:
  explicit Kept(std::size_t size) : memory_(size) {}

  Block memory_;
};

Conversation::Conversation() = default;

Conversation::~Conversation() {
  SPATE_ASSERT(reading_ == nullptr, "somebody reads from what is destroyed");
  for ([[maybe_unused]] const Wait* wait : waiting_) {
    SPATE_ASSERT(wait == nullptr, "somebody waits for what is destroyed");
  }
  if (gone_ != nullptr) *gone_ = true;
}

std::error_code Conversation::write_error() const {
  return error_ ? error_ : std::make_error_code(std::errc::broken_pipe);
}

// ---- what the callbacks tell

// False if the object is gone.
bool Conversation::go_on(Then then) {
  bool is_gone = false;
  bool* const outer = std::exchange(gone_, &is_gone);
  then.go();
  if (is_gone) {
    if (outer != nullptr) *outer = true;
    return false;
  }
  gone_ = outer;
  return true;
}

void Conversation::give(Bytes bytes, std::uint8_t kind) {
  Read* const read = reading_;
  const bool can_go_on = read != nullptr && !read->is_woken_ && !read->then_.chain().is_running();
  if (!can_go_on) {
    if (!keep(bytes, kind)) return;
    return look();
  }
  read->given_ = Piece{bytes, kind};
  reading_ = nullptr;
  if (go_on(read->then_)) look();
}

// Watches while somebody reads and has nothing. Of what has not begun, nothing can come.
void Conversation::look() {
  if (over_ != Over::nothing || !is_begun_) return;
  set_paused(reading_ == nullptr || kept_ != nullptr);
  if (reading_ == nullptr || kept_ == nullptr) return;
  if (!std::exchange(reading_->is_woken_, true)) reading_->then_.wake();
}

void Conversation::set_paused(bool is_paused) {
  if (is_paused == std::exchange(is_paused_, is_paused)) return;
  is_paused ? pause() : resume();
}

bool Conversation::keep(Bytes bytes, std::uint8_t kind) {
  std::unique_ptr<Kept> made = Kept::copy(bytes, kind);
  if (made == nullptr) return lose_memory(), false;
  std::unique_ptr<Kept>* last = &kept_;
  while (*last != nullptr) last = &(*last)->behind;
  *last = std::move(made);
  return true;
}

void Conversation::put_back(const Buffer& bytes, std::uint8_t kind) {
  std::unique_ptr<Kept> made = Kept::make(bytes.size(), kind);
  if (made == nullptr) return lose_memory();
  bytes.copy(made->room());
  made->behind = std::move(kept_);
  kept_ = std::move(made);
}

// Without some for what was sent to us, the connection is worth nothing.
void Conversation::lose_memory() {
  give_up();
  close(std::make_error_code(std::errc::not_enough_memory));
}

Conversation::Piece Conversation::take_kept() {
  shown_ = std::move(kept_);
  kept_ = std::move(shown_->behind);
  return shown_->piece;
}

void Conversation::open() {
  is_begun_ = true;
  Wait*& waiting = waiting_[static_cast<std::size_t>(Wait::For::beginning)];
  if (waiting != nullptr && !go_on(std::exchange(waiting, nullptr)->then_)) return;
  look();
}

void Conversation::drain() {
  Wait*& waiting = waiting_[static_cast<std::size_t>(Wait::For::room)];
  if (waiting == nullptr) return;
  const Then then = std::exchange(waiting, nullptr)->then_;
  then.go();
}

void Conversation::end_input() {
  if (over_ == Over::nothing) over_ = Over::input;
  if (reading_ == nullptr || std::exchange(reading_->is_woken_, true)) return;
  const Then then = std::exchange(reading_, nullptr)->then_;
  then.go();
}

void Conversation::wake_waits() {
  for (Wait*& waiting : waiting_) {
    if (waiting != nullptr) std::exchange(waiting, nullptr)->then_.wake();
  }
}

// Whoever goes on at once may destroy this.
void Conversation::close(std::error_code error) {
  over_ = Over::all;
  error_ = error;
  wake_waits();
  end_input();
}

// ---- reading

bool Conversation::Read::await_ready() const {
  SPATE_ASSERT(conversation_.reading_ == nullptr, "one coroutine reads at a time");
  return conversation_.kept_ != nullptr || conversation_.over_ != Over::nothing;
}

bool Conversation::Read::start(Promise&, Then then) {
  then_ = then;
  conversation_.reading_ = this;
  conversation_.look();
  return true;
}

void Conversation::Read::cancel() {
  if (!then_) return;
  std::exchange(then_, Then()).leave();
  if (conversation_.reading_ != this) return;
  conversation_.reading_ = nullptr;
  conversation_.look();
}

Result<Conversation::Piece> Conversation::Read::take() {
  then_ = Then();
  if (conversation_.reading_ == this) conversation_.reading_ = nullptr;
  if (given_) return *given_;
  if (conversation_.kept_ != nullptr) return conversation_.take_kept();
  const std::error_code error =
      conversation_.error_ ? conversation_.error_ : conversation_.end_of_input();
  if (error) return std::unexpected(error);
  return Piece();
}

// ---- waiting for something else

bool Conversation::Wait::await_ready() const {
  SPATE_ASSERT(conversation_.waiting_[static_cast<std::size_t>(what_)] == nullptr,
               "one coroutine waits for this at a time");
  if (error_ || conversation_.is_over()) return true;
  if (what_ == For::beginning) return conversation_.is_begun();
  return what_ == For::room && !conversation_.is_full();
}

bool Conversation::Wait::start(Promise&, Then then) {
  then_ = then;
  conversation_.waiting_[static_cast<std::size_t>(what_)] = this;
  return true;
}

void Conversation::Wait::cancel() {
  if (!then_) return;
  std::exchange(then_, Then()).leave();
  Wait*& waiting = conversation_.waiting_[static_cast<std::size_t>(what_)];
  if (waiting == this) waiting = nullptr;
}

Result<void> Conversation::Wait::await_resume() {
  then_ = Then();
  if (!error_ && conversation_.is_over()) {
    const bool is_what_was_wanted =
        what_ == For::end || (what_ == For::beginning && conversation_.is_begun());
    error_ = is_what_was_wanted ? conversation_.error_ : conversation_.write_error();
  }
  if (error_) return std::unexpected(error_);
  return {};
}

}  // namespace spate::coro
