// End: a Stream, its handlers, and the exact model of the callbacks that it may and must make.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <system_error>

#include "chaos/party.h"
#include "chaos/program.h"
#include "spate/function.h"
#include "spate/net/connect.h"
#include "spate/net/stream.h"

namespace spate::chaos {

class Guest;
struct Visit;

class End final : public Party {
 public:
  class Handler;

  End(World& world, unsigned number, Kind kind, std::unique_ptr<Stream> stream);
  ~End() override;
  void catch_up() override;

  // ---- operations

  void act(const Step& step, const Visit& visit);
  // Writes bytes that others get too: they are of that pattern from `offset` on.
  void publish(Bytes bytes, unsigned pattern, std::size_t offset);
  void start();
  void destroy();
  // The loop runs inside one of its callbacks: unread bytes may be offered once more.
  void note_run() {
    if (in_callback_) may_be_offered_again_ = true;
  }
  // Gives some of them rare settings: narrow limits, descriptors.
  void prepare(const Step& step);
  // Another party closed it, in good order.
  void on_closed_for_it();
  // Uses the descriptor that `other` released.
  void go_on_from(const End& other);
  // Gives its Stream to a new owner, and returns it. reads_from() is where that one reads on.
  std::unique_ptr<Stream> give_away(const char* how);
  std::unique_ptr<Stream> pass_away();  // In good order: the new owner continues.
  std::size_t reads_from() const { return in_data_ ? used_ + using_ : used_; }
  // Removes limits and deadlines, so that its behaviour is predictable.
  void make_plain();
  // True if nothing queued or unread would disturb a handshake.
  bool may_be_secured() const;
  std::unique_ptr<Stream> pass_to_tls();
  bool is_plain() const;
  bool may_be_relayed() const {
    return has_handle() && !is_over() && guest_ == nullptr && !is_connecting_ && !is_ending_ &&
           !is_closing_ && !saw_end_ && stream_->is_open();
  }

  // ---- of a session

  bool is_session() const { return guest_ != nullptr; }
  std::unique_ptr<Stream> take_for_session();
  Guest& guest() { return *guest_; }
  // It belongs to `guest` from now on, in on_open() ...
  void on_session_open(Guest& guest);
  // ... is read from now on, with `open()` or on_drain(), ...
  void on_session_start();
  void on_session_drain(Nanos grace);
  // ... and was destroyed.
  void on_session_gone();
  void abort();
  // The handler whose StreamHandler functions are called.
  Handler& handler() { return *handler_; }

  // ---- of Stream::connect()

  // `begin` calls it; `may_fail` returns whether an error is allowed.
  void connect(Function<std::error_code(Stream&, StreamHandler&)> begin,
               Function<bool(std::error_code) const> may_fail);
  bool is_connecting() const { return is_connecting_; }

  // Whether a call to it is on the stack.
  bool is_acting() const { return is_acting_; }
  bool& acting() { return is_acting_; }

  // ---- state

  // No callback may come: destroyed, aborted, released, or closed.
  bool is_over() const { return is_gone_ || is_closed_; }
  bool is_gone() const { return is_gone_; }
  bool has_handle() const { return stream_ != nullptr; }
  Stream& stream() { return *stream_; }
  bool pauses_reading() const { return limits_.pause_reading; }
  // Returns whether it alone must keep run() from returning.
  bool keeps_loop_alive() const;
  // True if its peer's bytes must be shown without any further call.
  bool is_reading() const;

  // After each turn and each step: checks the visible state.
  void look();
  // After a turn outside of callbacks, at `now`: checks what should have happened by then.
  void check_time(Nanos now);
  // Lifts pauses and limits; asks for unread bytes.
  void make_friendly();
  // Nothing more is written here.
  void finish() { end(); }
  // Nothing moves any more.
  void check_settled();
  void check_told_promptly();
  void check_told();
  void on_loop_gone();

 private:
  enum class Use : std::uint8_t { all, none, half, one, all_but_one };
  // A timeout: must not expire before `since + span`; must expire by `latest + span`.
  struct Limit {
    bool is_over(Nanos now) const { return span > Nanos{0} && now - since >= span; }
    bool is_late(Nanos now) const { return span > Nanos{0} && now - latest - kSlack > span; }
    static constexpr Nanos kSlack{4'500'000};
    Nanos span{0};
    Nanos since{0};
    Nanos latest{0};
    int overdue = 0;
  };

  // Its rate limit: since it was set, no more than the burst and the rate times the time.
  struct Pace {
    bool holds(std::size_t count, Nanos now) const;
    Rate rate;
    Nanos since{0};
    std::size_t base = 0;
  };

  // ---- called by the library

  void begin_call(const Handler& handler, const char* what);
  std::size_t on_data(const Handler& handler, Bytes bytes);
  void on_end(const Handler& handler);
  void on_descriptors(const Handler& handler, std::span<const int> fds, bool some_lost);
  void on_connected(const Handler& handler);
  void on_drained(const Handler& handler);
  void on_closed(const Handler& handler, std::error_code error);
  void note_lingering();
  void note_descriptors_missed(std::size_t shown);
  void check_may_receive(Bytes bytes);
  bool has_lingered(Nanos now) const;
  bool has_unheard_bytes() const;
  bool may_be_cut_short() const;
  bool is_legal(std::error_code error) const;
  std::size_t choose_use(std::size_t size);

  // ---- operations

  void act_on_writing(const Step& step, const Visit& visit);
  void act_on_ending(const Step& step);
  void act_on_reading(const Step& step);
  void act_on_time(const Step& step);
  bool may_write() const;
  void write(std::size_t size);
  void write_span(const Step& step);
  void write_buffer(const Step& step);
  void echo(const Step& step, const Visit& visit);
  void send_file(const Step& step);
  void send_descriptors(const Step& step);
  void note_write(bool done, bool might, std::size_t waiting, Bytes bytes);
  void end();
  void close(Linger linger);
  void release(bool to_raw);
  void reconnect(const Step& step);
  void become_session(const Step& step);
  void name_handler();
  void note_start();
  void note_given_up();
  void abort_session();
  void start_with(const Step& step);
  void start_functions(const Step& step);
  StreamOptions make_options(const Step& step);
  void note_options(const StreamOptions& options, bool is_taken);
  void note_limits(const QueueLimits& limits);
  void want(std::size_t size);
  void check_unread();
  void move();
  void move_over(End& other);
  void join(const Step& step);
  void set_limits(const Step& step);
  void set_rate(const Step& step);
  void gone(const char* how);
  void mark_dead(const char* how);
  std::size_t room() const;
  std::size_t sent() const;
  void in_is_at_risk(const char* why);
  void note_full();

  Stream* stream_;  // Its own, or the session's.
  std::unique_ptr<Stream> owned_;
  Guest* guest_ = nullptr;       // Its owner.
  bool awaits_session_ = false;  // The session has not started it yet.
  bool in_open_ = false;
  Nanos opened_at_{0};
  std::deque<Handler> handlers_;  // Replaced handlers stay, to notice late calls.
  Handler* handler_ = nullptr;

  std::size_t used_ = 0;    // Position of the first unused byte.
  std::size_t left_ = 0;    // Bytes after it that were shown and left.
  std::size_t using_ = 0;   // In on_data(): bytes of it used already.
  bool may_hide_ = false;   // With want(): more may have arrived than was shown.
  std::size_t wanted_ = 0;  // on_data() is not called before so many are unread.
  bool may_be_offered_again_ = false;
  int same_offers_ = 0;
  std::optional<Nanos> arrived_;
  bool owes_offer_ = false;
  Use use_ = Use::all;
  unsigned use_times_ = 0;

  QueueLimits limits_;
  bool owes_drained_ = false;
  bool limits_changed_ = false;
  bool has_file_ = false;       // Files do not count for the limit.
  bool is_file_short_ = false;  // ENODATA is to come.
  bool overflowed_ = false;     // queue_full is to come.
  bool may_overflow_ = false;   // If the corked bytes cannot be sent at once.
  bool overread_ = false;       // unread_full may come.
  bool is_rated_ = false;
  Pace reading_, writing_;
  unsigned takes_descriptors_ = 0;  // A new number each time that it is switched on.

  bool is_started_ = false;
  bool is_connecting_ = false;
  bool in_connect_ = false;
  Function<bool(std::error_code) const> may_fail_;
  bool is_paused_ = false;
  bool is_half_open_ = false;
  bool is_ending_ = false;
  bool is_closing_ = false;
  bool saw_end_ = false;
  bool is_closed_ = false;  // on_closed() has been called.
  bool is_gone_ = false;
  bool is_passed_on_ = false;
  bool in_callback_ = false;
  bool in_data_ = false;
  bool is_acting_ = false;

  Limit idle_, read_, write_, deadline_;
  std::size_t last_queued_ = 0;
};

}  // namespace spate::chaos
