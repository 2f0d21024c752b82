// The operations on an End except writing, and their effects on the model.
#include <algorithm>
#include <cerrno>

#include "chaos/end.h"
#include "chaos/guests.h"
#include "chaos/handler.h"
#include "chaos/verdict.h"
#include "chaos/world.h"

namespace spate::chaos {

namespace {

Nanos span_of(std::uint32_t a) {
  static constexpr Nanos kSpans[8] = {Nanos{0},
                                      Nanos{1},
                                      Nanos{1'000'000},
                                      Nanos{5'000'000},
                                      Nanos{50'000'000},
                                      Nanos{1'000'000'000},
                                      Nanos{30'000'000'000},
                                      Nanos::max()};
  static const bool has_endless = !is_left_out("endless_spans");
  return kSpans[a % (has_endless ? 8 : 7)];
}

}  // namespace

void End::act(const Step& step, const Visit& visit) {
  if (!has_handle()) return;
  idle_.latest = world.now();
  if (step.op >= Op::write && step.op <= Op::send_descriptors) {
    if (room() > 0) act_on_writing(step, visit);
  } else if (step.op >= Op::idle_timeout && step.op <= Op::deadline) {
    act_on_time(step);
  } else {
    act_on_ending(step);
  }
  if (has_handle()) look();
}

// ---- reading, limits, rates

void End::act_on_reading(const Step& step) {
  switch (step.op) {
    case Op::pause:
      stream_->pause();
      is_paused_ = true;
      return;
    case Op::resume:
      if (is_paused_ && left_ > 0) owes_offer_ = is_started_;
      may_be_offered_again_ = true;
      if (is_paused_) read_.since = read_.latest = world.now();
      stream_->resume();
      is_paused_ = false;
      return;
    case Op::use:
      use_ = static_cast<Use>(step.a % 5);
      use_times_ = 1 + step.b % 8;
      return;
    case Op::take_descriptors:
      takes_descriptors_ = step.a % 4 == 0 ? 0 : world.next_number();
      stream_->set_receive_descriptors(takes_descriptors_ != 0);
      return;
    case Op::want: {
      static constexpr std::size_t kWants[8] = {0, 1, 10, 100, 1000, 4000, 20000, 90000};
      return want(kWants[step.a % 8] + step.b % 7);
    }
    case Op::unread:
      return check_unread();
    case Op::configure: {
      const StreamOptions options = make_options(step);
      if (stream_->is_open()) note_options(options, stream_->configure(options));
      return;
    }
    case Op::half_open:
      is_half_open_ = step.a % 3 != 0;
      stream_->set_half_open(is_half_open_);
      return;
    case Op::limits:
      return set_limits(step);
    case Op::rate:
      read_.latest = world.now();
      return set_rate(step);
    case Op::join:
      return join(step);
    default:
      return;
  }
}

void End::join(const Step& step) {
  read_.latest = world.now();
  RateGroup* group = step.a % 4 == 0 ? nullptr : world.group(step.a);
  if (stream_->join(group) && group != nullptr) is_rated_ = true;
}

void End::set_limits(const Step& step) {
  static constexpr std::size_t kHigh[8] = {0, 1, 100, 3000, 20000, 100000, 256 * 1024, 1 << 20};
  static constexpr std::size_t kMore[6] = {0, 10, 1000, 50000, 400000, 64 << 20};
  static constexpr std::size_t kUnread[6] = {16, 300, 20000, 16 << 20, 16 << 20, 16 << 20};
  QueueLimits limits;
  limits.high = kHigh[step.a % 8];
  limits.low = limits.high / (1 + (step.a >> 3) % 4);
  limits.max = limits.high + kMore[(step.a >> 5) % 6];
  limits.max_unread = kUnread[(step.a >> 8) % 6];
  limits.when_full = step.b % 2 == 0 ? WhenFull::drop : WhenFull::close;
  const bool may_pause = peer->is_raw || static_cast<End*>(peer)->is_gone() ||
                         !static_cast<End*>(peer)->pauses_reading();
  limits.pause_reading = may_pause && step.b % 4 >= 2 && !is_left_out("pause_reading");
  if (stream_->set_limits(limits)) note_limits(limits);
}

void End::note_limits(const QueueLimits& limits) {
  limits_changed_ = may_be_offered_again_ = true;
  read_.latest = world.now();
  if (std::max(left_, wanted_) > limits.max_unread) overread_ = true;
  limits_ = limits;
}

void End::want(std::size_t size) {
  if (!stream_->want(size)) return;
  may_be_offered_again_ = true;
  wanted_ = size;
  may_hide_ = may_hide_ || size > 1;
  if (size > limits_.max_unread) overread_ = true;
}

StreamOptions End::make_options(const Step& step) {
  StreamOptions options;
  if (step.b % 2 == 0) options.limits = {.low = 500, .high = 5000, .max = 900'000};
  if (step.b / 2 % 4 == 0) options.idle_timeout = span_of(step.a);
  if (step.b / 8 % 4 == 0) options.read_timeout = span_of(step.a / 8);
  if (step.b / 32 % 4 == 0) options.write_timeout = span_of(step.a / 64);
  if (step.a / 512 % 4 == 0) options.deadline = span_of(step.a / 2048);
  if (step.a / 16384 % 4 == 0) options.rate_limits = {{500'000, 8000}, {500'000, 8000}};
  if (step.a / 65536 % 8 == 0) options.rate_group = world.group(step.a);
  options.half_open = step.b % 3 == 0;
  options.receive_descriptors = step.b % 5 == 0;
  return options;
}

// Options with default values change nothing. When memory runs out, each of them may or may not
// have been set.
void End::note_options(const StreamOptions& options, bool is_taken) {
  check(is_taken || world.is_stormy(), "options_are_taken", "end %u: refused", number);
  world.count(Event::optioned);
  const StreamOptions none;
  const Limit now{Nanos{0}, world.now(), world.now(), 0};
  const auto note = [&](Limit& limit, Nanos span) {
    if (span == Nanos{0}) return;
    limit = now;
    limit.span = span;
  };
  if (options.limits != none.limits) note_limits(options.limits);
  note(idle_, options.idle_timeout);
  note(read_, options.read_timeout);
  note(write_, options.write_timeout);
  note(deadline_, options.deadline);
  read_.latest = world.now();
  if (options.rate_limits != none.rate_limits) {
    is_rated_ = true;
    reading_ = {options.rate_limits.read, world.now(), in == nullptr ? 0 : in->shown()};
    if (in_callback_ || may_hide_) reading_ = {};
    writing_ = {options.rate_limits.write, world.now(), sent()};
  }
  if (options.rate_group != nullptr) is_rated_ = true;
  if (options.half_open) is_half_open_ = true;
  if (options.receive_descriptors) takes_descriptors_ = world.next_number();
  if (!is_taken) reading_ = writing_ = {};
}

void End::set_rate(const Step& step) {
  static constexpr std::uint64_t kRates[4] = {0, 30'000, 500'000, 20'000'000};
  static constexpr std::size_t kBursts[4] = {0, 1000, 8000, 100'000};
  const RateLimits limits{{kRates[step.a % 4], kBursts[(step.a >> 2) % 4]},
                          {kRates[(step.a >> 4) % 4], kBursts[(step.a >> 6) % 4]}};
  if (!stream_->set_rate_limits(limits)) return;
  is_rated_ = true;
  // Bytes corked in its own callback count for the new rate.
  reading_ = {limits.read, world.now(), in == nullptr ? 0 : in->shown()};
  if (in_callback_ || may_hide_) reading_ = {};  // More may be read already than was shown.
  writing_ = {limits.write, world.now(), sent()};
}

// ---- time

void End::act_on_time(const Step& step) {
  const Nanos span = span_of(step.a);
  const Limit limit{span, world.now(), world.now(), 0};
  if (!stream_->is_open()) return;  // The timeout that closed it stays as it was.
  if (step.op == Op::idle_timeout) {
    stream_->set_idle_timeout(span);
    idle_ = limit;
  } else if (step.op == Op::read_timeout) {
    if (stream_->set_read_timeout(span)) read_ = limit;
  } else if (step.op == Op::write_timeout) {
    if (stream_->set_write_timeout(span)) write_ = limit;
  } else if (stream_->set_deadline(span)) {
    deadline_ = limit;
  }
}

// ---- beginning and ending

void End::act_on_ending(const Step& step) {
  switch (step.op) {
    case Op::end:
      return end();
    case Op::close:
      return close(step.b % 4 == 3 ? Linger::no : Linger::yes);
    case Op::abort:
      return abort();
    case Op::destroy:
      return destroy();
    case Op::start_again:
      return start_with(step);
    case Op::functions:
      return start_functions(step);
    case Op::reconnect:
      return reconnect(step);
    case Op::become_session:
      return become_session(step);
    case Op::relay:
      return world.relay(*this, step);
    case Op::secure:
      return world.secure(*this, step);
    case Op::release:
      return release(step.b % 2 == 0);
    case Op::move:
      return move();
    case Op::move_over:
      if (End* other = world.other_end(step.b, this); other != nullptr) other->move_over(*this);
      return;
    case Op::kernel_buffers:
      static_cast<void>(
          stream_->set_kernel_buffers(1 + step.a % 20000, kind == Kind::tcp ? 0 : step.b * 100));
      return;
    default:
      return act_on_reading(step);
  }
}

void End::start() {
  if (is_closed_) return;  // on_closed() would be called again.
  name_handler();
  guest_ != nullptr ? stream_->start(*guest_) : stream_->start(*handler_);
}

void End::start_with(const Step& step) {
  if (is_closed_ || guest_ != nullptr || step.b % 3 != 0) return start();
  const StreamOptions options = make_options(step);
  name_handler();
  const bool was_open = stream_->is_open();
  const std::error_code error = stream_->start(*handler_, options);
  if (was_open) note_options(options, !error);
  if (error) stream_->start(*handler_);
}

// The connection owns the callbacks, with their captures, for its whole life.
void End::start_functions(const Step& step) {
  if (is_closed_ || guest_ != nullptr) return;
  name_handler();
  Handler* handler = handler_;
  const auto token = std::make_shared<const Token>(world.token());  // The last of them acts.
  StreamCallbacks functions;
  functions.on_data = [this, handler, token](Bytes bytes) {
    world.count(Event::functions_called);
    const std::size_t used = handler->on_data(bytes);
    check(**token == kToken, "functions_stay", "gone while they were called");
    return used;
  };
  functions.on_end = [handler, token] { handler->on_end(); };
  functions.on_connected = [handler, token] { handler->on_connected(); };
  functions.on_drained = [handler, token] { handler->on_drained(); };
  functions.on_descriptors = [handler, token](std::span<const int> fds, bool some_lost) {
    handler->on_descriptors(fds, some_lost);
  };
  functions.on_closed = [handler, token](std::error_code error) {
    handler->on_closed(error);
    check(**token == kToken, "functions_stay", "gone while they were called");
  };
  const StreamOptions options = step.b % 3 == 0 ? make_options(step) : StreamOptions{};
  const bool was_open = stream_->is_open();
  const std::error_code error = stream_->start(std::move(functions), options);
  if (was_open) note_options(options, !error);
  if (error) stream_->start(*handler_);
}

// Replaces the handler from now on.
void End::name_handler() {
  catch_up();
  if (handler_ != nullptr) handler_->is_retired = true;
  handler_ = &handlers_.emplace_back(*this);
  note_start();
}

void End::note_start() {
  wanted_ = 0;
  if (left_ > 0 && stream_->is_open() && !is_closing_) owes_offer_ = true;
  may_be_offered_again_ = true;
  if (!is_started_) read_.since = world.now();
  read_.latest = world.now();
  is_started_ = true;
}

void End::prepare(const Step& step) {
  if (step.a / 256 % 2 == 0) {
    takes_descriptors_ = world.next_number();
    stream_->set_receive_descriptors(true);
  }
  if (step.a / 1024 % 2 == 0) {
    limits_.low = 100;
    limits_.high = 2000;
    if (!stream_->set_limits(limits_)) limits_ = {};
  }
}

void End::go_on_from(const End& other) {
  used_ = in == nullptr ? 0 : in->shown();
  is_half_open_ = other.is_half_open_;
  stream_->set_half_open(is_half_open_);
  start();
}

void End::end() {
  if (stream_->is_writable()) may_show_end = true;
  is_ending_ = true;
  stream_->end();
}

// Without lingering, unread input makes the kernel send a reset, which may discard our last bytes.
void End::close(Linger linger) {
  if (!stream_->is_open()) return;
  on_closed_for_it();
  stream_->close(linger);
  if (linger == Linger::yes) return;
  may_show_error = may_show_cut = true;
  if (out != nullptr) out->lose("closed without lingering");
}

void End::on_closed_for_it() {
  if (!has_handle() || is_over() || !stream_->is_open()) return;
  is_closing_ = is_ending_ = true;
  owes_drained_ = owes_offer_ = false;
  if (is_connecting_ && out->accepted() > 0) world.lose_caller(*this);
  gone("closed");
}

// In good order: written bytes are still sent.
void End::gone(const char* how) {
  may_show_end = may_show_error = true;
  if (in != nullptr) in->lose(how);
  if (out != nullptr && out->left_alone_at == Nanos{0})
    out->last_progress = out->left_alone_at = world.now();
}

void End::abort() {
  if (guest_ != nullptr && !is_over()) return abort_session();
  if (stream_->is_open()) mark_dead("aborted");  // Before the destructors that it may call.
  stream_->abort();
  check(!stream_->is_open() && !stream_->is_writable(), "abort_closes", "end %u: open", number);
  catch_up();
  note_given_up();
  is_gone_ = true;
}

// The other end may see an error or a truncated stream, but never wrong bytes.
void End::mark_dead(const char* how) {
  may_show_error = may_show_cut = true;
  if (in != nullptr) in->lose(how);
  if (out != nullptr) out->lose(how);
}

void End::destroy() {
  if (!has_handle()) return;
  if (guest_ != nullptr) return is_over() ? void() : abort_session();
  const std::unique_ptr<Stream> last = give_away("thrown away by one that is destroyed");
}

std::unique_ptr<Stream> End::give_away(const char* how) {
  catch_up();
  if (!is_over() && stream_->is_open()) gone(how);
  note_given_up();
  is_gone_ = true;
  stream_ = nullptr;
  return std::move(owned_);
}

std::unique_ptr<Stream> End::pass_away() {
  is_gone_ = is_passed_on_ = true;
  stream_ = nullptr;
  return std::move(owned_);
}

// It ends before it was connected. Bytes that it has written may still reach the peer.
void End::note_given_up() {
  if (!std::exchange(is_connecting_, false)) return;
  world.count(Event::given_up);
  if (out->accepted() > 0) world.lose_caller(*this);
}

void End::make_plain() {
  idle_.span = read_.span = write_.span = deadline_.span = Nanos{0};
  stream_->set_idle_timeout(Nanos{0});
  stream_->set_read_timeout(Nanos{0});
  stream_->set_write_timeout(Nanos{0});
  stream_->set_deadline(Nanos{0});
  stream_->set_limits({});
  limits_ = {};
  stream_->join(nullptr);
  stream_->set_rate_limits({});
}

bool End::is_plain() const {
  return idle_.span == Nanos{0} && read_.span == Nanos{0} && write_.span == Nanos{0} &&
         deadline_.span == Nanos{0} && limits_ == QueueLimits{} && !overflowed_ && !may_overflow_ &&
         !overread_ && !is_file_short_;
}

bool End::may_be_secured() const {
  return is_plain() && !in_callback_ && left_ == 0 && stream_->queued() == 0 && in->is_whole() &&
         !in->is_lossy();
}

std::unique_ptr<Stream> End::pass_to_tls() {
  make_plain();
  stream_->resume();
  return pass_away();
}

void End::move() {
  if (guest_ != nullptr) return;
  auto moved = std::make_unique<Stream>(std::move(*stream_));
  check(!stream_->is_open() && !stream_->is_writable() && stream_->fd() == -1, "moved_is_empty",
        "end %u: what was moved from is open", number);
  owned_ = std::move(moved);
  stream_ = owned_.get();
}

// Its Stream is replaced by `other`'s by a move, and destroyed.
void End::move_over(End& other) {
  if (!has_handle() || !other.has_handle()) return;
  if (guest_ != nullptr || other.guest_ != nullptr) return;
  std::unique_ptr<Stream> target = give_away("moved over");
  std::unique_ptr<Stream> source = std::move(other.owned_);
  *target = std::move(*source);
  other.owned_ = std::move(target);
  other.stream_ = other.owned_.get();
  source.reset();
}

void End::release(bool to_raw) {
  if (in_data_ || guest_ != nullptr || is_connecting_) return;  // Bytes are in use.
  const bool was_open = stream_->is_open();
  const std::size_t waiting = stream_->queued();
  const std::size_t left = left_;
  const auto released = stream_->release();
  world.tell("  end %u is released: %s", number,
             released ? "" : released.error().message().c_str());
  if (!was_open || kind == Kind::memory || is_secure) {
    check(!released &&
              (is_system(released.error(), EBADF) || is_system(released.error(), EOPNOTSUPP)),
          "release_tells", "end %u: released what is %s", number,
          was_open ? "memory or TLS" : "closed");
    return;
  }
  const bool is_free = waiting == 0 && left == 0 && !is_ending_ && !may_show_end && !overflowed_ &&
                       !is_file_short_ && !peer->may_show_error;
  check(released || !is_free || world.is_stormy() || is_system(released.error(), EBUSY),
        "release_gives", "end %u: %s with nothing queued or unread", number,
        released ? "" : released.error().message().c_str());
  if (!released) return;
  // In a callback, corked bytes are sent first.
  check((waiting == 0 || world.loop().depth() > 0) && left == 0, "release_loses_nothing",
        "end %u: %zu queued, %zu unread", number, waiting, left);
  check(!overflowed_, "release_of_the_broken", "end %u: released, and it is broken", number);
  is_gone_ = true;
  stream_ = nullptr;
  owned_.reset();
  world.hand_on(*this, *released, to_raw);
}

// ---- connecting

void End::reconnect(const Step& step) {
  if (guest_ == nullptr && world.has_room()) world.connect_stream(this, step);
}

void End::connect(Function<std::error_code(Stream&, StreamHandler&)> begin,
                  Function<bool(std::error_code) const> may_fail) {
  handler_ = &handlers_.emplace_back(*this);
  note_start();
  is_connecting_ = in_connect_ = true;
  may_fail_ = std::move(may_fail);
  const std::error_code error = begin(*stream_, *handler_);
  in_connect_ = false;
  world.tell("  end %u connects: %s", number, error ? error.message().c_str() : "begun");
  check(!error || world.is_stormy(), "connect_begins", "end %u: %s", number,
        error.message().c_str());
  if (!error) return look();
  is_connecting_ = false;
  is_gone_ = true;
  stream_ = nullptr;
  owned_.reset();
}

// ---- sessions

void End::become_session(const Step& step) {
  if (guest_ == nullptr && !is_closed_ && !is_gone_) world.guests().take_in(*this, step);
}

std::unique_ptr<Stream> End::take_for_session() {
  catch_up();
  stream_ = nullptr;
  return std::move(owned_);
}

void End::on_session_open(Guest& guest) {
  guest_ = &guest;
  stream_ = &guest.stream();
  if (handler_ != nullptr) handler_->is_retired = true;
  handler_ = &handlers_.emplace_back(*this);
  awaits_session_ = in_open_ = true;
  opened_at_ = world.now();
  // If it was started before, it has the rules of before until on_open() returns.
  world.visit({Where::open, this}, is_started_ ? Running::no : Running::yes);
  in_open_ = false;
  catch_up();
}

void End::on_session_start() {
  if (in_open_ || !std::exchange(awaits_session_, false) || is_over()) return;
  const bool is_first = !is_started_;
  note_start();
  if (is_first) read_.since = opened_at_;
}

void End::on_session_drain(Nanos grace) {
  on_session_start();
  if (stream_->is_open()) deadline_ = {std::max(grace, Nanos{1}), world.now(), world.now(), 0};
}

// Destroyed with the Sessions, if not closed.
void End::on_session_gone() {
  catch_up();
  if (!is_over() && stream_->is_open()) gone("thrown away with its session");
  note_given_up();
  is_gone_ = true;
  guest_ = nullptr;
  stream_ = nullptr;
}

void End::abort_session() {
  const bool was_open = stream_->is_open();
  catch_up();
  is_gone_ = true;
  if (was_open) mark_dead("aborted");
  note_given_up();
  Guest& guest = *guest_;
  guest.note_abort();
  guest.abort();
}

}  // namespace spate::chaos
