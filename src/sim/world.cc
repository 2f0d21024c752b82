#include "spate/sim/world.h"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "sim/signals.h"
#include "sim/socket.h"
#include "sim/world_state.h"
#include "spate/assert.h"

namespace spate::sim {

namespace {

class Hurry {
 public:
  explicit Hurry(Kernel& kernel) : kernel_(kernel), before_(std::exchange(kernel.hurries, true)) {}
  ~Hurry() { kernel_.hurries = before_; }
  Hurry(const Hurry&) = delete;
  Hurry& operator=(const Hurry&) = delete;

 private:
  Kernel& kernel_;
  const bool before_;
};

Address address_at(int family, const Place& place) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  place.to_system(family, reinterpret_cast<sockaddr*>(&storage), &size);
  return must(Address::from_system(&storage, size));
}

}  // namespace

// Sockets are closed into the network, while the library's calls still come here.
WorldState::~WorldState() {
  tasks_.clear();
  const Hurry hurry(kernel_);
  kernel_.processes.clear();
  kernel_.pools.clear();
  hosts_.clear();
  kernel_.close_all();
}

// ---- how it goes on

bool WorldState::turn(Host& host, Nanos& next) {
  if (!host.is_up() || host.is_paused_) return false;
  Loop& loop = host.loop();
  if (loop.depth() > 0) return false;  // It is in a run() of its program's.
  const Host::Turn running(host);
  const Nanos wait = loop.prepare_to_wait();
  if (wait > Nanos{0} && kernel_.find(host.set_)->ready() == 0) {
    next = std::min(next, deadline_after(kernel_.now(), wait));
    return false;
  }
  loop.run(Run::no_wait);
  return true;
}

// Those of a host that is down or paused only if somebody waits for them.
bool WorldState::may_run(const Thread& thread) const {
  if (kernel_.is_waited_for(thread)) return true;
  if (thread.has_crashed()) return false;
  if (thread.host() == Kernel::kNoHost) return true;
  return !hosts_[static_cast<std::size_t>(thread.host())]->is_paused_;
}

bool WorldState::turn(Thread& thread, Nanos& next) {
  if (thread.has_ended() || !may_run(thread)) return false;
  if (thread.is_due()) return thread.go_on(), true;
  next = std::min(next, thread.limit());
  return false;
}

// In another order each time.
bool WorldState::turn_all(Nanos& next) {
  std::vector<Host*> hosts;
  for (const std::unique_ptr<Host>& host : hosts_) hosts.push_back(host.get());
  std::vector<std::uint64_t> threads;
  for (const auto& [number, thread] : kernel_.threads()) threads.push_back(number);
  std::vector<std::size_t> order(hosts.size() + threads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::uint64_t drawn = kernel_.draw(Purpose::order, ++rounds_);
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[mix(drawn ^ left) % left]);
  bool any = false;
  for (const std::size_t one : order) {
    if (one < hosts.size()) {
      any |= turn(*hosts[one], next);
    } else if (const auto found = kernel_.threads().find(threads[one - hosts.size()]);
               found != kernel_.threads().end()) {
      any |= turn(*found->second, next);
    }
  }
  return any;
}

bool WorldState::step_threads() {
  std::vector<std::uint64_t> threads;
  for (const auto& [number, thread] : kernel_.threads()) threads.push_back(number);
  bool any = false;
  for (const std::uint64_t number : threads) {
    const auto found = kernel_.threads().find(number);
    Nanos next = kForever;
    if (found != kernel_.threads().end()) any |= turn(*found->second, next);
  }
  return any;
}

bool WorldState::run_tasks() {
  bool any = false;
  for (; next_task() <= kernel_.now(); any = true) {
    auto first = tasks_.extract(tasks_.begin());
    first.mapped()();
  }
  return any;
}

Step WorldState::step(Nanos limit) {
  if (++steps_here_ > kMostSteps) return Step::spinning;
  const bool has_told = run_tasks();
  const bool has_happened = kernel_.happen();
  Nanos next = kForever;
  if (turn_all(next) || has_told || has_happened) return Step::went_on;
  return move(std::min({next, kernel_.next(), next_task()}), limit);
}

Step WorldState::move(Nanos next, Nanos limit) {
  const Nanos before = kernel_.now();
  if (next <= limit || limit < kForever) kernel_.move_to(std::min(next, limit));
  if (kernel_.now() != before) steps_here_ = 0;
  if (next >= kForever) return Step::stuck;
  return next <= limit ? Step::went_on : Step::idle;
}

Outcome WorldState::run(const std::function<bool()>& condition, Nanos span) {
  SPATE_ASSERT(Thread::current() == nullptr, "a thread of a World's does not run the World");
  const Nanos limit = deadline_after(kernel_.now(), span);
  steps_here_ = 0;
  for (;;) {
    if (condition && condition()) return Outcome::done;
    switch (step(limit)) {
      case Step::went_on:
        break;
      case Step::idle:
        return Outcome::limit;
      case Step::stuck:
        return Outcome::stuck;
      case Step::spinning:
        return Outcome::spinning;
    }
  }
}

Loop* WorldState::loop_of(int host) {
  if (host < 0) return nullptr;
  return hosts_[static_cast<std::size_t>(host)]->loop_.get();
}

// ---- hosts

Host::Host(WorldState& world, int index, std::string_view name)
    : world_(world), index_(index), name_(name) {
  make_loop();
}

void Host::make_loop() {
  const Turn making(*this);
  loop_ = must(Loop::create());
  set_ = must(loop_->poll_fd());
}

Address Host::address(std::uint16_t port) const {
  return address_at(AF_INET, {Ip::v4_of(index_), port});
}

Address Host::address_ipv6(std::uint16_t port) const {
  return address_at(AF_INET6, {Ip::v6_of(index_), port});
}

void Host::start_program() {
  if (program_) kept_ = run(program_);
}

void Host::crash() {
  SPATE_ASSERT(is_up() && loop_->depth() == 0 && world_.kernel().host != index_);
  world_.kernel().crash(index_, [](Socket& socket) { socket.vanish(); });
  world_.network().crash(index_);
  {
    const Turn ending(*this);
    const Hurry hurry(world_.kernel());
    kept_.reset();
    world_.kernel().processes.crash(index_);
    world_.kernel().pools.erase(index_);
  }
  is_paused_ = false;
  dead_loops_.push_back(std::move(loop_));
}

void Host::restart() {
  SPATE_ASSERT(!is_up());
  world_.kernel().lift_limit(index_);
  make_loop();
  world_.network().restart(index_);
  start_program();
}

void Host::pause() {
  SPATE_ASSERT(is_up() && loop_->depth() == 0);
  is_paused_ = true;
}

void Host::limit_descriptors(std::size_t most, Shortage shortage) {
  world_.kernel().limit(index_, most, shortage == Shortage::process ? EMFILE : ENFILE);
}

std::size_t Host::open_descriptors() const { return world_.kernel().open_count(index_); }

void Host::delay_work(Nanos most) {
  SPATE_ASSERT(most >= Nanos{0});
  world_.kernel().delay_threads(index_, most);
}

bool Host::raise(int signum) {
  SPATE_ASSERT(signum > 0 && signum <= 64);
  return raise_signal(world_.kernel(), index_, signum);
}

void Host::add_program(std::string_view name, ProgramBody body) {
  world_.kernel().processes.add_program(index_, std::string(name), std::move(body));
}

Host::Turn::Turn(Host& host)
    : world_(host.world_), before_(std::exchange(world_.kernel().host, host.index_)) {}

Host::Turn::~Turn() { world_.kernel().host = before_; }

// ---- the World

World::World(std::uint64_t seed) : state_(std::make_unique<WorldState>(seed)) {}
World::~World() = default;

Host& World::add_host(std::string_view name) {
  SPATE_ASSERT(state_->hosts_.size() < kMostHosts);
  const int index = static_cast<int>(state_->hosts_.size());
  state_->network_.hosts = index + 1;
  return *state_->hosts_.emplace_back(new Host(*state_, index, name));
}

void World::link(const Host& one, const Host& other, const LinkOptions& options) {
  link_one_way(one, other, options);
  link_one_way(other, one, options);
}

void World::link_one_way(const Host& from, const Host& to, const LinkOptions& options) {
  state_->network_.set_link(from.index_, to.index_, options);
}

void World::cut(const Host& one, const Host& other) {
  cut_one_way(one, other);
  cut_one_way(other, one);
}

void World::cut_one_way(const Host& from, const Host& to) {
  state_->network_.cut(from.index_, to.index_);
}

void World::heal(const Host& one, const Host& other) {
  heal_one_way(one, other);
  heal_one_way(other, one);
}

void World::heal_one_way(const Host& from, const Host& to) {
  state_->network_.heal(from.index_, to.index_);
}

void World::name(std::string_view name, const Host& host) {
  for (const Address& address : {host.address(0), host.address_ipv6(0)}) {
    state_->kernel_.hosts_file += address.host();
    state_->kernel_.hosts_file += ' ';
    state_->kernel_.hosts_file += name;
    state_->kernel_.hosts_file += '\n';
  }
}

void World::answer_name(std::string_view name, NameAnswer answer) {
  state_->kernel_.zone.set(name, std::move(answer));
}

Nanos World::now() const { return state_->kernel_.now() - Kernel::kBeginning; }

void World::at(Nanos time, Job task) {
  state_->at(deadline_after(Kernel::kBeginning, time), std::move(task));
}

Outcome World::run_until(const std::function<bool()>& condition, Nanos span) {
  return state_->run(condition, span);
}

Outcome World::run_for(Nanos span) {
  const Outcome outcome = state_->run({}, span);
  return outcome == Outcome::stuck ? Outcome::limit : outcome;
}

std::uint64_t World::draw(std::uint64_t bound) {
  SPATE_ASSERT(bound != 0);
  return state_->kernel_.draw(Purpose::scenario, ++state_->draws_) % bound;
}

std::uint64_t World::trace() const { return state_->kernel_.trace(); }

std::size_t World::open_descriptors() const { return state_->kernel_.open_count(); }

}  // namespace spate::sim
