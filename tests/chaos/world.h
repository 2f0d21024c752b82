// World: one loop with everything that a program plays with, a clock that the program moves, and
// the account of what is owed.
#pragma once

#include <cstdarg>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fault.h"
#include "chaos/channel.h"
#include "chaos/chores.h"
#include "chaos/couriers.h"
#include "chaos/coverage.h"
#include "chaos/doors.h"
#include "chaos/end.h"
#include "chaos/guests.h"
#include "chaos/handshakes.h"
#include "chaos/packets.h"
#include "chaos/program.h"
#include "chaos/raw.h"
#include "spate/loop.h"
#include "spate/net/rate_limit.h"
#include "spate/timer.h"
#include "support/scripted.h"

namespace spate::chaos {

// A callback that is running, or none.
struct Visit {
  Where where = Where::outside;
  End* end = nullptr;  // Whose.
  Bytes arrived{};     // on_data()'s.
  std::size_t arrived_at = 0;
};

// Whether it may run the loop.
enum class Running : std::uint8_t { yes, no };

// What is given to the library to keep holds one of the world's: it is that number as long as it is
// there, and all are back in the end.
using Token = std::shared_ptr<const int>;
inline constexpr int kToken = 4711;

// What a world is given from outside.
struct Surroundings {
  std::string_view backend;
  Coverage* coverage = nullptr;
  bool is_told = false;  // Every step and call is printed.
};

// Opens what all programs share, so that it counts as nobody's leak.
void prepare_links();
void prepare_files();

class World {
 public:
  // Of a connection that came about by connect().
  enum class Side : std::uint8_t { calling, called };

  explicit World(const Surroundings& surroundings);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void run(const Program& program);

  // ---- for its parties

  Loop& loop() { return *loop_; }
  bool has_loop() const { return loop_ != nullptr; }
  Nanos now() const { return loop_->now(); }
  // The clock's own, which the loop may not have seen yet.
  Nanos time() { return clock_.monotonic(); }
  bool is_friendly() const { return is_friendly_; }
  bool is_fair() const { return weather_ == Weather::fair; }
  // Calls fail: everything may end, for no fault of the parties.
  bool is_stormy() const { return weather_ == Weather::stormy; }
  // Inside a callback: does what has been laid out for it.
  void visit(const Visit& visit, Running running = Running::yes);
  // Something has happened that a program could notice.
  void moved() { has_moved_ = true; }
  RateGroup* group(std::size_t number);
  End* other_end(std::size_t number, const End* than);
  // Another one each time.
  unsigned next_number() { return ++last_number_; }
  // The descriptor of an End goes on as a new End, or as a Raw.
  void hand_on(End& end, int fd, bool as_raw);
  // Whether there may be more connections.
  bool has_room() const { return channels_.size() < kMaxChannels; }
  End& add_end(Kind kind, Stream stream);
  End& add_end(Kind kind, std::unique_ptr<Stream> stream);
  Raw& add_raw(Kind kind, int fd);
  // The party is one side of the connection that set out from `port`.
  void meet(std::uint16_t port, Side side, Party& party);
  bool has_met(const Party& party) const { return &party != &ghost_; }
  // Who connects and has no port yet writes to nobody.
  void await(Party& party);
  // One that has been let go before it was connected: what it has written may still come.
  void lose_caller(End& end) { lost_callers_.push_back(&end); }
  // The first bytes from somebody who has not shown himself may be of such a one.
  void identify(Party& party, Bytes bytes);
  Channel* make_channel(Kind kind);
  Token token() const { return token_; }
  Guests& guests() { return guests_; }
  // A server's: its End, and the account of who came in.
  End& admit_guest(Guest& guest, Doors::Door& door) { return doors_.admit_guest(guest, door); }
  bool serve(Host& host, const Step& step) { return doors_.serve(host, step); }
  void note_closing(Doors::Door& door) { doors_.note_closing(door); }
  void note_gone(Doors::Door& door) { doors_.note_gone(door); }
  void connect_stream(End* before, const Step& step) { doors_.connect_stream(before, step); }
  void relay(End& end, const Step& step) { couriers_.relay(end, step); }
  void secure(End& end, const Step& step) { handshakes_.begin(end, step); }
  void tell(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void count(Op op, int kind, Where where) {
    if (around_.coverage != nullptr) around_.coverage->note(op, kind, where);
  }
  void count(Event event) {
    if (around_.coverage != nullptr) around_.coverage->note(event);
  }

 private:
  static constexpr std::size_t kMaxChannels = 28;
  static constexpr unsigned kPublished = 0;  // The pattern; those of channels begin with 1.

  // The other side, as long as it has not shown itself, or if it never does.
  struct Ghost final : Party {
    explicit Ghost(World& its_world) : Party(its_world, 0, Kind::tcp, true) {
      may_show_end = may_show_cut = may_show_error = true;
    }
  };
  struct Half {
    Side side;
    Party* party;
  };
  struct Ticker {
    Ticker(Loop& loop, Delegate<Timer> callback) : timer(loop, callback) {}
    Timer timer;
    Nanos due{0};
  };

  void do_step(const Step& step);
  std::vector<Step>::iterator laid_out_for(Where where);
  void act(const Step& step, const Visit& visit);
  void act_on_world(const Step& step, const Visit& visit);
  void act_on_raw(const Step& step, const Visit& visit);
  void make_link(const Step& step);
  bool open_link(Kind kind, const Step& step);
  void add_pair(Kind kind, Stream first, Stream second, const Step& step);
  void add_fds(Kind kind, int first, int second, const Step& step);
  void join_parties(Party& first, Party& second);
  void join_halves(Party& party, Party& other);
  void turn();
  void after_turn();
  void run_nested(const Step& step);
  void run_until_told(Nanos span);
  void run_for(const Step& step);
  void post();
  void on_post(std::uint64_t number);
  void use_timer(const Step& step);
  void on_timer(Timer& timer);
  void use_group(const Step& step);
  void publish(const Step& step);
  void install_weather(const Program& program);

  void finish();
  bool settle(Nanos patience);
  void settle_all(Nanos patience, const char* what);
  void make_friendly_again();
  std::size_t total_queued() const;
  bool is_slow(Kind kind) const;
  bool has_connecting() const;
  bool has_bytes_on_the_way() const;
  int max_naps(Nanos wait) const;
  bool has_tcp_untold() const;
  void part();
  void check_empty();
  void check_tokens();
  void lose_loop();

  Surroundings around_;
  testing::ScriptedClock clock_;
  std::unique_ptr<Loop> loop_;
  Weather weather_ = Weather::fair;
  std::unique_ptr<FaultPlan> plan_;
  std::optional<FaultScope> faults_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<std::unique_ptr<Raw>> raws_;
  Ghost ghost_{*this};
  std::map<std::uint16_t, Half> halves_;
  std::vector<End*> lost_callers_;
  Token token_ = std::make_shared<const int>(kToken);
  Doors doors_{*this};
  Packets packets_{*this};
  Guests guests_{*this};
  Couriers couriers_{*this};
  Handshakes handshakes_{*this};
  Chores chores_{*this};
  std::vector<std::unique_ptr<Ticker>> tickers_;
  std::vector<std::unique_ptr<RateGroup>> groups_;
  std::vector<Step> laid_out_;
  unsigned last_number_ = 0;
  std::vector<std::byte> message_ = std::vector<std::byte>(8 * 1024);
  std::size_t published_ = 0;
  int visits_ = 0;  // Nested.
  int runs_ = 0;    // Nested, of run() inside callbacks.
  int holds_ = 0;   // Callbacks in which it may not be.
  bool has_moved_ = false;
  bool has_stopped_ = false;  // Since this step began.
  bool is_friendly_ = false;
  bool is_parting_ = false;
  std::uint64_t posts_made_ = 0;
  std::uint64_t posts_called_ = 0;
};

}  // namespace spate::chaos
