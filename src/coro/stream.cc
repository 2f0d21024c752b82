// Stream: what its connection tells goes to the one who reads, and to the one who waits.
#include "spate/coro/stream.h"

namespace spate::coro {

// Offers what has come once more, when the chain that reads no longer runs the loop.
class Stream::Retry : public Chooser {
 public:
  explicit Retry(Stream& stream) : Chooser(choose), stream_(stream) {}

 private:
  static Promise* choose(Chooser& self) {
    Stream& stream = static_cast<Retry&>(self).stream_;
    stream.drop_retry();  // This one.
    stream.stream_.resume();
    return nullptr;
  }

  Stream& stream_;
};

Stream::Stream(spate::Stream stream) : stream_(std::move(stream)), waiting_() {
  if (stream_.is_open()) {
    stream_.start(*this);
  } else {
    close({});
  }
}

Stream::~Stream() {
  SPATE_ASSERT(!is_anybody_waiting(), "somebody waits for this Stream");
  Arrival* const arrival = input_.arrival();
  if (arrival == nullptr) return;
  arrival->is_gone = true;
  arrival->left = {};
}

spate::Stream Stream::release() {
  SPATE_ASSERT(!is_anybody_waiting(), "somebody waits for this Stream");
  stream_.stop();
  if (Arrival* const arrival = input_.arrival()) arrival->is_gone = true;
  close({});
  return std::move(stream_);
}

bool Stream::is_anybody_waiting() const {
  return !input_.is_closed() && (waiting_.reader || waiting_.wait != nullptr);
}

// False if the reader needs more than is there.
inline bool Stream::give(Arrival& arrival) {
  Framed* const framed = waiting_.reader.framed();
  return framed == nullptr || give_framed(*framed, arrival);
}

// Whoever reads is resumed inside, and may read on; what nobody reads waits, and so does the peer.
// Most take all, and wait for more.
std::size_t Stream::on_data(Bytes bytes) {
  Arrival arrival(bytes);
  if (waiting_.reader.is_plain()) {
    Promise& reader = waiting_.reader.plain();
    Promise& chain = reader.chain();
    if (!chain.is_running()) {
      input_.set(arrival);
      waiting_.reader = Reader();
      chain.resume(reader);
      if (arrival.is_gone) return bytes.size() - arrival.left.size();
      if (arrival.left.empty()) {
        input_.clear();
        return bytes.size();
      }
    }
  }
  offer(arrival);
  return bytes.size() - arrival.left.size();
}

// To whoever reads, until nobody does, or he wants more.
[[gnu::noinline]] void Stream::offer(Arrival& arrival) {
  drop_retry();
  input_.set(arrival);
  while (waiting_.reader && !arrival.left.empty()) {
    const Then then = (*waiting_.reader).then_;
    Promise& chain = then.chain();
    if (chain.is_running()) {
      input_.clear();
      return keep_for_later(then);
    }
    if (!give(arrival)) break;
    waiting_.reader = Reader();
    chain.resume(then);
    if (arrival.is_gone) return;
  }
  input_.clear();
  if (!waiting_.reader && !arrival.left.empty()) stream_.pause();
}

bool Stream::give_framed(Framed& framed, Arrival& arrival) {
  const Frame frame = framed.next_(framed, arrival.left);
  if (frame.state == Frame::State::unfinished) {
    stream_.want(frame.size);
    return false;
  }
  arrival.is_broken = frame.state == Frame::State::broken;
  arrival.message = frame.message;
  arrival.left = arrival.left.subspan(frame.size);
  return true;
}

// ---- once more

void Stream::keep_for_later(Then then) {
  stream_.pause();
  void* const memory = allocate_frame(sizeof(Retry));
  if (memory == nullptr) {
    stream_.abort();
    return on_closed(std::make_error_code(std::errc::not_enough_memory));
  }
  auto* const retry = new (memory) Retry(*this);
  input_.set(*retry);
  waiting_.reader.retry();
  retry->awaiting = &then.chain();
  Then(*retry).wake();
}

void Stream::drop_retry() {
  Retry* const retry = input_.retry();
  if (retry == nullptr) return;
  retry->~Retry();
  free_frame(retry, sizeof(Retry));
  input_.clear();
}

// ---- endings

void Stream::end_read(Reader reader) {
  if (reader.framed() != nullptr && !stream_.unread().empty()) input_.cut();
  const Then then = (*reader).then_;
  then.go();
}

void Stream::on_end() {
  drop_retry();
  input_.end();
  if (waiting_.reader) end_read(std::exchange(waiting_.reader, Reader()));
}

void Stream::on_drained() {
  if (waiting_.wait == nullptr || waiting_.wait->what() != Wait::For::room) return;
  const Then then = std::exchange(waiting_.wait, nullptr)->then_;
  then.go();
}

void Stream::close(std::error_code error) {
  input_.close();
  new (&error_) std::error_code(error);
}

// Two may wait; whoever goes on at once may destroy this.
void Stream::on_closed(std::error_code error) {
  drop_retry();
  const Waiting waited = waiting_;
  close(error);
  if (waited.wait != nullptr) waited.wait->then_.wake();
  if (waited.reader) end_read(waited.reader);
}

// ---- reading

void Stream::Reading::cancel() {
  std::exchange(then_, Then()).leave();
  if (stream_.input_.is_closed() || !stream_.waiting_.reader.is(*this)) return;
  stream_.waiting_.reader = Reader();
  stream_.drop_retry();
  if (stream_.stream_.unread().empty()) return;
  stream_.stream_.pause();
  stream_.stream_.want(0);
}

// A connection that ends between two arrivals is the end of file to read_some().
Result<Bytes> Stream::Read::end_of_file() {
  const std::error_code why = stream_.error_of_read();
  if (why == Error::ended && !stream_.error()) return Bytes();
  return std::unexpected(why);
}

// Why there is no message any more.
std::error_code Stream::error_of_read() {
  const bool is_cut = input_.is_cut();
  input_.forget_cut();
  if (const std::error_code why = error()) return why;
  return is_cut ? Error::truncated : Error::ended;
}

bool Stream::Framed::await_ready() {
  if (Arrival* const arrival = stream_.input_.arrival())
    return !arrival->left.empty() && stream_.give_framed(*this, *arrival);
  return stream_.input_.is_over();
}

Result<Bytes> Stream::Framed::await_resume() {
  then_ = Then();
  if (stream_.input_.is_over()) return std::unexpected(stream_.error_of_read());
  const Arrival& arrival = stream_.input_.given();
  if (arrival.is_broken) return std::unexpected(std::make_error_code(std::errc::bad_message));
  return arrival.message;
}

// ---- waiting

bool Stream::Wait::await_ready() const {
  if (stream().input_.is_closed() || what() == For::nothing) return true;
  return what() == For::room && !stream().stream_.is_full();
}

bool Stream::Wait::start(Promise&, Then then) {
  SPATE_ASSERT(stream().waiting_.wait == nullptr, "one coroutine waits to send at a time");
  then_ = then;
  stream().waiting_.wait = this;
  return true;
}

void Stream::Wait::cancel() {
  std::exchange(then_, Then()).leave();
  if (stream().input_.is_closed() || stream().waiting_.wait != this) return;
  stream().waiting_.wait = nullptr;
}

Result<void> Stream::Wait::await_resume() {
  then_ = Then();
  const bool is_closed = stream().input_.is_closed();
  if (const std::error_code error = stream().error()) return std::unexpected(error);
  if (what() == For::nothing || (is_closed && what() == For::room))
    return std::unexpected(std::make_error_code(std::errc::broken_pipe));
  return {};
}

}  // namespace spate::coro
