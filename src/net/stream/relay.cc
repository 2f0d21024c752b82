// relay() and copy(): two Streams, each with a handler that writes to the other.
#include "spate/net/relay.h"
#include "spate/named_callback.h"

#include <algorithm>

#include "core/loop_function.h"
#include "core/user_code.h"
#include "spate/assert.h"
#include "spate/timer.h"

namespace spate {

// The state behind a Relaying.
class Relay {
 public:
  enum class Ways : std::uint8_t { one, both };

  Relay(Stream first, Stream second, Ways ways, OnRelayed callback, const RelayOptions& options);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  void reset_both() {
    first_.abort();
    second_.abort();
  }

 private:
  class Side final : public StreamHandler {
   public:
    Side(Relay& relay, Stream stream, Side& other)
        : relay_(relay), other_(other), stream_(std::move(stream)) {}

    void start() {
      stream_.set_half_open(true);
      stream_.start(*this);
      stream_.resume();
    }
    void abort() {
      stream_.abort();
      is_closed_ = true;
    }
    bool is_closed() const { return is_closed_; }
    // Bytes received here for the other side.
    std::uint64_t taken() const { return taken_; }
    // Changes whenever bytes were received or sent.
    std::uint64_t moved() const { return 2 * taken_ - stream_.queued(); }

   private:
    std::size_t on_data(Bytes bytes) override;
    void on_end() override;
    void on_drained() override { other_.stream_.resume(); }
    void on_closed(std::error_code error) override {
      is_closed_ = true;
      relay_.on_closed(other_, error);
    }

    Relay& relay_;
    Side& other_;
    Stream stream_;
    std::uint64_t taken_ = 0;
    bool is_closed_ = false;
  };

  // How often an idle relay is checked within its timeout.
  static constexpr int kLooks = 4;

  bool is_source(const Side& side) const { return ways_ == Ways::both || &side == &first_; }
  void on_closed(Side& other, std::error_code error);
  void on_look();
  void fail(std::error_code error);
  void finish(std::error_code error);

  const Ways ways_;
  LoopFunction<void(const RelayResult& result)> callback_;
  Timer looks_;
  Side first_;
  Side second_;
  std::uint64_t moved_ = 0;  // The value at the last check.
  int quiet_looks_ = 0;
};

Relay::Relay(Stream first, Stream second, Ways ways, OnRelayed callback,
             const RelayOptions& options)
    : ways_(ways),
      callback_(first.loop(), std::move(callback)),
      looks_(first.loop(), named<Timer, ActiveKind::relay>(bind<&Relay::on_look>(this))),
      first_(*this, std::move(first), second_),
      second_(*this, std::move(second), first_) {
  first_.start();
  second_.start();
  if (options.idle_timeout <= Nanos{0}) return;
  const Nanos period = std::max(options.idle_timeout / kLooks, Nanos{1});
  looks_.start(period, period);
}

// ---- one side

std::size_t Relay::Side::on_data(Bytes bytes) {
  if (!relay_.is_source(*this)) return bytes.size();
  Stream& to = other_.stream_;
  if (to.write(bytes)) {
    taken_ += bytes.size();
    if (to.is_full()) stream_.pause();
  } else if (to.is_writable()) {  // Its limits refuse the write: the bytes would be lost silently.
    relay_.fail(Error::queue_full);
  }
  return bytes.size();
}

void Relay::Side::on_end() {
  if (!relay_.is_source(*this)) return;
  if (relay_.ways_ == Ways::both) return other_.stream_.end();
  other_.stream_.close();
  stream_.close();
}

// ---- both sides

void Relay::on_closed(Side& other, std::error_code error) {
  if (error) other.abort();
  if (other.is_closed()) finish(error);
}

void Relay::on_look() {
  const std::uint64_t moved = first_.moved() + second_.moved();
  quiet_looks_ = moved == moved_ ? quiet_looks_ + 1 : 0;
  moved_ = moved;
  if (quiet_looks_ == kLooks) fail(Error::idle_timeout);
}

void Relay::fail(std::error_code error) {
  reset_both();
  finish(error);
}

// Must be the last action: the callback may destroy this.
void Relay::finish(std::error_code error) {
  looks_.stop();
  const RelayResult result{.error = error, .forth = first_.taken(), .back = second_.taken()};
  call_user("relay()", [&] { callback_.call_last(result); });
}

void Relaying::abort() {
  if (relay_ != nullptr) relay_->reset_both();
  relay_.reset();
}

void RelayEnd::operator()(Relay* relay) const { delete relay; }

Relaying relay(Stream first, Stream second, OnRelayed callback, const RelayOptions& options) {
  SPATE_ASSERT(&first.loop() == &second.loop());
  return Relaying(new Relay(std::move(first), std::move(second), Relay::Ways::both,
                            std::move(callback), options));
}

Relaying copy(Stream from, Stream to, OnRelayed callback, const RelayOptions& options) {
  SPATE_ASSERT(&from.loop() == &to.loop());
  return Relaying(
      new Relay(std::move(from), std::move(to), Relay::Ways::one, std::move(callback), options));
}

}  // namespace spate
