// Stream: passes events of its connection to the reader and to the coroutine that waits to send.
#include "spate/coro/stream.h"

namespace spate::coro {

// Offers the input again when the reader's fiber has stopped running the loop.
class Stream::Retry : public Selector {
 public:
  explicit Retry(Stream& stream) : Selector(select), stream_(stream) {}

 private:
  static Promise* select(Selector& self) {
    Stream& stream = static_cast<Retry&>(self).stream_;
    stream.drop_retry();  // Destroys this object.
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
  SPATE_ASSERT(!has_waiter(), "a Stream was destroyed while a coroutine waits for it");
  Arrival* const arrival = input_.arrival();
  if (arrival == nullptr) return;
  arrival->is_detached = true;
  arrival->left = {};
}

spate::Stream Stream::release() {
  SPATE_ASSERT(!has_waiter(), "a Stream was released while a coroutine waits for it");
  stream_.stop();
  if (Arrival* const arrival = input_.arrival()) arrival->is_detached = true;
  close({});
  return std::move(stream_);
}

bool Stream::has_waiter() const {
  return !input_.is_closed() && (waiting_.reader || waiting_.wait != nullptr);
}

// Passes input to the reader. False if the reader needs more bytes.
inline bool Stream::deliver(Arrival& arrival) {
  Framed* const framed = waiting_.reader.framed();
  return framed == nullptr || deliver_framed(*framed, arrival);
}

// Resumes the reader inside, which may read further bytes. Unread bytes stay, and the peer waits.
// Fast path: most readers take all bytes and wait for more.
std::size_t Stream::on_data(Bytes bytes) {
  Arrival arrival(bytes);
  if (waiting_.reader.is_plain()) {
    Promise& reader = waiting_.reader.plain();
    Promise& fiber = reader.fiber();
    if (!fiber.is_running()) {
      input_.set(arrival);
      waiting_.reader = Reader();
      fiber.resume(reader);
      if (arrival.is_detached) return bytes.size() - arrival.left.size();
      if (arrival.left.empty()) {
        input_.clear();
        return bytes.size();
      }
    }
  }
  offer(arrival);
  return bytes.size() - arrival.left.size();
}

// Resumes readers until none waits, or the reader needs more bytes.
[[gnu::noinline]] void Stream::offer(Arrival& arrival) {
  drop_retry();
  input_.set(arrival);
  while (waiting_.reader && !arrival.left.empty()) {
    const Continuation continuation = (*waiting_.reader).continuation_;
    Promise& fiber = continuation.fiber();
    if (fiber.is_running()) {
      input_.clear();
      return retry_later(continuation);
    }
    if (!deliver(arrival)) break;
    waiting_.reader = Reader();
    fiber.resume(continuation);
    if (arrival.is_detached) return;
  }
  input_.clear();
  if (!waiting_.reader && !arrival.left.empty()) stream_.pause();
}

bool Stream::deliver_framed(Framed& framed, Arrival& arrival) {
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

// ---- offering again

void Stream::retry_later(Continuation continuation) {
  stream_.pause();
  void* const memory = allocate_frame(sizeof(Retry));
  if (memory == nullptr) {
    stream_.abort();
    return on_closed(std::make_error_code(std::errc::not_enough_memory));
  }
  auto* const retry = new (memory) Retry(*this);
  input_.set(*retry);
  waiting_.reader.retry();
  retry->awaiting = &continuation.fiber();
  Continuation(*retry).wake();
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
  if (reader.framed() != nullptr && !stream_.unread().empty()) input_.truncate();
  const Continuation continuation = (*reader).continuation_;
  continuation.resume();
}

void Stream::on_end() {
  drop_retry();
  input_.end();
  if (waiting_.reader) end_read(std::exchange(waiting_.reader, Reader()));
}

void Stream::on_drained() {
  if (waiting_.wait == nullptr || waiting_.wait->what() != Wait::For::room) return;
  const Continuation continuation = std::exchange(waiting_.wait, nullptr)->continuation_;
  continuation.resume();
}

void Stream::close(std::error_code error) {
  input_.close();
  new (&error_) std::error_code(error);
}

// There may be two waiters; the first one resumed may destroy this.
void Stream::on_closed(std::error_code error) {
  drop_retry();
  const Waiting waited = waiting_;
  close(error);
  if (waited.wait != nullptr) waited.wait->continuation_.wake();
  if (waited.reader) end_read(waited.reader);
}

// ---- reading

void Stream::Reading::cancel() {
  std::exchange(continuation_, Continuation()).cancel();
  if (stream_.input_.is_closed() || !stream_.waiting_.reader.is(*this)) return;
  stream_.waiting_.reader = Reader();
  stream_.drop_retry();
  if (stream_.stream_.unread().empty()) return;
  stream_.stream_.pause();
  stream_.stream_.want(0);
}

// For read_some(), a connection that ends between two arrivals is at end of file.
Result<Bytes> Stream::Read::end_of_file() {
  const std::error_code why = stream_.error_of_read();
  if (why == Error::ended && !stream_.error()) return Bytes();
  return std::unexpected(why);
}

// Returns why there is no further message.
std::error_code Stream::error_of_read() {
  const bool is_truncated = input_.is_truncated();
  input_.clear_truncated();
  if (const std::error_code why = error()) return why;
  return is_truncated ? Error::truncated : Error::ended;
}

bool Stream::Framed::await_ready() {
  if (Arrival* const arrival = stream_.input_.arrival())
    return !arrival->left.empty() && stream_.deliver_framed(*this, *arrival);
  return stream_.input_.is_over();
}

Result<Bytes> Stream::Framed::await_resume() {
  continuation_ = Continuation();
  if (stream_.input_.is_over()) return std::unexpected(stream_.error_of_read());
  const Arrival& arrival = stream_.input_.current_arrival();
  if (arrival.is_broken) return std::unexpected(std::make_error_code(std::errc::bad_message));
  return arrival.message;
}

// ---- waiting

bool Stream::Wait::await_ready() const {
  if (stream().input_.is_closed() || what() == For::nothing) return true;
  return what() == For::room && !stream().stream_.is_full();
}

bool Stream::Wait::start(Promise&, Continuation continuation) {
  SPATE_ASSERT(stream().waiting_.wait == nullptr, "only one coroutine may wait to send at a time");
  continuation_ = continuation;
  stream().waiting_.wait = this;
  return true;
}

void Stream::Wait::cancel() {
  std::exchange(continuation_, Continuation()).cancel();
  if (stream().input_.is_closed() || stream().waiting_.wait != this) return;
  stream().waiting_.wait = nullptr;
}

Result<void> Stream::Wait::await_resume() {
  continuation_ = Continuation();
  const bool is_closed = stream().input_.is_closed();
  if (const std::error_code error = stream().error()) return std::unexpected(error);
  if (what() == For::nothing || (is_closed && what() == For::room))
    return std::unexpected(std::make_error_code(std::errc::broken_pipe));
  return {};
}

}  // namespace spate::coro
