// Workers under random programs: whatever the user's code does on their loops and around them, each
// connection receives only its own bytes, no destroyed object is called, stop() returns, and
// nothing is left.
//
// SPATE_SEED=<number> repeats one program, SPATE_SEEDS=<number> runs that many.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "system/open_fds.h"
#include "tests/support/random.h"
#include "tests/support/seeds.h"
#include "threads/workers_harness.h"

namespace spate::testing {
namespace {

// ---- the bytes sent: the connection's number, four times, and then bytes derived from it

constexpr std::size_t kHeader = 4;

std::byte byte_of(std::uint32_t id, std::size_t at) {
  if (at < kHeader) return std::byte(id >> 8 * at);
  const std::uint64_t mixed = (id * 0x9e3779b97f4a7c15u) ^ (at * 0xbf58476d1ce4e5b9u);
  return std::byte(mixed >> 32);
}

// Follows the bytes of one connection.
class Follower {
 public:
  Follower() = default;
  explicit Follower(std::uint32_t id) : id_(id), knows_id_(true) {}

  bool follow(Bytes bytes) {
    for (const std::byte byte : bytes) {
      if (!knows_id_ && at_ < kHeader) {
        id_ |= std::to_integer<std::uint32_t>(byte) << 8 * at_;
      } else if (byte != byte_of(id_, at_)) {
        return false;
      }
      ++at_;
    }
    return true;
  }
  std::size_t at() const { return at_; }

 private:
  std::uint32_t id_ = 0;
  bool knows_id_ = false;
  std::size_t at_ = 0;
};

// ---- the server's side

// One in so many calls of a session does something unusual.
std::atomic<std::size_t> calm{1};
std::atomic<int> alive{0};
std::atomic<std::uint64_t> next_seed{1};

// Echoes, and now and then performs any allowed operation. It belongs to its thread.
class Session final : public StreamHandler {
 public:
  static void make(Stream stream) {
    own().push_back(std::make_unique<Session>(std::move(stream)));
    Session& session = *own().back();
    session.stream_.start(session);
  }
  explicit Session(Stream stream) : stream_(std::move(stream)) { ++alive; }
  ~Session() {
    is_alive_ = false;
    --alive;
  }

  std::size_t on_data(Bytes bytes) override {
    EXPECT_TRUE(is_alive_);
    Follower again = follower_;
    EXPECT_TRUE(follower_.follow(bytes));
    stream_.write(bytes);
    if (random().one_in(calm)) misbehave();  // May destroy *this.
    EXPECT_TRUE(again.follow(bytes));
    return bytes.size();
  }
  void on_end() override {
    EXPECT_TRUE(is_alive_);
    if (random().one_in(calm)) run_nested();
  }
  void on_closed(std::error_code) override {
    EXPECT_TRUE(is_alive_);
    forget(*this);
  }

  // The worker's random numbers. The scheduling of threads is random anyway, whatever the seed.
  static Random& random() {
    thread_local Random own(next_seed.fetch_add(1));
    return own;
  }
  static void run_nested() {
    static thread_local int depth = 0;
    if (depth >= 3 || current == nullptr) return;
    ++depth;
    current->run(Run::no_wait);
    --depth;
  }
  // Performs a random operation in a posted task or an accept callback.
  static void disturb(Loop& loop) {
    current = &loop;
    switch (random().below(7)) {
      case 0:
        return loop.stop();
      case 1:
        return loop.stop_all();
      case 2:
        return run_nested();
      case 3:
        if (!own().empty()) own().pop_front();
        return;
      case 4:
        return own().clear();
      case 5:
        for (const auto& session : own()) session->stream_.end();
        return;
      default:
        return;
    }
  }
  static void end_all(Loop& loop, bool some_stay) {
    current = &loop;
    for (const auto& session : own()) {
      if (!some_stay || random().one_in(2)) session->stream_.close();
    }
    if (random().one_in(3)) loop.stop();
    if (random().one_in(4)) run_nested();
  }

 private:
  static inline thread_local Loop* current = nullptr;

  static std::list<std::unique_ptr<Session>>& own() {
    thread_local std::list<std::unique_ptr<Session>> sessions;
    return sessions;
  }
  static void forget(Session& session) {
    own().remove_if([&](const auto& one) { return one.get() == &session; });
  }
  // Must be the last action: it may be destroyed.
  void misbehave() {
    current = &stream_.loop();
    switch (random().below(7)) {
      case 0:
        return forget(*this);
      case 5:
        stream_.abort();
        return forget(*this);
      case 6:
        return run_nested();
      case 1:
        return stream_.end();
      case 2:
        return stream_.close();
      case 3:
        if (own().front().get() != this) own().pop_front();
        return;
      default:
        return stream_.loop().stop();
    }
  }

  Stream stream_;
  Follower follower_;
  bool is_alive_ = true;
};

// ---- the clients: the main thread

class Caller final : public StreamHandler {
 public:
  Caller(Loop& loop, const Address& address, std::uint32_t id, std::size_t size)
      : id_(id), size_(size) {
    connecting_ = connect(loop, address, [this](Result<Stream> made) {
      if (!made) return static_cast<void>(is_done_ = was_refused_ = true);
      stream_ = std::move(*made);
      stream_.start(*this);
      write_some();
    });
  }
  std::size_t on_data(Bytes bytes) override {
    EXPECT_TRUE(echo_.follow(bytes));
    EXPECT_LE(echo_.at(), written_);
    if (echo_.at() == written_) write_some();
    if (echo_.at() == size_) stream_.end();
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_done_ = true; }

  bool is_done() const { return is_done_; }
  bool was_refused() const { return was_refused_; }

 private:
  void write_some() {
    std::vector<std::byte> piece(std::min<std::size_t>(size_ - written_, 1 + id_ * 37 % 3000));
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = byte_of(id_, written_ + i);
    written_ += piece.size();
    if (!piece.empty()) stream_.write(piece);
  }

  std::uint32_t id_;
  std::size_t size_;
  Connecting connecting_;
  Stream stream_;
  Follower echo_{id_};
  std::size_t written_ = 0;
  bool is_done_ = false;
  bool was_refused_ = false;
};

// ---- a program

class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed) {}

  void run() {
    calm = random_.one_in(3) ? 1'000'000 : 4 + random_.below(40);
    WorkersOptions options;
    options.threads = 1 + static_cast<unsigned>(random_.below(3));
    workers_ = *Workers::create(options);
    listen();
    for (std::size_t steps = 5 + random_.below(25); steps > 0; --steps) step();
    if (random_.one_in(2)) settle();
    end();
  }

 private:
  void step() {
    switch (random_.below(10)) {
      case 0:
        return listen();
      case 1:
        EXPECT_TRUE(workers_->post_to_all([](Loop& loop) { Session::disturb(loop); }));
        return;
      case 2: {
        const auto worker = static_cast<unsigned>(random_.below(workers_->count()));
        Loop& loop = workers_->loop(worker);
        EXPECT_EQ(workers_->index_of(loop), worker);
        EXPECT_TRUE(workers_->post(worker, [&loop] { Session::disturb(loop); }));
        return;
      }
      case 3:
        if (!callers_.empty()) callers_.pop_front();
        return;
      case 4:
      case 5:
        for (int i = 0; i < 20; ++i) loop_->run(Run::no_wait);
        return;
      default:
        return call();
    }
  }

  void listen() {
    const bool is_wild = random_.one_in(2);
    ListenOptions options;
    if (random_.one_in(2)) options.max_connections = 1 + random_.below(3);
    if (random_.one_in(2)) options.accepts_per_turn = 1;
    const auto accept = [is_wild](Stream stream, const Address&) {
      Loop& loop = stream.loop();
      if (is_wild && Session::random().one_in(8)) Session::disturb(loop);
      if (is_wild && Session::random().one_in(16)) return;
      Session::make(std::move(stream));
      if (is_wild && Session::random().one_in(8)) Session::disturb(loop);
    };
    const auto balance = static_cast<Balance>(random_.below(4));
    const auto address = workers_->listen(Address::loopback_ipv4(0), accept, balance, options);
    ASSERT_TRUE(address) << address.error().message();
    addresses_.push_back(*address);
  }

  void call() {
    const std::size_t size = kHeader + random_.below(random_.one_in(4) ? 100'000 : 2'000);
    callers_.emplace_back(*loop_, addresses_[random_.below(addresses_.size())], ++last_id_, size);
  }

  bool run_until(const std::function<bool()>& done) {
    bool late = false;
    Timer limit(*loop_, [&late] { late = true; });
    limit.start(60s);
    Timer look(*loop_, [] {});
    look.start(1ms, 1ms);
    while (!done() && !late) loop_->run(Run::once);
    EXPECT_TRUE(done());
    return !late;
  }

  // Every connection is served to the end, or closed by a session: none waits for ever.
  void settle() {
    run_until([this] { return std::ranges::all_of(callers_, &Caller::is_done); });
    for (const Caller& caller : callers_) EXPECT_FALSE(caller.was_refused());
    callers_.clear();
    run_until([this] {
      for (unsigned i = 0; i < workers_->count(); ++i) {
        if (workers_->connections(i) != 0) return false;
      }
      return true;
    });
  }

  void end() {
    std::atomic<bool> is_over{false};
    std::thread poster;
    if (random_.one_in(2)) {  // Another thread posts meanwhile.
      poster = std::thread([this, &is_over] {
        while (!is_over) {
          workers_->post(0, [] {});
          workers_->loop(0).wake();
          std::this_thread::yield();
        }
      });
    }
    if (!random_.one_in(5)) stop();
    is_over = true;
    if (poster.joinable()) poster.join();
    if (random_.one_in(2)) callers_.clear();
    workers_.reset();
    callers_.clear();
    EXPECT_EQ(alive, 0);
  }

  void stop() {
    const Nanos grace = random_.one_in(3) ? Nanos{0} : random_.one_in(2) ? Nanos{1ms} : Nanos{60s};
    const bool some_stay = grace < 60s && random_.one_in(2);
    const bool callers_go = random_.one_in(2);
    if (callers_go) callers_.clear();
    std::atomic<bool> has_stopped{false};
    bool drained = false;
    std::thread stopper([&] {
      drained = workers_->stop(grace, [&](Loop& loop) { Session::end_all(loop, some_stay); });
      has_stopped = true;
    });
    run_until([&] { return has_stopped.load(); });
    stopper.join();
    if (grace == 60s) EXPECT_TRUE(drained);
    EXPECT_EQ(alive, 0);
    for (unsigned i = 0; i < workers_->count(); ++i) EXPECT_EQ(workers_->connections(i), 0u);
    EXPECT_FALSE(workers_->post(0, [] { ADD_FAILURE(); }));
    EXPECT_FALSE(workers_->listen(Address::loopback_ipv4(0), kEcho));
    EXPECT_EQ(workers_->stop(60s), drained);
  }

  Random random_;
  std::unique_ptr<Loop> loop_ = *Loop::create();
  std::unique_ptr<Workers> workers_;
  std::vector<Address> addresses_;
  std::list<Caller> callers_;
  std::uint32_t last_id_ = 0;
};

TEST(WorkersChaos, LeavesNoDescriptors) {
  for (const std::uint64_t seed : seeds(150)) {
    SCOPED_TRACE("SPATE_SEED=" + std::to_string(seed));
    next_seed = seed << 8;
    const std::vector<int> fds = open_fds();
    Program(seed).run();
    EXPECT_EQ(open_fds(), fds);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace spate::testing
