// World: one loop with all objects of a program, a clock that the program moves, and the model's
// obligations.
#pragma once

#include <cstdarg>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
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
#include "chaos/neighbour.h"
#include "chaos/packets.h"
#include "chaos/program.h"
#include "chaos/raw.h"
#include "spate/loop.h"
#include "spate/net/rate_limit.h"
#include "spate/timer.h"
#include "support/scripted.h"

namespace spate::chaos {

// The callback that is running, or none.
struct Visit {
  Where where = Where::outside;
  End* end = nullptr;  // The End that was called.
  Bytes arrived{};     // The bytes of on_data().
  std::size_t arrived_at = 0;
};

// Whether the callback may run the loop.
enum class Running : std::uint8_t { yes, no };

// Every callable given to the library holds a token, so that its lifetime can be checked: it must
// have this value when called, and all must be released in the end. The program acts in its
// destructor.
class Token {
 public:
  Token(World& world, std::shared_ptr<const int> number)
      : world_(&world), number_(std::move(number)) {}
  Token(const Token&) = default;
  Token(Token&&) noexcept = default;
  Token& operator=(const Token&) = delete;
  ~Token();
  int operator*() const { return *number_; }

 private:
  World* world_;
  std::shared_ptr<const int> number_;  // Null if it was moved away.
};
inline constexpr int kToken = 4711;

// A loop and its clock. Several worlds may use one, one after the other.
struct Ground {
  explicit Ground(std::string_view backend);
  // Uses each bucket of the timer wheel once. An emptied bucket keeps its capacity, and as time
  // passes, programs reach ever more buckets: a bounded cache, which would look like a leak.
  void use_all_buckets();

  testing::ScriptedClock clock;
  std::unique_ptr<Loop> loop;
};

// The parameters of a world.
struct Surroundings {
  std::string_view backend;
  Ground* ground = nullptr;  // Null: the world makes its own.
  Coverage* coverage = nullptr;
  bool is_told = false;  // Prints every step and call.
};

// Opens the files that all programs share, so that they do not count as a leak.
void prepare_links();
void prepare_files();

class World {
 public:
  // The side of a connection made by connect().
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
  // Returns the clock's time, which the loop may not have read yet.
  Nanos time() { return clock_.monotonic(); }
  Clock& clock() { return clock_; }
  bool is_friendly() const { return is_friendly_; }
  bool is_fair() const { return weather_ == Weather::fair; }
  // Calls fail: everything may end, without a fault of the parties.
  bool is_stormy() const { return weather_ == Weather::stormy; }
  // Inside a callback: performs the steps planned for it.
  void visit(const Visit& visit, Running running = Running::yes);
  // Records progress that a program could notice.
  void moved() { has_moved_ = true; }
  RateGroup* group(std::size_t number);
  // Returns an End that no act is being done to, or nullptr.
  End* other_end(std::size_t number, const End* than);
  // Another one each time.
  unsigned next_number() { return ++last_number_; }
  // Continues with the descriptor of an End, as a new End or as a Raw.
  void hand_on(End& end, int fd, bool as_raw);
  // Returns whether there may be more connections.
  bool has_room() const { return channels_.size() < kMaxChannels; }
  End& add_end(Kind kind, Stream stream);
  End& add_end(Kind kind, std::unique_ptr<Stream> stream);
  Raw& add_raw(Kind kind, int fd);
  // `party` is one side of the connection from the caller's port `port`.
  void meet(std::uint16_t port, Side side, Party& party);
  bool has_met(const Party& party) const { return &party != &ghost_; }
  // A connecting party without a port has no peer yet.
  void await(Party& party);
  // An End that was dropped before it was connected: its bytes may still arrive.
  void lose_caller(End& end) { lost_callers_.push_back(&end); }
  // The first bytes from an unknown party may be of such an End.
  void identify(Party& party, Bytes bytes);
  Channel* make_channel(Kind kind);
  Token token() { return {*this, number_}; }
  // One for another thread, which does not act.
  std::shared_ptr<const int> quiet_token() const { return number_; }
  // A function or a session is being destroyed.
  void on_dropped();
  bool is_dropping() const { return is_dropping_; }
  Guests& guests() { return guests_; }
  // A server's: makes its End, and records the connection.
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
  static constexpr unsigned kPublished = 0;  // The pattern number; those of channels begin with 1.

  // Stands for the other side until that is known, or for good.
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
  void act_on_end(const Step& step, const Visit& visit);
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
  void advance(const Step& step);
  void post();
  void on_post(std::uint64_t number);
  void use_timer(const Step& step);
  void on_timer(Timer& timer);
  void use_group(const Step& step);
  void publish(const Step& step);
  void fork(const Step& step);
  void live_as_child(const Step& step);
  void install_weather(const Program& program);

  void finish();
  bool settle(Nanos patience);
  void settle_all(Nanos patience, const char* what);
  void make_friendly_again();
  std::size_t total_queued() const;
  bool is_slow(Kind kind) const;
  bool has_connecting() const;
  bool has_offloaded() const;
  bool has_bytes_on_the_way() const;
  int max_naps(Nanos wait) const;
  bool has_tcp_untold() const;
  void part();
  void check_empty();
  void check_tokens();
  void lose_loop();
  void close_handles();

  Surroundings around_;
  std::unique_ptr<Ground> own_ground_;
  testing::ScriptedClock& clock_;
  std::unique_ptr<Loop>& loop_;
  Weather weather_ = Weather::fair;
  std::unique_ptr<FaultPlan> plan_;
  std::optional<FaultScope> faults_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<std::unique_ptr<Raw>> raws_;
  Ghost ghost_{*this};
  std::map<std::uint16_t, Half> halves_;
  std::vector<End*> lost_callers_;
  std::shared_ptr<const int> number_ = std::make_shared<const int>(kToken);
  Doors doors_{*this};
  Packets packets_{*this};
  Guests guests_{*this};
  Couriers couriers_{*this};
  Handshakes handshakes_{*this};
  Chores chores_{*this};
  Neighbour neighbour_;
  std::vector<std::unique_ptr<Ticker>> tickers_;
  std::vector<std::unique_ptr<RateGroup>> groups_;
  std::vector<Step> laid_out_;
  unsigned last_number_ = 0;
  std::vector<std::byte> message_ = std::vector<std::byte>(8 * 1024);
  std::size_t published_ = 0;
  int visits_ = 0;  // Nested.
  int acts_ = 0;    // Nested, since the innermost run() began.
  int runs_ = 0;    // Depth of run() inside callbacks.
  int holds_ = 0;   // Callbacks in which run() is not allowed.
  Op acting_ = Op::turn;      // The innermost act.
  bool is_dropping_ = false;  // In on_dropped().
  bool has_moved_ = false;
  bool has_stopped_ = false;  // Since this step began.
  bool is_friendly_ = false;
  bool is_parting_ = false;
  std::uint64_t posts_made_ = 0;
  std::uint64_t posts_called_ = 0;
};

}  // namespace spate::chaos
