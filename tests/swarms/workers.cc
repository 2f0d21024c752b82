// Workers whose sessions are handed from one to another, and that drain and stop while clients are
// active, in Worlds with all kinds of faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spate/net/bytes.h"
#include "spate/net/server.h"
#include "spate/net/workers.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kTeamPort = 7005;
constexpr Nanos kTeamTrouble = 1min;

enum class TeamMistake : std::uint8_t { none, loses_what_it_hands_over };

// The Stream of a session that another worker handed over: continues the echo.
class HandedOver final : public StreamHandler {
 public:
  void begin(Loop& loop, int fd) {
    Result<Stream> stream = Stream::adopt(loop, fd);
    if (!stream) return close_descriptors(std::span(&fd, 1));
    stream_ = std::move(*stream);
    stream_.start(*this);
    stream_.set_idle_timeout(20s);
  }
  std::size_t on_data(Bytes bytes) override {
    stream_.write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override {}

 private:
  Stream stream_;
};

// The events of a team's sessions. Only one of a World's threads runs at a time, so there is no
// lock.
struct TeamBook {
  World& world;
  TeamMistake mistake = TeamMistake::none;
  Workers* workers = nullptr;
  int open = 0;
  int told_to_drain = 0;
  bool is_draining = false;
  bool has_stopped = true;
  std::list<HandedOver> handed_over{};  // They outlive their loops.
};

// Echoes, on its worker's thread; some are handed to another worker.
class Member : public Session {
 public:
  explicit Member(TeamBook& book) : book_(book), thread_(std::this_thread::get_id()) {
    ++book_.open;
  }
  ~Member() override {
    check();
    --book_.open;
  }
  void on_open() override {
    check();
    stream().set_idle_timeout(20s);
  }
  std::size_t on_data(Bytes bytes) override {
    check();
    const std::size_t count = bytes.size();
    stream().write(bytes);
    if (!book_.is_draining && book_.world.draw(4) == 0) hand_over();
    return count;
  }
  void on_drain() override {
    check();
    sim::always(book_.is_draining, "nobody is told to drain for no reason");
    sim::always(!std::exchange(was_drained_, true), "a session is told once to drain");
    ++book_.told_to_drain;
    if (book_.world.draw(2) == 0) stream().close();  // Otherwise it waits.
  }
  void on_closed(std::error_code error) override {
    check();
    sim::sometimes(error == Error::deadline, "a session is ended when the grace is over");
  }

 private:
  void check() {
    sim::always(std::this_thread::get_id() == thread_, "a session is of one thread");
    sim::always(!book_.has_stopped, "no session is there when its workers have stopped");
  }
  void hand_over();

  TeamBook& book_;
  const std::thread::id thread_;
  bool was_drained_ = false;
};

void Member::hand_over() {
  Workers& workers = *book_.workers;
  const Result<int> fd = stream().release();
  sim::sometimes(!fd, "what is not sent yet keeps its worker");
  if (!fd) return;
  sim::sometimes(true, "a connection is handed to another worker");
  abort();  // The session, which has no connection any more.
  if (book_.mistake == TeamMistake::loses_what_it_hands_over) return;
  const auto to = static_cast<unsigned>(book_.world.draw(workers.count()));
  const int given = *fd;
  HandedOver& heir = book_.handed_over.emplace_back();
  const bool is_posted =
      workers.post(to, [&workers, &heir, to, given] { heir.begin(workers.loop(to), given); });
  if (!is_posted) close_descriptors(std::span(&given, 1));
}

// The main program of a host: a team, which is replaced now and then.
class Employer {
 public:
  Employer(std::shared_ptr<TeamBook> book, Loop& loop)
      : kept_(std::move(book)),
        book_(*kept_),
        world_(book_.world),
        next_(loop, [this] { change(); }) {
    hire();
  }
  Employer(const Employer&) = delete;
  Employer& operator=(const Employer&) = delete;
  ~Employer() { dismiss(0s); }

 private:
  void hire() {
    constexpr std::array kBalances = {Balance::reuse_port, Balance::round_robin,
                                      Balance::least_connections, Balance::peer_hash};
    workers_ = must(Workers::create({.threads = 1 + static_cast<unsigned>(world_.draw(3))}));
    book_.workers = workers_.get();
    book_.is_draining = book_.has_stopped = false;
    const auto serving =
        serve<Member>(*workers_, Address::any_ipv6(kTeamPort),
                      {.balance = kBalances[world_.draw(kBalances.size())]}, std::ref(book_));
    sim::sometimes(serving.has_value(), "a team serves");
    next_.start(serving ? drawn_span(world_, 30s) : 1s);
  }
  void dismiss(Nanos grace) {
    book_.is_draining = true;
    book_.told_to_drain = 0;
    const int before = book_.open;
    const Nanos begin = world_.now();
    const bool all_closed = workers_->stop(grace);
    sim::always(world_.now() - begin <= grace + grace / 8 + 100ms, "stopping takes its grace");
    sim::always(workers_->stop(grace) == all_closed, "what stopping says does not change");
    sim::always(book_.open == 0, "no session is left");
    sim::sometimes(!all_closed && grace > 0s, "the grace was too short");
    sim::sometimes(all_closed && before > 0, "all have ended within the grace");
    book_.has_stopped = true;
    workers_.reset();
    book_.handed_over.clear();
  }
  void change() {
    if (world_.now() > kTeamTrouble + 10s) return;
    dismiss(world_.draw(4) == 0 ? 0s : drawn_span(world_, 5s));
    hire();
  }

  const std::shared_ptr<TeamBook> kept_;  // The last one is destroyed with the World.
  TeamBook& book_;
  World& world_;
  std::unique_ptr<Workers> workers_;
  Timer next_;
};

// Sends pieces on one connection, and expects the echo of each.
class Regular final : public StreamHandler {
 public:
  Regular(World& world, Loop& loop, const Address& server)
      : world_(world), loop_(loop), server_(server), next_(loop, [this] { go_on(); }) {
    next_.start(drawn_span(world, 2s));
  }
  bool is_done() const { return is_done_; }

  std::size_t on_data(Bytes bytes) override {
    const std::string_view text = text_of(bytes);
    sim::always(said_.compare(heard_, text.size(), text) == 0, "what is said comes back");
    heard_ += text.size();
    if (heard_ == said_.size()) next_.start(drawn_span(world_, 2s));
    return bytes.size();
  }
  void on_closed(std::error_code) override {
    const bool is_well = began_ > kTeamTrouble + 20s;
    sim::always(!is_well || pieces_ == kPieces, "all is said when all is well");
    is_done_ = is_well;
    stream_ = Stream();
    if (!is_done_) next_.start(1s + drawn_span(world_, 3s));
  }

 private:
  static constexpr int kPieces = 5;

  void go_on() {
    if (!stream_.is_open()) return begin();
    if (pieces_ == kPieces) return stream_.close();
    ++pieces_;
    const std::string piece(1 + world_.draw(2000), static_cast<char>('a' + pieces_));
    said_ += piece;
    stream_.write(piece);
  }
  void begin() {
    said_.clear();
    heard_ = 0;
    pieces_ = 0;
    began_ = world_.now();
    if (stream_.connect(loop_, server_, *this, {.timeout = 5s})) return next_.start(1s), void();
    stream_.set_idle_timeout(20s);
    go_on();
  }

  World& world_;
  Loop& loop_;
  const Address server_;
  std::string said_;
  std::size_t heard_ = 0;
  int pieces_ = 0;
  Nanos began_{0};
  bool is_done_ = false;
  Timer next_;
  Stream stream_;
};

void play_team(World& world, TeamMistake mistake) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  const auto book = std::make_shared<TeamBook>(world, mistake);
  server.boot([book](Loop& loop) { return std::make_unique<Employer>(book, loop); });
  draw_weather(world, server, client, kTeamTrouble);
  {
    std::list<std::unique_ptr<Regular>> clients;
    client.run([&](Loop& loop) {
      for (int i = 0; i < 3; ++i)
        clients.push_back(std::make_unique<Regular>(world, loop, server.address(kTeamPort)));
    });
    const auto are_done = [&] {
      return std::ranges::all_of(clients, [](const auto& each) { return each->is_done(); });
    };
    sim::always(world.run_until(are_done, 30min) == Outcome::done, "everybody is served");
  }
  world.run_for(10min);
  sim::always(book->open == 0, "no session is left in the end");
}

SPATE_SWARM(ATeamServesAndStops, 600, [](World& world) { play_team(world, TeamMistake::none); })

TEST(SimSwarmDefects, ConnectionLostBetweenWorkersIsDetected) {
  expect_found(20, "all is said when all is well",
               [](World& world) { play_team(world, TeamMistake::loses_what_it_hands_over); });
}

}  // namespace
}  // namespace spate::testing
