// Checks each callback of an End as it comes, and in the end that none is missing.
#include "chaos/end.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "chaos/guests.h"
#include "chaos/handler.h"
#include "chaos/verdict.h"
#include "chaos/world.h"

namespace spate::chaos {

namespace {

// A few repeated offers of the same bytes break no promise.
constexpr int kMaxSameOffers = 3;

const char* name_of(const Party& party) {
  static char names[4][32];
  static unsigned next = 0;
  char* name = names[next++ % 4];
  std::snprintf(name, sizeof(names[0]), "end %u (%s%s)", party.number,
                party.is_secure ? "TLS, " : "", kKindNames[static_cast<int>(party.kind)]);
  return name;
}

}  // namespace

End::End(World& its_world, unsigned its_number, Kind its_kind, std::unique_ptr<Stream> stream)
    : Party(its_world, its_number, its_kind, false),
      stream_(stream.get()),
      owned_(std::move(stream)) {}

End::~End() = default;

// ---- called by the library

void End::begin_call(const Handler& handler, const char* what) {
  world.moved();
  world.tell("[%s %s]", name_of(*this), what);
  check(!in_open_ || is_started_ || (guest_ != nullptr && guest_->is_being_ended()), "opened_first",
        "%s: %s inside on_open()", name_of(*this), what);
  on_session_start();
  const bool is_ended_with_all = guest_ != nullptr && guest_->is_being_ended();
  check(!is_gone_, "gone_hears_nothing", "%s: %s after its owner had gone", name_of(*this), what);
  check(!is_closed_, "closed_is_last", "%s: %s after on_closed()", name_of(*this), what);
  check(!handler.is_retired, "replaced_hears_nothing", "%s: %s to a handler that was replaced",
        name_of(*this), what);
  check(!in_connect_, "not_from_inside", "%s: %s inside connect()", name_of(*this), what);
  check(!in_callback_ || is_ended_with_all, "one_callback_at_a_time",
        "%s: %s inside another callback of its own", name_of(*this), what);
  in_callback_ = true;
}

void End::check_may_receive(Bytes bytes) {
  check(!is_paused_, "paused_reads_nothing", "%s: on_data() while paused", name_of(*this));
  check(!is_closing_, "closing_hears_nothing", "%s: on_data() after close()", name_of(*this));
  check(!saw_end_, "end_is_the_end", "%s: on_data() after on_end()", name_of(*this));
  check(!limits_.pause_reading || !stream_->is_full(), "full_reads_nothing",
        "%s: on_data() while full, with pause_reading", name_of(*this));
  check(!bytes.empty(), "some_bytes", "%s: on_data() without bytes", name_of(*this));
  check(!is_connecting_, "connected_first", "%s: on_data() before on_connected()", name_of(*this));
}

std::size_t End::on_data(const Handler& handler, Bytes bytes) {
  begin_call(handler, "on_data");
  check_may_receive(bytes);
  if (in->accepted() == 0) world.identify(*this, bytes);
  const std::size_t wanted = std::exchange(wanted_, 0);
  peer->catch_up();
  check(bytes.size() >= wanted || may_be_cut_short(), "want_is_met", "%s: %zu bytes of %zu wanted",
        name_of(*this), bytes.size(), wanted);
  if (wanted > 1 && bytes.size() >= wanted) world.count(Event::want_met);
  in->verify(used_, bytes, name_of(*this));
  check(bytes.size() >= left_, "unread_comes_again", "%s: %zu bytes were left, %zu came",
        name_of(*this), left_, bytes.size());
  const bool has_new = bytes.size() > left_;
  const bool is_more = has_new || may_be_offered_again_;
  same_offers_ = is_more ? 0 : same_offers_ + 1;
  check(same_offers_ < kMaxSameOffers, "no_offer_without_more", "%s: the same %zu bytes once more",
        name_of(*this), left_);
  if (!in->descriptors.empty()) note_descriptors_missed(used_ + bytes.size());
  may_be_offered_again_ = owes_offer_ = false;
  left_ = bytes.size();
  in->show(used_ + left_, world.now());
  idle_.latest = read_.latest = world.now();
  check(reading_.holds(in->shown(), world.now()), "read_rate_holds", "%s: %zu bytes since %lld ns",
        name_of(*this), in->shown() - reading_.base,
        static_cast<long long>(reading_.since.count()));
  const Nanos arrived = std::exchange(arrived_, std::nullopt).value_or(world.now());
  if (has_new && !std::exchange(may_hide_, false))
    idle_.since = read_.since = arrived;  // Otherwise some arrived before.
  const std::size_t used = choose_use(bytes.size());
  world.tell("  %zu bytes from %zu, uses %zu", bytes.size(), used_, used);
  const std::size_t at = used_;
  using_ = used;
  in_data_ = true;
  world.visit({Where::data, this, bytes, at});
  in_data_ = false;
  using_ = 0;
  in->verify(at, bytes, name_of(*this));
  in_callback_ = false;
  const std::size_t counted = is_gone_ && !is_passed_on_ ? bytes.size() : used;
  used_ += counted;
  left_ = bytes.size() - counted;
  if (left_ > limits_.max_unread) overread_ = true;
  if (left_ == 0) owes_offer_ = false;
  return counted;
}

// Descriptors are reported before the byte that carried them.
void End::note_descriptors_missed(std::size_t shown) {
  while (!in->descriptors.empty() && in->descriptors.front().at < shown) {
    const bool must_come = takes_descriptors_ != 0 &&
                           in->descriptors.front().taker == takes_descriptors_ &&
                           !world.is_stormy();
    check(!must_come, "descriptors_arrive",
          "%s: the descriptors that came with byte %zu are missing", name_of(*this),
          in->descriptors.front().at);
    in->descriptors.pop_front();
  }
}

// A Stream that was never started, or that its owner released, does not report its end.
void End::catch_up() {
  note_lingering();
  if (is_over() || is_started_ || !has_handle() || stream_->is_open()) return;
  mark_dead("closed before it was started");
  may_show_end = true;
}

// A closed Stream gives up at its deadline, at its write timeout, and ten seconds after the last
// byte that moved. The model knows that bytes move only when every party reads all that is
// available.
void End::note_lingering() {
  constexpr Nanos kLinger{9'990'000'000};
  if (out == nullptr || out->left_alone_at == Nanos{0} || out->is_lossy()) return;
  const Nanos now = world.time();
  const Nanos since = world.is_friendly() ? out->last_progress : out->left_alone_at;
  if (now - since >= kLinger) out->lose("nobody took it for ten seconds");
  if (deadline_.is_over(now)) out->lose("its deadline");
  if (write_.is_over(now)) out->lose("its write timeout");
}

void End::on_end(const Handler& handler) {
  begin_call(handler, "on_end");
  peer->catch_up();
  check(!is_paused_, "paused_reads_nothing", "%s: on_end() while paused", name_of(*this));
  check(!is_closing_, "closing_hears_nothing", "%s: on_end() after close()", name_of(*this));
  check(!saw_end_, "end_once", "%s: on_end() twice", name_of(*this));
  check(!limits_.pause_reading || !stream_->is_full(), "full_reads_nothing",
        "%s: on_end() while full, with pause_reading", name_of(*this));
  const bool has_resets = kind == Kind::tcp || kind == Kind::memory || is_secure;
  const bool shows_resets = has_resets && !peer->may_end_short();
  check(in->is_whole() || (in->is_lossy() && !shows_resets) || world.is_stormy(), "end_is_whole",
        "%s: the end after %zu bytes of %zu; lost by: %s", name_of(*this), in->shown(),
        in->accepted(), in->loss());
  check(peer->may_show_end || (peer->may_show_cut && !shows_resets) || world.is_stormy(),
        "end_is_the_peers", "%s: on_end(), and its peer has not ended", name_of(*this));
  check(!owes_offer_, "unread_before_end",
        "%s: the end, before %zu unread bytes were offered once more", name_of(*this), left_);
  check(!is_connecting_, "connected_first", "%s: on_end() before on_connected()", name_of(*this));
  check(stream_->unread().size() == left_, "unread_is_left", "%s: %zu unread in on_end(), not %zu",
        name_of(*this), stream_->unread().size(), left_);
  check_unread();
  saw_end_ = true;
  left_ = wanted_ = 0;
  world.visit({Where::end, this});
  in_callback_ = false;
  if (!is_half_open_) may_show_end = true;
}

void End::on_descriptors(const Handler& handler, std::span<const int> fds, bool some_lost) {
  begin_call(handler, "on_descriptors");
  check(!is_paused_, "paused_reads_nothing", "%s: on_descriptors() while paused", name_of(*this));
  check(!is_closing_, "closing_hears_nothing", "%s: on_descriptors() after close()",
        name_of(*this));
  check(!some_lost || world.is_stormy(), "descriptors_arrive", "%s: some were lost",
        name_of(*this));
  arrived_ = world.now();  // With the bytes of the next on_data().
  std::vector<std::uint64_t> files;
  for (const int fd : fds) {
    struct stat status;
    files.push_back(::fstat(fd, &status) == 0 ? status.st_ino : 0);
  }
  close_descriptors(fds);
  const bool is_known = !in->descriptors.empty() && in->descriptors.front().files == files;
  check(is_known, "own_descriptors", "%s: %zu descriptors that are not those sent next",
        name_of(*this), fds.size());
  if (is_known) {
    check(in->descriptors.front().at >= in->shown(), "own_descriptors",
          "%s: descriptors of byte %zu after byte %zu", name_of(*this), in->descriptors.front().at,
          in->shown());
    in->descriptors.pop_front();
  }
  world.visit({Where::descriptors, this}, Running::no);
  in_callback_ = false;
}

void End::on_connected(const Handler& handler) {
  begin_call(handler, "on_connected");
  check(!is_closing_, "closing_hears_nothing", "%s: on_connected() after close()", name_of(*this));
  check(std::exchange(is_connecting_, false), "connected_once",
        "%s: on_connected(), and it was not connecting", name_of(*this));
  check(!stream_->is_connecting(), "connected_once", "%s: still connecting", name_of(*this));
  idle_.latest = read_.latest = world.now();
  world.count(Event::connected);
  world.meet(stream_->local_address().port(), World::Side::calling, *this);
  world.visit({Where::connected, this});
  in_callback_ = false;
}

void End::on_drained(const Handler& handler) {
  begin_call(handler, "on_drained");
  check(!is_closing_, "closing_hears_nothing", "%s: on_drained() after close()", name_of(*this));
  check(!stream_->is_full(), "drained_is_not_full", "%s: on_drained(), and it is full",
        name_of(*this));
  check(stream_->queued() <= limits_.low || limits_changed_, "drained_is_low",
        "%s: on_drained() with %zu queued, above %zu", name_of(*this), stream_->queued(),
        limits_.low);
  owes_drained_ = limits_changed_ = false;
  read_.latest = world.now();
  may_be_offered_again_ = true;
  world.visit({Where::drained, this});
  in_callback_ = false;
}

void End::on_closed(const Handler& handler, std::error_code error) {
  begin_call(handler, "on_closed");
  world.tell("  %s", error ? error.message().c_str() : "no error");
  if (is_connecting_) world.count(Event::not_connected);
  check(!stream_->is_open() && !stream_->is_writable(), "closed_is_closed",
        "%s: open or writable in on_closed()", name_of(*this));
  peer->catch_up();
  check(is_legal(error), "right_error", "%s: closed with \"%s\" at %lld ns", name_of(*this),
        error ? error.message().c_str() : "no error", static_cast<long long>(world.now().count()));
  is_closed_ = true;
  is_connecting_ = false;
  owes_drained_ = owes_offer_ = false;
  if (error) {
    mark_dead("closed with an error");
    may_show_end = true;  // If all was sent; otherwise it is a reset, on transports that have
                          // resets.
  } else {
    if (in != nullptr && !saw_end_) in->lose("closed");
    may_show_end = may_show_error = true;
  }
  world.visit({Where::closed, this});
  in_callback_ = false;
}

bool End::is_legal(std::error_code error) const {
  if (world.is_stormy()) return true;
  if (!error) return saw_end_ || is_closing_ || (in == nullptr && is_ending_);
  const Nanos now = world.now();
  if (is_connecting_ && may_fail_(error)) return true;
  if (guest_ != nullptr && guest_->is_ended_with(error)) return true;
  if (error == Error::idle_timeout) return idle_.is_over(now) && !has_unheard_bytes();
  if (error == Error::read_timeout) return read_.is_over(now);
  if (error == Error::write_timeout) return write_.is_over(now) || has_lingered(now);
  if (error == Error::deadline) return deadline_.is_over(now);
  if (error == Error::queue_full) return overflowed_ || may_overflow_;
  if (error == Error::unread_full) return overread_ || left_ > limits_.max_unread;
  if (error == std::error_code(ENODATA, std::system_category())) return is_file_short_;
  if (is_secure && error == Error::tls_truncated) return peer->may_show_error || peer->may_show_cut;
  const bool is_reset = error == std::error_code(ECONNRESET, std::system_category()) ||
                        error == std::error_code(EPIPE, std::system_category());
  return is_reset && peer->may_show_error;
}

// True if it was closed with a queue, and its peer took nothing of it for ten seconds.
bool End::has_lingered(Nanos now) const {
  constexpr Nanos kLinger{10'000'000'000};
  return is_closing_ && now - out->left_alone_at >= kLinger;
}

// Available bytes are read before a connection counts as idle.
bool End::has_unheard_bytes() const {
  return world.is_fair() && is_reading() && wanted_ == 0 && !is_rated_ && kind == Kind::local &&
         !is_secure && peer->is_raw && !in->is_lossy() && !in->is_following() &&
         in->shown() < in->accepted() && !is_left_out("read_before_idle");
}

std::size_t End::choose_use(std::size_t size) {
  if (use_times_ > 0 && --use_times_ == 0) use_ = Use::all;
  switch (use_) {
    case Use::none:
      return 0;
    case Use::half:
      return size / 2;
    case Use::one:
      return 1;
    case Use::all_but_one:
      return size - 1;
    default:
      return size;
  }
}

// ---- state

bool End::is_reading() const {
  return is_started_ && !is_over() && !is_paused_ && !saw_end_ && !is_closing_ && in != nullptr &&
         !(limits_.pause_reading && stream_->is_full());
}

bool End::keeps_loop_alive() const {
  if (kind == Kind::memory || is_over() || in_callback_ || !stream_->is_open()) return false;
  return is_reading() || stream_->queued() > 0;
}

// A shorter on_data() is allowed when no more bytes will come.
bool End::may_be_cut_short() const {
  return peer->may_show_end || peer->may_show_cut || peer->may_show_error || world.is_stormy();
}

// Bytes that on_data() left are in unread(); with want(), later ones too.
void End::check_unread() {
  const Bytes unread = stream_->unread();
  if (in_data_) {
    return check(unread.empty(), "unread_is_left", "%s: %zu unread inside on_data()",
                 name_of(*this), unread.size());
  }
  if (in == nullptr || is_closing_ || !stream_->is_open()) return;
  // Functions that replaced themselves are destroyed before their callback is over.
  if (world.is_dropping()) return;
  // It is about to be closed: nothing is offered any more.
  const bool is_failing = overflowed_ || may_overflow_ || overread_ || is_file_short_;
  check(unread.size() >= left_ || is_failing, "unread_is_left", "%s: %zu unread, and %zu were left",
        name_of(*this), unread.size(), left_);
  if (unread.empty()) return;
  world.count(Event::unread_seen);
  if (in->accepted() == 0) world.identify(*this, unread);
  in->verify(used_, unread, name_of(*this));
}

void End::look() {
  note_lingering();
  if (is_over()) return;
  on_session_start();
  check(is_connecting_ == stream_->is_connecting() || is_closing_ || !stream_->is_open(),
        "is_connecting_tells", "%s: is_connecting() is wrong", name_of(*this));
  if (is_over() || !stream_->is_open()) return;  // The timeout that closed it stays as it was.
  if (stream_->is_full() && is_started_) owes_drained_ = true;
  check_unread();
  const std::size_t queued = stream_->queued();
  if (queued != last_queued_) idle_.latest = write_.latest = world.now();
  if (queued == 0) write_.since = write_.latest = world.now();
  last_queued_ = queued;
  check(!stream_->is_writable() || writing_.holds(sent(), world.now()), "write_rate_holds",
        "%s: %zu bytes since %lld ns", name_of(*this), sent() - writing_.base,
        static_cast<long long>(writing_.since.count()));
}

namespace {

void check_late(bool is_late, int& turns, const char* promise, const End& end) {
  turns = is_late ? turns + 1 : 0;
  check(turns < 4, promise, "%s is overdue", name_of(end));
}

}  // namespace

bool End::Pace::holds(std::size_t count, Nanos now) const {
  if (rate.bytes_per_second == 0 || count <= base) return true;
  const std::size_t burst = rate.burst == 0 ? rate.bytes_per_second / 10 : rate.burst;
  const auto gained = static_cast<double>(rate.bytes_per_second) * 1e-9 *
                      static_cast<double>((now - since).count());
  return static_cast<double>(count - base) <= static_cast<double>(burst) + gained + 1;
}

// Pauses due to rate limits shift the timeouts that depend on bytes.
void End::check_time(Nanos now) {
  if (is_over() || !is_started_ || world.is_stormy() || in_callback_) return;
  check_late(deadline_.is_late(now), deadline_.overdue,
             is_closing_ ? "deadline_while_closing" : "deadline_comes", *this);
  if (is_closing_ || is_rated_) return;
  check_late(idle_.is_late(now), idle_.overdue, "idle_timeout_comes", *this);
  // The peer's end is read long before it is reported, after the bytes left at a full queue.
  if (wanted_ > 0) idle_.latest = now;  // The arrived bytes are not shown yet.
  if (!is_reading() || wanted_ > 0 || (peer->may_show_end && stream_->is_full()))
    read_.latest = now;
  check_late(read_.is_late(now), read_.overdue, "read_timeout_comes", *this);
  check_late(write_.is_late(now) && last_queued_ > 0, write_.overdue, "write_timeout_comes", *this);
}

void End::make_friendly() {
  if (is_over()) return;
  use_ = Use::all;
  if (stream_->is_open()) idle_.span = read_.span = write_.span = deadline_.span = Nanos{0};
  stream_->set_idle_timeout(Nanos{0});
  stream_->set_read_timeout(Nanos{0});
  stream_->set_write_timeout(Nanos{0});
  stream_->set_deadline(Nanos{0});
  stream_->join(nullptr);
  stream_->set_rate_limits({});
  is_rated_ = false;
  reading_ = writing_ = {};
  limits_ = QueueLimits{};
  limits_changed_ = true;
  may_be_offered_again_ = true;
  stream_->set_limits(limits_);
  if (!is_started_) start();
  want(0);
  if (left_ > 0) stream_->pause();
  stream_->resume();
  is_paused_ = false;
  owes_offer_ = left_ > 0 && !saw_end_ && !is_closing_ && stream_->is_open();
}

void End::check_settled() {
  if (is_over() || world.is_stormy()) return;
  check(!is_connecting_, "connect_is_answered", "%s: still connecting", name_of(*this));
  const bool is_told = saw_end_ || is_closing_ || in == nullptr;
  check(is_told || in->is_lossy() || in->is_whole(), "bytes_arrive",
        "%s: %zu of %zu bytes arrived, and nothing moves any more", name_of(*this),
        in == nullptr ? 0 : in->shown(), in == nullptr ? 0 : in->accepted());
  check(!owes_offer_, "unread_is_offered", "%s: %zu unread bytes are not offered once more",
        name_of(*this), left_);
  check(!overflowed_, "overflow_is_told", "%s: was to be closed with queue_full", name_of(*this));
  if (is_closing_) return;
  check(stream_->queued() == 0, "queue_is_sent", "%s: %zu bytes stay queued", name_of(*this),
        stream_->queued());
  check(!stream_->is_full() && !owes_drained_, "drained_comes", "%s: on_drained() has not come%s",
        name_of(*this), stream_->is_full() ? ", and it stays full" : "");
  check(!peer->must_show_end() || saw_end_ || in == nullptr, "end_comes",
        "%s: its peer has gone, and it was not told", name_of(*this));
}

// No interest may be lost, so the end does not wait for a timeout where both sides have ended.
void End::check_told_promptly() {
  const bool may_be_late = world.is_stormy() || kind == Kind::tcp || kind == Kind::pipe ||
                           (in != nullptr && in->is_lossy()) || (out != nullptr && out->is_lossy());
  check(is_over() || may_be_late, "closed_comes_promptly",
        "%s: on_closed() waits for a timeout%s%s", name_of(*this), is_secure ? ", over TLS" : "",
        is_closing_ ? ", closing" : "");
}

void End::check_told() {
  check(is_over() || world.is_stormy(), "closed_comes", "%s: on_closed() has not come%s%s%s",
        name_of(*this), is_ending_ ? ", ending" : "", saw_end_ ? ", ended by its peer" : "",
        is_closing_ ? ", closing" : "");
}

void End::on_loop_gone() {
  if (!has_handle()) return;
  check(!stream_->is_open() && !stream_->is_writable(), "loop_closes", "%s: open without a loop",
        name_of(*this));
  is_gone_ = true;
}

}  // namespace spate::chaos
