// EventSource: a handler of Calls passes their bodies to an EventDecoder, and makes the next Call.
#include "spate/http/event_source.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/abandonable.h"
#include "base/backoff.h"
#include "spate/http/error.h"
#include "spate/http/event_stream.h"
#include "spate/http/media_type.h"
#include "spate/timer.h"
#include "sys/random.h"

namespace spate::http {

namespace {

constexpr double kJitter = 0.5;

bool is_temporary(Status status) {
  return status == Status::too_many_requests || status == Status::bad_gateway ||
         status == Status::service_unavailable || status == Status::gateway_timeout;
}

// Returns true if another attempt would end in the same way.
bool is_permanent(std::error_code error) {
  return error == HttpError::invalid_url || error == HttpError::unknown_scheme ||
         error == HttpError::https_without_tls || error == HttpError::too_many_redirects ||
         error == HttpError::bad_redirect || error == std::errc::invalid_argument;
}

bool is_event_stream(const Response& response) {
  const auto text = response.fields().find("content-type");
  if (response.status() != Status::ok || !text) return false;
  const auto type = MediaType::parse(*text);
  return type && type->is("text", "event-stream");
}

}  // namespace

class EventSourceState final : public CallHandler, private Abandonable<EventSourceState> {
 public:
  EventSourceState(Client& client, std::string_view url, EventSourceHandler& handler,
                   EventSourceOptions options)
      : client_(client),
        url_(url),
        handler_(handler),
        options_(std::move(options)),
        retry_(options_.retry),
        decoder_(options_.max_event),
        backoff_(sys::random_seed()),
        timer_(client.loop(), [this] { on_timer(); }) {
    start_after(options_.last_id);
  }

  void leave() {
    call_.cancel();
    timer_.stop();
    is_over_ = true;
    abandon();
  }

  bool is_open() const { return is_open_; }
  Nanos retry_in() const { return is_waiting_ ? timer_.remaining() : Nanos{0}; }
  std::uint32_t failures() const { return failures_; }
  std::optional<Status> status() const { return status_; }
  std::string_view last_id() const { return decoder_.last_id(); }
  void pause() { set_paused(true); }
  void resume() { set_paused(false); }
  void reconnect() {
    if (!is_over_) attempt();
  }

  // Makes a Call. Its errors are reported by the loop.
  void attempt() {
    ++attempt_;
    is_waiting_ = is_open_ = false;
    status_.reset();
    decoder_.reset();
    CallOptions request{.credentials = options_.credentials,
                        .deadline = Nanos{0},
                        .idle_timeout = options_.idle_timeout,
                        .attempts = 1,
                        .max_redirects = kMaxRedirects,
                        .proxy = options_.proxy,
                        .address = options_.address};
    request.fields.add_all(options_.fields);
    request.fields.set("Accept", kEventStreamType);
    request.fields.set("Cache-Control", "no-store");
    if (!last_id().empty()) request.fields.set("Last-Event-ID", last_id());
    timer_.stop();
    if (options_.response_timeout > Nanos{0}) timer_.start(options_.response_timeout);
    call_ = client_.send(url_, *this, std::move(request));
    if (is_paused_) call_.pause();
  }

 private:
  friend class Abandonable<EventSourceState>;
  static constexpr unsigned kMaxRedirects = 20;

  ~EventSourceState() = default;

  // Passes the id to the decoder, as a server would.
  void start_after(std::string_view id) {
    Buffer line;
    if (!append_event({.id = id}, line)) return;
    for (Bytes bytes = line.flat(line.size()); !bytes.empty();) decoder_.next(bytes);
  }
  void set_paused(bool on) {
    is_paused_ = on;
    on ? call_.pause() : call_.resume();
  }

  void on_response(const Response& response) override {
    status_ = response.status();
    if (is_event_stream(response)) {
      timer_.stop();
      is_open_ = true;
      failures_ = 0;
      call([this] { handler_.on_open(); });
    } else if (status_ == Status::no_content) {
      finish({});
    } else if (is_temporary(*status_)) {
      lose(HttpError::not_event_stream);
    } else {
      finish(HttpError::not_event_stream);
    }
  }

  void on_body(Bytes bytes) override {
    const std::uint64_t attempt = attempt_;
    for (;;) {
      const EventDecoder::State state = decoder_.next(bytes);
      take_retry();
      if (state == EventDecoder::State::broken)
        return finish(std::error_code(EMSGSIZE, std::system_category()));
      if (state == EventDecoder::State::unfinished) return;
      const ReceivedEvent event{decoder_.type(), decoder_.data(), decoder_.last_id()};
      if (!call([&] { handler_.on_event(event); }) || attempt != attempt_) return;
    }
  }

  void on_closed(std::error_code error) override {
    if (is_permanent(error)) return finish(error);
    lose(error ? error : make_error_code(Error::ended));
  }

  void take_retry() {
    if (const auto retry = decoder_.retry())
      retry_ = *retry < options_.max_retry ? Nanos{*retry} : options_.max_retry;
  }

  // The wait for a response, or for the next attempt, is over.
  void on_timer() {
    if (is_waiting_) return attempt();
    lose(Error::deadline);
  }

  void lose(std::error_code error) {
    ++attempt_;
    is_open_ = false;
    call_.cancel();
    if (++failures_ == options_.max_failures) return finish(error);
    is_waiting_ = true;
    const Nanos first = std::min(retry_, kForever / 2) * 2;
    timer_.start(backoff_.after(failures_, first, std::max(first, options_.max_delay), kJitter));
    call([&] { handler_.on_lost(error); });
  }

  void finish(std::error_code error) {
    ++attempt_;
    is_over_ = true;
    is_open_ = is_waiting_ = false;
    timer_.stop();
    call_.cancel();
    call([&] { handler_.on_closed(error); });
  }

  Client& client_;
  const std::string url_;
  EventSourceHandler& handler_;
  const EventSourceOptions options_;
  Nanos retry_;
  EventDecoder decoder_;
  Backoff backoff_;
  Timer timer_;  // For the response, or for the next attempt.
  Call call_;
  std::uint64_t attempt_ = 0;  // Changes when the connection does.
  std::uint32_t failures_ = 0;
  std::optional<Status> status_;
  bool is_open_ = false;
  bool is_waiting_ = false;
  bool is_paused_ = false;
  bool is_over_ = false;
};

EventSource EventSource::connect(Client& client, std::string_view url, EventSourceHandler& handler,
                                 EventSourceOptions options) {
  auto* state = new EventSourceState(client, url, handler, std::move(options));
  EventSource source(state);
  state->attempt();
  return source;
}

bool EventSource::is_open() const { return state_ != nullptr && state_->is_open(); }
Nanos EventSource::retry_in() const { return state_ == nullptr ? Nanos{0} : state_->retry_in(); }
std::uint32_t EventSource::failures() const { return state_ == nullptr ? 0 : state_->failures(); }
std::optional<Status> EventSource::status() const {
  return state_ == nullptr ? std::nullopt : state_->status();
}
std::string_view EventSource::last_id() const {
  return state_ == nullptr ? std::string_view() : state_->last_id();
}
void EventSource::pause() {
  if (state_ != nullptr) state_->pause();
}
void EventSource::resume() {
  if (state_ != nullptr) state_->resume();
}
void EventSource::reconnect() {
  if (state_ != nullptr) state_->reconnect();
}
void EventSource::leave() { state_->leave(); }

}  // namespace spate::http
