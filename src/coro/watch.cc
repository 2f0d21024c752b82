// Watch: copies the events of one call, and pauses until the next wait.
#include "spate/coro/watch.h"

#include <new>
#include <string>
#include <vector>

namespace spate::coro {

class Watch::State {
 public:
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { SPATE_ASSERT(!continuation_, "a Watch was destroyed while a coroutine waits for it"); }

  void open(spate::Watch watch) {
    watch_ = std::move(watch);
    watch_.pause();
  }
  OnWatch on_watch() {
    return [this](Result<std::span<const WatchEvent>> events) {
      events ? store(*events) : static_cast<void>(error_ = events.error());
      resume();
    };
  }
  std::string_view root() const { return watch_.root(); }

  bool is_ready() const {
    SPATE_ASSERT(!continuation_, "only one coroutine may wait for a Watch");
    return has_events_ || error_;
  }
  void wait(Continuation continuation) {
    continuation_ = continuation;
    watch_.resume();
  }
  void cancel() {
    continuation_ = Continuation();
    watch_.pause();
  }
  Result<std::span<const WatchEvent>> take() {
    if (!std::exchange(has_events_, false)) return std::unexpected(error_);
    return events_;
  }

 private:
  void store(std::span<const WatchEvent> events) {
    watch_.pause();
    events_.assign(events.begin(), events.end());
    text_.clear();
    for (const WatchEvent& event : events) text_.append(event.path).append(event.old_path);
    std::string_view rest = text_;
    for (WatchEvent& event : events_) {
      event.path = rest.substr(0, event.path.size());
      rest.remove_prefix(event.path.size());
      event.old_path = rest.substr(0, event.old_path.size());
      rest.remove_prefix(event.old_path.size());
    }
    has_events_ = true;
  }
  // The resumed coroutine may destroy this.
  void resume() {
    if (const Continuation continuation = std::exchange(continuation_, {})) continuation.resume();
  }

  spate::Watch watch_;
  Continuation continuation_;
  std::vector<WatchEvent> events_;
  std::string text_;  // The paths of the events.
  bool has_events_ = false;
  std::error_code error_;
};

Watch::Watch(std::unique_ptr<State> state) : state_(std::move(state)) {}
Watch::Watch(Watch&& other) noexcept = default;
Watch& Watch::operator=(Watch&& other) noexcept = default;
Watch::~Watch() = default;

Result<Watch> Watch::start(Loop& loop, std::string_view path, const WatchOptions& options) {
  std::unique_ptr<State> state(new (std::nothrow) State);
  if (state == nullptr) return std::unexpected(make_error_code(std::errc::not_enough_memory));
  Result<spate::Watch> watch = spate::Watch::start(loop, path, state->on_watch(), options);
  if (!watch) return std::unexpected(watch.error());
  state->open(*std::move(watch));
  return Watch(std::move(state));
}

Watch::Next Watch::next() { return Next(*state_); }
std::string_view Watch::root() const { return state_->root(); }

bool Watch::Next::await_ready() const { return state_.is_ready(); }

bool Watch::Next::start(Promise&, Continuation continuation) {
  continuation_ = continuation;
  state_.wait(continuation);
  return true;
}

void Watch::Next::cancel() {
  if (!continuation_) return;
  continuation_.cancel();
  state_.cancel();
}

Result<std::span<const WatchEvent>> Watch::Next::await_resume() {
  continuation_ = Continuation();
  return state_.take();
}

}  // namespace spate::coro
