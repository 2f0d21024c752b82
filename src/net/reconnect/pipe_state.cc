#include "net/reconnect/pipe_state.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "core/ownership.h"
#include "core/user_code.h"
#include "spate/assert.h"
#include "sys/descriptor.h"

namespace spate {

namespace {

const std::error_code kReset = sys::error_code(-ECONNRESET);

}  // namespace

Result<PipeState*> PipeState::make(Loop& loop, const Address& address, std::string_view host,
                                   std::uint16_t port, const PipeFraming& framing,
                                   PipeHandlers handlers, const PipeOptions& options) {
  auto* state = new (std::nothrow) PipeState(loop, framing, std::move(handlers), options);
  if (state == nullptr) {
    framing.destroy(framing.framing);
    return std::unexpected(sys::error_code(-ENOMEM));
  }
  OnConnected callback = [state](Result<Stream> result) { state->on_attempt(std::move(result)); };
  Result<Client> client =
      host.empty() ? Client::create(loop, address, std::move(callback), options.client)
                   : Client::create(loop, host, port, std::move(callback), options.client);
  if (!client || !state->loop_ends_.start()) {
    const std::error_code error = client ? sys::error_code(-ENOMEM) : client.error();
    delete state;
    return std::unexpected(error);
  }
  state->client_ = std::move(*client);
  state->client_.connect();
  return state;
}

PipeState::PipeState(Loop& loop, const PipeFraming& framing, PipeHandlers handlers,
                     const PipeOptions& options)
    : loop_(&loop),
      framing_(framing),
      handlers_(std::move(handlers)),
      options_(options),
      settle_(loop, bind<&PipeState::settle>(this)),
      deadlines_(loop, bind<&PipeState::on_deadlines>(this)),
      loop_ends_(loop, bind<&PipeState::on_loop_end>(this)) {
  loop_ends_.set_priority(kPriorityMin);  // After the program's own hooks.
}

PipeState::~PipeState() { framing_.destroy(framing_.framing); }

bool PipeState::may_be_touched() const { return loop_ == nullptr || may_touch(*loop_); }

// Functions of the handlers are destroyed with this, since one of them may be running.
void PipeState::abandon() {
  client_ = Client();
  stream_ = Stream();
  drop_all();
  settle_.stop();  // Dropped functions may have cancelled requests.
  Abandonable::abandon();
}

// Destroys the functions: they may own the handle.
void PipeState::on_loop_end() {
  loop_ = nullptr;
  call([this] {
    drop_all();
    const PipeHandlers gone = std::exchange(handlers_, {});
  });
}

void PipeState::drop_all() {
  is_closed_ = true;
  phase_ = Phase::down;
  settle_.stop();
  deadlines_.stop();
  loop_ends_.stop();
  for (Fifo<PipeEntry>* queue : {&waiting_, &sent_, &failed_}) {
    while (PipeEntry* entry = queue->pop()) drop(*entry);
  }
  const auto gone = std::exchange(done_, nullptr);
}

// ---- the functions of RequestPipe

std::error_code PipeState::request(Bytes bytes, OnPipeResponse callback,
                                   const PipeRequestOptions& options) {
  if (const std::error_code refused = refusal(bytes.size())) return refused;
  PipeEntry* entry = take_entry();
  if (entry == nullptr) return sys::error_code(-ENOMEM);
  entry->callback = callback ? std::move(callback) : [](Result<Bytes>) {};
  entry->is_setup = is_setup_request();
  entry->repeats = entry->is_setup ? std::uint8_t{0} : options.repeats;
  if (const std::error_code error = place(*entry, bytes)) {
    drop(*entry);
    return error;
  }
  const Nanos timeout = options.deadline.value_or(options_.deadline);
  if (timeout != Nanos{0}) arm(entry->deadline = deadline_after(loop_->now(), timeout));
  if (options.handle != nullptr) {
    options.handle->cancel();
    options.handle->state_ = this;
    options.handle->entry_ = entry;
    entry->handle = options.handle;
  }
  was_full_ = was_full_ || is_full();
  return {};
}

std::error_code PipeState::send(Bytes bytes) {
  if (is_closed_) return sys::error_code(-EPIPE);
  if (phase_ != Phase::ready && !is_setup_request()) return sys::error_code(-ENOTCONN);
  if (bytes.size() > options_.limits.max - std::min(queued(), options_.limits.max))
    return Error::queue_full;
  return write(bytes);
}

void PipeState::connect() {
  if (!is_closed_) client_.connect();
}

void PipeState::reset() {
  if (phase_ != Phase::down) break_off(kReset);
}

void PipeState::close() {
  if (is_closed_) return;
  is_closed_ = true;
  phase_ = Phase::down;
  ++connection_;
  client_.stop();
  stream_ = Stream();
  const std::error_code cancelled = sys::error_code(-ECANCELED);
  fail_all(sent_, cancelled);
  fail_all(waiting_, cancelled);
}

void PipeState::drain(Function<void()> done) {
  is_draining_ = true;
  std::swap(done_, done);
  settle_.feed();
}

// ---- connecting

void PipeState::on_attempt(Result<Stream> result) {
  if (result) return begin(std::move(*result));
  last_error_ = result.error();
  unreported_ = last_error_;
  settle();
}

void PipeState::begin(Stream stream) {
  framing_.restart(framing_.framing);
  last_error_.clear();
  stream_ = std::move(stream);
  phase_ = Phase::setup;
  QueueLimits limits = options_.limits;
  limits.max = SIZE_MAX;  // request() checks it, together with the bytes that wait.
  limits.when_full = WhenFull::drop;
  if (const std::error_code error = stream_.start(*this, {.limits = limits})) {
    return break_off(error);
  }
  in_setup_ = true;
  if (handlers_.on_connected && !call([this] { call_user("RequestPipe", handlers_.on_connected); }))
    return;
  in_setup_ = false;
  become_ready();
}

void PipeState::become_ready() {
  if (phase_ != Phase::setup || setup_left_ != 0) return;
  phase_ = Phase::ready;
  flush();
}

// Sends the waiting requests, in one write.
void PipeState::flush() {
  Buffer out;
  waiting_bytes_ = 0;
  bool is_complete = true;
  while (PipeEntry* entry = waiting_.pop()) {
    if (entry->repeats > 0) {
      is_complete = out.append_shared(entry->bytes) && is_complete;
    } else {
      out.append(std::move(entry->bytes));
    }
    push(sent_, *entry, PipeEntry::Place::sent);
  }
  if (!is_complete || (!out.empty() && !stream_.write(std::move(out)) && stream_.is_writable()))
    return break_off(sys::error_code(-ENOMEM));
  if (was_full_) settle_.feed();
}

void PipeState::on_closed(std::error_code error) { lose(error ? error : kReset); }

// Ends the connection on our side.
void PipeState::break_off(std::error_code error) {
  stream_.abort();
  lose(error);
}

void PipeState::lose(std::error_code error) {
  if (is_closed_) return;
  phase_ = Phase::down;
  ++connection_;
  setup_left_ = 0;
  last_error_ = error;
  unreported_ = error;
  repeat_or_fail();
  settle_.feed();
}

// Repeated requests come before those that have waited.
void PipeState::repeat_or_fail() {
  Fifo<PipeEntry> later;
  later.take_over(waiting_);
  while (PipeEntry* entry = sent_.pop()) {
    if (entry->repeats > 0) {
      --entry->repeats;
      waiting_bytes_ += entry->bytes.size();
      push(waiting_, *entry, PipeEntry::Place::waiting);
    } else {
      fail(*entry, kReset);
    }
  }
  while (PipeEntry* entry = later.pop()) push(waiting_, *entry, PipeEntry::Place::waiting);
}

// ---- requests

std::error_code PipeState::refusal(std::size_t size) const {
  if (is_closed_ || (is_draining_ && !is_setup_request())) return sys::error_code(-EPIPE);
  if (is_setup_request()) return {};
  if (phase_ == Phase::down && (!options_.wait || client_.state() == Client::State::idle))
    return sys::error_code(-ENOTCONN);
  const std::size_t max = options_.limits.max;
  if (requests() >= options_.max_requests || size > max - std::min(queued(), max))
    return Error::queue_full;
  return {};
}

std::error_code PipeState::place(PipeEntry& entry, Bytes bytes) {
  const bool is_sent = phase_ == Phase::ready || entry.is_setup;
  if ((!is_sent || entry.repeats > 0) && !entry.bytes.append(bytes))
    return sys::error_code(-ENOMEM);
  if (!is_sent) {
    waiting_bytes_ += bytes.size();
    push(waiting_, entry, PipeEntry::Place::waiting);
    return {};
  }
  // If the connection has just failed, on_closed() follows, and the request with it.
  if (const std::error_code error = write(bytes); error && stream_.is_writable()) return error;
  if (entry.is_setup) ++setup_left_;
  push(sent_, entry, PipeEntry::Place::sent);
  return {};
}

std::error_code PipeState::write(Bytes bytes) {
  if (bytes.empty() || stream_.write(bytes)) return {};
  return sys::error_code(stream_.is_writable() ? -ENOMEM : -ENOTCONN);
}

PipeEntry* PipeState::take_entry() {
  void* place = entries_.take();
  if (place == nullptr) return nullptr;
  ++live_;
  return new (place) PipeEntry;
}

// Ends the entry's request, and returns the callback.
OnPipeResponse PipeState::release(PipeEntry& entry) {
  if (entry.handle != nullptr) std::exchange(entry.handle, nullptr)->entry_ = nullptr;
  if (entry.callback) --live_;
  return std::exchange(entry.callback, nullptr);
}

// The callback's destructor may do anything: it comes last.
void PipeState::drop(PipeEntry& entry) {
  const OnPipeResponse gone = release(entry);
  entry.~PipeEntry();
  entries_.give_back(&entry);
}

void PipeState::push(Fifo<PipeEntry>& queue, PipeEntry& entry, PipeEntry::Place place) {
  entry.place = place;
  entry.arrivals = arrivals_;
  queue.push(entry);
}

// An entry without a callback needs no result.
void PipeState::fail(PipeEntry& entry, std::error_code error) {
  if (!entry.callback) return drop(entry);
  entry.error = error;
  push(failed_, entry, PipeEntry::Place::failed);
  settle_.feed();
}

void PipeState::fail_all(Fifo<PipeEntry>& queue, std::error_code error) {
  if (&queue == &waiting_) waiting_bytes_ = 0;
  while (PipeEntry* entry = queue.pop()) fail(*entry, error);
  settle_.feed();
}

void PipeState::cancel(PipeEntry& entry) {
  const OnPipeResponse gone = release(entry);
  if (loop_ != nullptr) settle_.feed();  // For drain() and on_drained.
  if (entry.place == PipeEntry::Place::sent) {
    entry.deadline = kForever;
    entry.repeats = 0;
    return;
  }
  if (entry.place == PipeEntry::Place::waiting) waiting_bytes_ -= entry.bytes.size();
  (entry.place == PipeEntry::Place::waiting ? waiting_ : failed_).remove(entry);
  drop(entry);
}

}  // namespace spate
