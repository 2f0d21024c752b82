#include "spate/http/events.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "core/loop_function.h"
#include "http/server/exchange_state.h"
#include "spate/error.h"
#include "spate/http/exchange_keeper.h"
#include "spate/loop.h"
#include "spate/named_callback.h"
#include "spate/timer.h"

namespace spate::http {

namespace {

// Returns a formatted event, in one piece. Empty for an invalid event.
Bytes flat_event(const OutgoingEvent& event, Buffer& buffer) {
  return append_event(event, buffer) ? buffer.flat(buffer.size()) : Bytes();
}

}  // namespace

class EventStream::State final : public ExchangeHandler {
 public:
  State(Exchange exchange, const EventStreamOptions& options)
      : told(exchange.loop(), {}),
        exchange_(std::move(exchange)),
        options_(options),
        last_id_(exchange_.request()[FieldId::last_event_id]),
        timer_(exchange_.loop(), named<Timer, ActiveKind::http_request>([this] { on_timer(); })) {}
  ~State() {
    leave();
    exchange_.end();
  }

  bool begin(const Fields& fields);
  bool is_open() const { return exchange_.is_open(); }
  bool send(Bytes text);
  std::size_t queued() const { return exchange_.queued(); }
  std::string_view last_id() const { return last_id_; }

  // An EventSource that shut down its side has nothing left to do: end the response.
  void on_client_end() override { close({}); }
  void on_closed(std::error_code error) override { finish(error); }

  bool tell(Bytes text);
  void join(EventChannel& channel);
  void leave();

  LoopFunction<void(std::error_code)> told;

 private:
  friend class EventChannel;
  void on_timer();
  void beat();
  void close(std::error_code error);
  void finish(std::error_code error);

  Exchange exchange_;
  EventStreamOptions options_;
  std::string last_id_;
  std::error_code error_;  // The reason for on_closed, until that is called.
  Timer timer_;            // Until the next heartbeat, or until on_closed is called.
  EventChannel* channel_ = nullptr;
  State* next_ = nullptr;
  State* previous_ = nullptr;
};

bool EventStream::State::begin(const Fields& fields) {
  // By X-Accel-Buffering, nginx does not buffer the response. Compression is off: events are short,
  // and there are many streams.
  Fields all;
  const bool is_said = all.add_all(fields) && all.set(FieldId::content_type, kEventStreamType) &&
                       all.set(FieldId::cache_control, "no-cache") &&
                       all.set("X-Accel-Buffering", "no");
  exchange_.set_compression(Compression::none);
  if (!is_said || !exchange_.begin(Status::ok, all)) return false;
  if (exchange_.request().method() == Method::head) return false;
  if (!exchange_.start(*this)) return false;
  beat();
  return true;
}

void EventStream::State::beat() {
  if (options_.heartbeat > Nanos{0}) timer_.start(options_.heartbeat);
}

bool EventStream::State::send(Bytes text) {
  if (!is_open() || text.empty()) return false;
  if (exchange_.queued() + text.size() > options_.max_queued) {
    if (options_.when_full == WhenFull::close) close(Error::queue_full);
    return false;
  }
  if (!exchange_.write(text)) return false;
  beat();
  return true;
}

void EventStream::State::on_timer() {
  if (!is_open()) return finish(error_);
  if (exchange_.queued() == 0) exchange_.write(":\n\n");
  beat();
}

// A stream whose server was destroyed gets no callback. It is noticed here.
bool EventStream::State::tell(Bytes text) {
  if (send(text)) return true;
  if (!is_open()) timer_.start(Nanos{0});
  return false;
}

// on_closed is called by the loop, never from inside a call to the EventStream.
void EventStream::State::close(std::error_code error) {
  error_ = error;
  error ? exchange_.abort() : static_cast<void>(exchange_.end());
  timer_.start(Nanos{0});
}

// May destroy this: leaving a channel destroys a stream that the channel owns.
void EventStream::State::finish(std::error_code error) {
  timer_.stop();
  ExchangeState& exchange = *ExchangeState::of(exchange_);
  const ExchangeKeeper keeper(exchange_);
  OnClosed tell = told.take();
  if (channel_ != nullptr) {
    leave();
    delete this;
  }
  if (tell) exchange.guard([&] { tell(error); });
}

void EventStream::State::join(EventChannel& channel) {
  channel_ = &channel;
  next_ = channel.first_;
  if (next_ != nullptr) next_->previous_ = this;
  channel.first_ = this;
  ++channel.size_;
}

void EventStream::State::leave() {
  if (channel_ == nullptr) return;
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ == nullptr ? channel_->first_ : previous_->next_) = next_;
  --channel_->size_;
  channel_ = nullptr;
  previous_ = next_ = nullptr;
}

// ---- the handle

EventStream::EventStream() = default;
EventStream::EventStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
EventStream::EventStream(EventStream&& other) noexcept = default;
EventStream& EventStream::operator=(EventStream&& other) noexcept = default;
EventStream::~EventStream() = default;

EventStream EventStream::open(Exchange exchange, const EventStreamOptions& options,
                              const Fields& fields) {
  if (!exchange.is_open()) return {};
  std::unique_ptr<State> state(new (std::nothrow) State(std::move(exchange), options));
  if (state == nullptr || !state->begin(fields)) return {};
  return EventStream(std::move(state));
}

bool EventStream::is_open() const { return state_ != nullptr && state_->is_open(); }

void EventStream::set_on_closed(OnClosed on_closed) {
  if (state_ != nullptr) state_->told.set(std::move(on_closed));
}

std::string_view EventStream::last_event_id() const {
  return state_ == nullptr ? std::string_view() : state_->last_id();
}

bool EventStream::send(const OutgoingEvent& event) {
  Buffer text;
  return state_ != nullptr && state_->send(flat_event(event, text));
}

bool EventStream::comment(std::string_view text) {
  Buffer buffer;
  return state_ != nullptr && append_event_comment(text, buffer) &&
         state_->send(buffer.flat(buffer.size()));
}

std::size_t EventStream::queued() const { return state_ == nullptr ? 0 : state_->queued(); }

void EventStream::end() { state_.reset(); }

// ---- the channel

EventChannel::EventChannel() = default;

EventChannel::~EventChannel() {
  while (first_ != nullptr) delete first_;
}

bool EventChannel::add(EventStream stream) {
  if (!stream.is_open()) return false;
  stream.state_.release()->join(*this);
  return true;
}

std::size_t EventChannel::publish(const OutgoingEvent& event) {
  Buffer text;
  const Bytes bytes = flat_event(event, text);
  std::size_t count = 0;
  for (EventStream::State* each = first_; each != nullptr; each = each->next_)
    count += each->tell(bytes) ? 1 : 0;
  return count;
}

}  // namespace spate::http
