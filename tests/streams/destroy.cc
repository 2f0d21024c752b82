// Everything may be destroyed anywhere: random scripts destroy streams, listeners, attempts,
// sockets and workers inside every callback. No destroyed object may be called.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/workers.h"
#include "streams/harness.h"
#include "support/random.h"
#include "support/sanitizers.h"
#include "support/seeds.h"
#include "sys/descriptor.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

class World;

// An object that a script makes. A sanitizer reports any use of a deleted one; without it deleted
// objects are kept, and fail the test when they are called.
class Thing {
 public:
  explicit Thing(World& world) : world_(world) {}
  virtual ~Thing() = default;
  Thing(const Thing&) = delete;
  Thing& operator=(const Thing&) = delete;

  // Releases everything that the library might call back.
  virtual void let_go() = 0;
  virtual void act(Random& random) = 0;
  void die() { is_dead_ = true; }

 protected:
  // Call these first and last in every callback. After the second, *this may be destroyed.
  void expect_alive() const { ASSERT_FALSE(is_dead_) << "the dead are called"; }
  void go_on();

  World& world_;

 private:
  bool is_dead_ = false;
};

class World {
 public:
  World(Loop& loop, std::uint64_t seed) : loop_(loop), random_(seed) {}
  ~World() {
    while (!things_.empty()) destroy(0);
  }

  Loop& loop() { return loop_; }
  Random& random() { return random_; }
  std::size_t callbacks() const { return callbacks_; }
  Address target;  // The destination of the next packet.

  void add(std::unique_ptr<Thing> thing) { things_.push_back(std::move(thing)); }
  void make_some();
  void turn(int times) { run_turns(loop_, times); }

  // Performs a few random operations, anywhere.
  void go_on() {
    ++callbacks_;
    for (std::size_t i = random_.below(3); i > 0; --i) step();
  }
  void step() {
    if (things_.empty()) return;
    const std::size_t which = random_.below(things_.size());
    if (random_.one_in(3)) return destroy(which);
    things_[which]->act(random_);
  }

 private:
  void destroy(std::size_t which) {
    std::unique_ptr<Thing> thing = std::move(things_[which]);
    things_.erase(things_.begin() + static_cast<std::ptrdiff_t>(which));
    if (kIsSanitized) return;
    thing->let_go();
    thing->die();
    graveyard_.push_back(std::move(thing));
  }

  Loop& loop_;
  Random random_;
  std::vector<std::unique_ptr<Thing>> things_;
  std::vector<std::unique_ptr<Thing>> graveyard_;
  std::size_t callbacks_ = 0;
};

void Thing::go_on() {
  World& world = world_;
  world.go_on();
}

class StreamThing final : public Thing, public StreamHandler {
 public:
  StreamThing(World& world, Stream stream) : Thing(world), stream_(std::move(stream)) {
    stream_.start(*this);
  }
  void let_go() override { const Stream gone = std::move(stream_); }

  std::size_t on_data(Bytes bytes) override {
    expect_alive();
    const std::size_t used = world_.random().below(bytes.size() + 1);
    if (world_.random().one_in(2)) stream_.write(bytes.first(std::min<std::size_t>(used, 3000)));
    go_on();
    return used;
  }
  void on_end() override {
    expect_alive();
    go_on();
  }
  void on_drained() override {
    expect_alive();
    go_on();
  }
  void on_closed(std::error_code) override {
    expect_alive();
    ASSERT_FALSE(std::exchange(is_closed_, true));
    go_on();
  }

  void act(Random& random) override {
    static const std::string bytes(200'000, 'x');
    switch (random.below(17)) {
      case 0:
        return stream_.end();
      case 1:
        return stream_.close();
      case 2:
        return stream_.abort();
      case 3:
        return stream_.pause();
      case 4:
        return stream_.resume();
      case 5:
        return stream_.set_half_open(random.one_in(2));
      case 6:
        stream_.set_idle_timeout(Nanos{random.span(2'000'000)});
        return;
      case 7:
        stream_.set_write_timeout(Nanos{random.span(2'000'000)});
        return;
      case 8:
        stream_.set_limits({.low = 10, .high = 100'000, .max = 300'000});
        return;
      case 9:
        stream_.set_read_timeout(Nanos{random.span(2'000'000)});
        return;
      case 10:
        stream_.set_deadline(Nanos{random.span(5'000'000)});
        return;
      case 11:
        stream_.set_rate_limits(random.one_in(3) ? RateLimits{} : some_rates(random));
        return;
      case 12:
        send_some_file(random);
        return;
      default:
        stream_.write(
            std::string_view(bytes).substr(0, random.below(random.one_in(4) ? 200'000 : 99)));
    }
  }

 private:
  static RateLimits some_rates(Random& random) {
    return {
        .read = {.bytes_per_second = random.below(100'000'000), .burst = random.below(10'000)},
        .write = {.bytes_per_second = random.below(100'000'000), .burst = random.below(10'000)}};
  }
  // Sometimes longer than the file.
  void send_some_file(Random& random) {
    sys::Descriptor file(::memfd_create("some", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), 100'000), 0);
    const std::uint64_t size = random.below(random.one_in(10) ? 200'000 : 100'000);
    if (!stream_.send_file(file.get(), 0, size)) file.release();
  }

  Stream stream_;
  bool is_closed_ = false;
};

class AttemptThing final : public Thing {
 public:
  AttemptThing(World& owner, std::vector<Address> addresses) : Thing(owner) {
    connecting_ = connect(
        owner.loop(), std::move(addresses),
        [this](Result<Stream> made) {
          expect_alive();
          World& world = world_;
          if (made && world.random().one_in(4)) go_on();  // *this may be destroyed.
          if (made) world.add(std::make_unique<StreamThing>(world, std::move(*made)));
          world.go_on();
        },
        {.timeout = Nanos{owner.random().span(20'000'000)}, .attempt_delay = Nanos{100'000}});
  }
  void let_go() override { connecting_.cancel(); }
  void act(Random& random) override {
    if (random.one_in(4)) connecting_.cancel();
  }

 private:
  Connecting connecting_;
};

class ListenerThing final : public Thing {
 public:
  ListenerThing(World& owner, const Address& address) : Thing(owner) {
    Result<Listener> made =
        Listener::create(owner.loop(), address,
                         [this](Stream stream, const Address&) {
                           expect_alive();
                           World& world = world_;
                           if (world.random().one_in(5)) return;  // Destroys the accepted stream.
                           world.add(std::make_unique<StreamThing>(world, std::move(stream)));
                           world.go_on();
                         },
                         {.accepts_per_turn = 3, .max_connections = 5});
    EXPECT_TRUE(made);
    if (made) listener_ = std::move(*made);
  }
  void let_go() override { const Listener gone = std::move(listener_); }
  void act(Random& random) override {
    if (random.one_in(4)) return listener_.pause();
    if (random.one_in(3)) return listener_.resume();
    std::vector<Address> addresses(1 + random.below(2), listener_.address());
    if (random.one_in(3)) addresses.insert(addresses.begin(), Address());
    world_.add(std::make_unique<AttemptThing>(world_, std::move(addresses)));
  }

 private:
  Listener listener_;
};

class DatagramThing final : public Thing, public DatagramHandler {
 public:
  DatagramThing(World& world, Datagram socket) : Thing(world), socket_(std::move(socket)) {
    socket_.start(*this);
  }
  void let_go() override { const Datagram gone = std::move(socket_); }
  void on_packets(std::span<const Packet> packets) override {
    expect_alive();
    if (world_.random().one_in(2)) socket_.send(packets.front().bytes, packets.front().peer);
    go_on();
  }
  void on_error(std::error_code) override {
    expect_alive();
    go_on();
  }
  void on_writable() override {
    expect_alive();
    go_on();
  }
  void act(Random& random) override {
    if (random.one_in(5)) return socket_.pause();
    if (random.one_in(3)) return socket_.resume();
    if (random.one_in(5) || !world_.target.is_ip()) world_.target = socket_.local_address();
    for (int i = 0; i < 3; ++i) socket_.send(bytes_of("packet"), world_.target);
  }

 private:
  Datagram socket_;
};

// Its own loops echo; destroying it ends their threads.
class WorkersThing final : public Thing {
 public:
  explicit WorkersThing(World& world) : Thing(world) {
    Result<std::unique_ptr<Workers>> made = Workers::create({.threads = 1});
    EXPECT_TRUE(made);
    if (!made) return;
    workers_ = std::move(*made);
    const auto address =
        workers_->listen(Address::loopback_ipv4(0),
                         [](Stream stream, const Address&) { new Guest(std::move(stream)); });
    EXPECT_TRUE(address);
    if (address) address_ = *address;
  }
  ~WorkersThing() override { let_go(); }
  // Objects on a worker's loop are destroyed there.
  void let_go() override {
    if (workers_ == nullptr) return;
    workers_->stop(Nanos{1'000'000'000}, [](Loop&) { Guest::dismiss_all(); });
    workers_.reset();
  }
  void act(Random&) override {
    world_.add(std::make_unique<AttemptThing>(world_, std::vector<Address>{address_}));
  }

 private:
  class Guest final : public StreamHandler {
   public:
    explicit Guest(Stream stream) : stream_(std::move(stream)) {
      all().push_back(this);
      stream_.start(*this);
    }
    static void dismiss_all() {
      for (Guest* guest : std::exchange(all(), {})) guest->stream_.abort(), delete guest;
    }
    std::size_t on_data(Bytes bytes) override {
      stream_.write(bytes.first(std::min<std::size_t>(bytes.size(), 100)));
      return bytes.size();
    }
    void on_closed(std::error_code) override {
      std::erase(all(), this);
      delete this;
    }

   private:
    static std::vector<Guest*>& all() {
      static thread_local std::vector<Guest*> guests;
      return guests;
    }
    Stream stream_;
  };

  std::unique_ptr<Workers> workers_;
  Address address_;
};

void World::make_some() {
  for (const Kind kind : {Kind::memory, Kind::local, Kind::tcp}) {
    if (kind == Kind::tcp && !random_.one_in(3)) continue;
    auto pair = make_pair(loop_, kind);
    ASSERT_TRUE(pair);
    add(std::make_unique<StreamThing>(*this, std::move(pair->first)));
    add(std::make_unique<StreamThing>(*this, std::move(pair->second)));
  }
  if (random_.one_in(2)) add(std::make_unique<ListenerThing>(*this, Address::loopback_ipv4(0)));
  if (random_.one_in(2))
    add(std::make_unique<ListenerThing>(
        *this, *Address::abstract("spate destroy " + std::to_string(random_.next()))));
  for (int i = 0; i < 2; ++i) {
    Result<Datagram> socket = Datagram::create(loop_, Address::loopback_ipv4(0));
    ASSERT_TRUE(socket);
    add(std::make_unique<DatagramThing>(*this, std::move(*socket)));
  }
  if (random_.one_in(50)) add(std::make_unique<WorkersThing>(*this));
}

// Returns how many callbacks there were.
std::size_t play(std::uint64_t seed) {
  std::unique_ptr<Loop> loop = *Loop::create();
  auto world = std::make_unique<World>(*loop, seed);
  Random& random = world->random();
  world->make_some();
  for (int i = 0; i < 25; ++i) {
    for (std::size_t steps = random.below(4); steps > 0; --steps) world->step();
    world->turn(1 + random.between(0, 2));
  }
  const std::size_t callbacks = world->callbacks();
  const bool loop_goes_first = random.one_in(3);
  if (loop_goes_first) loop.reset();
  world.reset();
  if (loop != nullptr) run_turns(*loop, 2);
  return callbacks;
}

TEST(RandomDestruction, ArbitraryDestructionCausesNoCallsToDestroyedObjects) {
  const std::vector<int> before = open_fds();
  std::size_t callbacks = 0;
  const std::vector<std::uint64_t> all = seeds(3000);
  for (const std::uint64_t seed : all) {
    SCOPED_TRACE(::testing::Message() << "SPATE_SEED=" << seed);
    callbacks += play(seed);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(callbacks, all.size() * 3) << "the scripts do too little";
  EXPECT_EQ(open_fds(), before);
}

}  // namespace
}  // namespace spate::testing
