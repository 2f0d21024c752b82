// Stream: what its connection tells goes to the one who reads, and to the one who waits.
#include "spate/coro/stream.h"

namespace spate::coro {

// Offers what has come once more, when the chain that reads no longer runs the loop.
class Stream::Retry : public Chooser {
 public:
  explicit Retry(Stream& stream) : Chooser(choose), stream_(stream) {}

 private:
  static std::coroutine_handle<> choose(Chooser& self) {
    static_cast<Retry&>(self).stream_.stream_.resume();
    return nullptr;
  }

  Stream& stream_;
};

Stream::Stream(spate::Stream stream) : stream_(std::move(stream)) {
  if (stream_.is_open()) {
    stream_.start(*this);
  } else {
    over_ = Over::all;
  }
}

Stream::~Stream() {
  SPATE_ASSERT(reading_ == nullptr && waiting_ == nullptr, "somebody waits for this Stream");
  if (arrival_ != nullptr) arrival_->is_gone = true;
}

// False if it needs more than is there.
inline bool Stream::give(Read& read) {
  if (read.next_ != nullptr) return give_framed(read);
  read.outcome_ = std::exchange(arrival_->left, {});
  return true;
}

// Whoever reads is resumed inside, and may read on; what nobody reads waits, and so does the peer.
std::size_t Stream::on_data(Bytes bytes) {
  Arrival arrival{bytes};
  arrival_ = &arrival;
  while (reading_ != nullptr && !arrival.left.empty()) {
    const Then then = reading_->then_;
    Promise& chain = then.chain();
    if (chain.is_running()) {
      keep_for_later(then);
      break;
    }
    if (!give(*reading_)) break;
    reading_ = nullptr;
    chain.resume(then);
    if (arrival.is_gone) return bytes.size();
  }
  arrival_ = nullptr;
  if (reading_ == nullptr && !arrival.left.empty()) stream_.pause();
  return bytes.size() - arrival.left.size();
}

bool Stream::give_framed(Read& read) {
  Bytes& left = arrival_->left;
  const Frame frame = read.next_(read, left);
  if (frame.state == Frame::State::unfinished) {
    stream_.want(frame.size);
    return false;
  }
  if (frame.state == Frame::State::broken) {
    read.outcome_ = std::unexpected(std::make_error_code(std::errc::bad_message));
    return true;
  }
  read.outcome_ = frame.message;
  left = left.subspan(frame.size);
  return true;
}

void Stream::keep_for_later(Then then) {
  stream_.pause();
  if (retry_ == nullptr) retry_.reset(new (std::nothrow) Retry(*this));
  if (retry_ == nullptr) {
    error_ = std::make_error_code(std::errc::not_enough_memory);
    over_ = Over::all;
    stream_.abort();
    return end_read();
  }
  retry_->awaiting = &then.chain();
  Then(*retry_).wake();
}

// Why there is nothing more to read; `is_inside` a message.
std::error_code Stream::reason(bool is_inside) const {
  if (error_) return error_;
  return is_inside ? Error::truncated : Error::ended;
}

void Stream::end_read() {
  Read& read = *std::exchange(reading_, nullptr);
  read.end(!stream_.unread().empty());
  const Then then = read.then_;
  then.go();
}

void Stream::on_end() {
  over_ = Over::input;
  if (reading_ != nullptr) end_read();
}

void Stream::on_drained() {
  if (waiting_ == nullptr || waiting_->what_ != Wait::For::room) return;
  const Then then = std::exchange(waiting_, nullptr)->then_;
  then.go();
}

// Two may wait; whoever goes on at once may destroy this.
void Stream::on_closed(std::error_code error) {
  over_ = Over::all;
  error_ = error;
  if (waiting_ != nullptr) {
    Wait& wait = *std::exchange(waiting_, nullptr);
    wait.end();
    wait.then_.wake();
  }
  if (reading_ != nullptr) end_read();
}

// ---- reading

bool Stream::Read::try_now() {
  const Arrival* const arrival = stream_.arrival_;
  if (arrival != nullptr && !arrival->left.empty() && stream_.give(*this)) return true;
  if (stream_.over_ == Over::nothing) return false;
  end(false);
  return true;
}

void Stream::Read::cancel() {
  then_.leave();
  if (stream_.reading_ != this) return;
  stream_.reading_ = nullptr;
  if (stream_.retry_ != nullptr) stream_.retry_->leave();
  if (stream_.stream_.unread().empty()) return;
  stream_.stream_.pause();
  stream_.stream_.want(0);
}

// A connection that ends between two arrivals is the end of file to read_some().
void Stream::Read::end(bool is_inside) {
  if (next_ == nullptr && !stream_.error_) return;
  outcome_ = std::unexpected(stream_.reason(is_inside));
}

// ---- waiting

bool Stream::Wait::await_ready() const {
  SPATE_ASSERT(stream_.waiting_ == nullptr, "one coroutine waits to send at a time");
  if (error_ || stream_.over_ == Over::all) return true;
  return what_ == For::room && !stream_.stream_.is_full();
}

bool Stream::Wait::start(Promise&, Then then) {
  then_ = then;
  stream_.waiting_ = this;
  return true;
}

void Stream::Wait::cancel() {
  then_.leave();
  if (stream_.waiting_ == this) stream_.waiting_ = nullptr;
}

void Stream::Wait::end() {
  error_ = stream_.error_;
  if (!error_ && what_ == For::room) error_ = std::make_error_code(std::errc::broken_pipe);
}

Result<void> Stream::Wait::await_resume() {
  if (!then_ && stream_.over_ == Over::all && !error_) end();
  if (error_) return std::unexpected(error_);
  return {};
}

}  // namespace spate::coro
