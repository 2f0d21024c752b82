#include "spate/sim/world.h"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "sim/kernel/signals.h"
#include "sim/net/ip_socket.h"
#include "sim/world/world_state.h"
#include "spate/assert.h"

namespace spate::sim {

namespace {

constexpr std::size_t kLeastMtu = 68;
constexpr std::size_t kMostMtu = 65535;

// Sets Kernel::is_tearing_down for a scope.
class TeardownScope {
 public:
  explicit TeardownScope(Kernel& kernel)
      : kernel_(kernel), before_(std::exchange(kernel.is_tearing_down, true)) {}
  ~TeardownScope() { kernel_.is_tearing_down = before_; }
  TeardownScope(const TeardownScope&) = delete;
  TeardownScope& operator=(const TeardownScope&) = delete;

 private:
  Kernel& kernel_;
  const bool before_;
};

Address address_at(int family, const SocketAddress& address) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  address.to_system(family, reinterpret_cast<sockaddr*>(&storage), &size);
  return must(Address::from_system(&storage, size));
}

}  // namespace

// Sockets are closed while the network still exists, and system calls still come to the World.
WorldState::~WorldState() {
  tasks_.clear();
  const TeardownScope teardown(simulation_);
  simulation_.processes.clear();
  simulation_.pools.clear();
  hosts_.clear();
  simulation_.close_all();
  simulation_.local_names.drop_all();
}

// ---- running

bool WorldState::turn(Host& host, Nanos& next) {
  if (!host.is_up() || host.is_paused_) return false;
  Loop& loop = host.loop();
  if (loop.depth() > 0) return false;  // A run() called by its program runs it.
  const Host::Turn running(host);
  const Nanos wait = loop.prepare_to_wait();
  // The loop would sleep, so others run until it wakes.
  if (wait > Nanos{0} && simulation_.find(host.set_)->ready() == 0) {
    host.wakes_at_ = simulation_.deadline(wait);
    next = std::min(next, host.wakes_at_);
    return false;
  }
  host.wakes_at_ = simulation_.now();
  simulation_.failed_polls() = 0;
  loop.run(Run::no_wait);
  return true;
}

// A thread of a host that is down or paused runs only if some code waits for it.
bool WorldState::may_run(const Thread& thread) const {
  if (simulation_.is_waited_for(thread)) return true;
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

// In a random order each time.
bool WorldState::turn_all(Nanos& next) {
  std::vector<Host*> hosts;
  for (const std::unique_ptr<Host>& host : hosts_) hosts.push_back(host.get());
  // Numbers, because a thread may be joined in the turn of another.
  std::vector<std::uint64_t> threads;
  for (const auto& [number, thread] : simulation_.threads()) threads.push_back(number);
  std::vector<std::size_t> order(hosts.size() + threads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::uint64_t drawn = simulation_.draw(Purpose::order, ++rounds_);
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[mix(drawn ^ left) % left]);
  bool any = false;
  for (const std::size_t one : order) {
    if (one < hosts.size()) {
      any |= turn(*hosts[one], next);
    } else if (const auto found = simulation_.threads().find(threads[one - hosts.size()]);
               found != simulation_.threads().end()) {
      any |= turn(*found->second, next);
    }
  }
  return any;
}

bool WorldState::step_threads() {
  std::vector<std::uint64_t> threads;
  for (const auto& [number, thread] : simulation_.threads()) threads.push_back(number);
  bool any = false;
  for (const std::uint64_t number : threads) {
    const auto found = simulation_.threads().find(number);
    Nanos next = kForever;
    if (found != simulation_.threads().end()) any |= turn(*found->second, next);
  }
  return any;
}

bool WorldState::run_tasks() {
  bool any = false;
  for (; next_task() <= simulation_.now(); any = true) {
    auto first = tasks_.extract(tasks_.begin());
    first.mapped()();
  }
  return any;
}

Step WorldState::step(Nanos limit) {
  // Many steps without time passing: some code polls without waiting.
  if (++steps_here_ > kMostSteps) return Step::spinning;
  const bool has_told = run_tasks();
  const bool has_run_events = simulation_.run_due_events();
  Nanos next = kForever;
  if (turn_all(next) || has_told || has_run_events) return Step::went_on;
  return move(std::min({next, simulation_.next(), next_task()}), limit);
}

Step WorldState::move(Nanos next, Nanos limit) {
  const Nanos before = simulation_.now();
  if (next <= limit || limit < kForever) simulation_.move_to(std::min(next, limit));
  if (simulation_.now() != before) steps_here_ = 0;
  if (next >= kForever) return Step::stuck;
  return next <= limit ? Step::went_on : Step::idle;
}

Outcome WorldState::run(const std::function<bool()>& condition, Nanos span) {
  SPATE_ASSERT(Thread::current() == nullptr, "a thread of a World's does not run the World");
  const Nanos limit = deadline_after(simulation_.now(), span);
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

// ---- inspection

std::vector<std::string> WorldState::host_names() const {
  std::vector<std::string> names;
  for (const std::unique_ptr<Host>& host : hosts_) names.emplace_back(host->name());
  return names;
}

namespace {

ConnectionState state_of(const Endpoint& end) {
  if (end.is_connecting()) return ConnectionState::connecting;
  if (end.is_dead()) return ConnectionState::reset;
  return end.has_ended() ? ConnectionState::ended : ConnectionState::open;
}

Address address_of(const SocketAddress& address) {
  return address_at(address.ip.is_v4() ? AF_INET : AF_INET6, address);
}

std::string_view name_of(ConnectionState state) {
  constexpr std::string_view kNames[] = {"listening", "connecting", "open", "ended", "reset"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string line_of(const ConnectionInfo& info) {
  std::string line(info.host->name());
  line.append(": ").append(name_of(info.state)).append(" ").append(info.local.to_string());
  if (info.state == ConnectionState::listening)
    return line + ", " + std::to_string(info.unread) + " to accept\n";
  return line + " -> " + info.peer.to_string() + ", " + std::to_string(info.unread) + " unread, " +
         std::to_string(info.unsent) + " unsent\n";
}

}  // namespace

std::vector<ConnectionInfo> WorldState::connections() const {
  std::multimap<int, ConnectionInfo> found;  // By host.
  const auto add = [&](int host, ConnectionInfo info) {
    info.host = hosts_[static_cast<std::size_t>(host)].get();
    found.emplace(host, info);
  };
  const auto visit_listener = [&](const IpSocket& socket) {
    add(socket.host(), {.host = nullptr,
                        .local = address_of(socket.local()),
                        .peer = address_of({.ip = socket.local().ip.is_v4() ? Ip::any_v4() : Ip()}),
                        .state = ConnectionState::listening,
                        .unread = socket.waiting()});
  };
  const auto visit_end = [&](const Endpoint& end, const SocketAddress& peer) {
    add(end.host(), {.host = nullptr,
                     .local = address_of(end.local()),
                     .peer = address_of(peer),
                     .state = state_of(end),
                     .unread = end.unread(),
                     .unsent = end.unsent()});
  };
  simulation_.network.look(visit_listener, visit_end);
  std::vector<ConnectionInfo> all;
  for (const auto& [host, info] : found) all.push_back(info);
  return all;
}

std::string WorldState::describe(const Host& host) const {
  std::string line(host.name());
  if (!host.is_up()) return line + " is down\n";
  if (host.is_paused_) {
    line += " is paused";
  } else if (host.index_ == simulation_.host) {
    line += " is running";
  } else if (host.wakes_at_ >= kForever) {
    line += " waits for input";
  } else {
    line += " waits until " + seconds_of(host.wakes_at_ - Kernel::kBeginning);
  }
  return line + ", " + std::to_string(host.open_descriptors()) + " descriptors\n";
}

std::string WorldState::describe() const {
  std::string text;
  for (const std::unique_ptr<Host>& host : hosts_) text += describe(*host);
  for (const ConnectionInfo& info : connections()) text += line_of(info);
  return text;
}

// ---- hosts

Host::Host(WorldState& world, int index, std::string_view name)
    : world_(world), index_(index), name_(name) {
  make_loop();
}

// Making the loop is the host's, not the program's: injected faults do not apply.
void Host::make_loop() {
  const Turn making(*this);
  std::unique_ptr<CallFaults> faults = std::exchange(world_.simulation().call_faults, nullptr);
  loop_ = must(Loop::create());
  set_ = must(loop_->poll_fd());
  world_.simulation().call_faults = std::move(faults);
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

bool Host::is_at_rest() const {
  return is_up() && loop_->depth() == 0 && !world_.simulation().is_inside(index_);
}

// The loop's time is that of its last turn. In a callback it stays the time of the turn, as usual.
void Host::update_now() {
  if (loop().depth() == 0) loop().update_now();
}

void Host::crash() {
  SPATE_ASSERT(is_at_rest(), "a host does not crash while its own code runs or waits");
  world_.simulation().crash(index_, [](Socket& socket) { socket.vanish(); });
  world_.simulation().network.crash(index_);
  {
    const Turn ending(*this);
    const TeardownScope teardown(world_.simulation());
    world_.simulation().disks.cut_power(index_);
    kept_.reset();
    world_.simulation().processes.crash(index_);
    world_.simulation().pools.erase(index_);
  }
  is_paused_ = false;
  world_.simulation().note({.kind = EventKind::crashed, .from = index_});
  dead_loops_.push_back(std::move(loop_));
}

void Host::restart() {
  SPATE_ASSERT(!is_up());
  world_.simulation().note({.kind = EventKind::restarted, .from = index_});
  world_.simulation().lift_limit(index_);
  world_.simulation().network.memory.limit(index_, 0);
  world_.simulation().disks.power_on(index_);
  make_loop();
  world_.simulation().network.restart(index_);
  start_program();
}

Disk& Host::mount(std::string_view path, const DiskOptions& options) {
  return world_.simulation().disks.mount(index_, path, options);
}

void Host::pause() {
  SPATE_ASSERT(is_up() && loop_->depth() == 0);
  world_.simulation().note({.kind = EventKind::paused, .from = index_});
  is_paused_ = true;
}

void Host::resume() {
  if (!std::exchange(is_paused_, false)) return;
  world_.simulation().note({.kind = EventKind::resumed, .from = index_});
}

void Host::set_clock(const ClockOptions& options) {
  SPATE_ASSERT(options.drift >= -500'000 && options.drift <= 1'000'000);
  Kernel& kernel = world_.simulation();
  kernel.clocks.set(index_, kernel.now(), options.ahead, options.drift);
}

void Host::limit_descriptors(std::size_t most, Shortage shortage) {
  world_.simulation().limit(index_, most, shortage == Shortage::process ? EMFILE : ENFILE);
}

std::size_t Host::open_descriptors() const { return world_.simulation().open_count(index_); }

void Host::set_port_range(std::uint16_t first, std::uint16_t last) {
  SPATE_ASSERT(first != 0 && first <= last);
  world_.simulation().network.set_port_range(index_, {.first = first, .last = last});
}

void Host::limit_memory(std::size_t bytes) {
  world_.simulation().network.memory.limit(index_, bytes);
}

std::size_t Host::used_memory() const { return world_.simulation().network.memory.used(index_); }

void Host::delay_work(Nanos most) {
  SPATE_ASSERT(most >= Nanos{0});
  world_.simulation().delay_threads(index_, most);
}

bool Host::raise(int signum) {
  SPATE_ASSERT(signum > 0 && signum <= 64);
  return raise_signal(world_.simulation(), index_, signum);
}

void Host::add_program(std::string_view name, ProgramBody body) {
  world_.simulation().processes.add_program(index_, std::string(name), std::move(body));
}

Host::Turn::Turn(Host& host)
    : world_(host.world_), before_(std::exchange(world_.simulation().host, host.index_)) {}

Host::Turn::~Turn() { world_.simulation().host = before_; }

// ---- the World

World::World(std::uint64_t seed) : state_(std::make_unique<WorldState>(seed)) {}
World::~World() = default;

Host& World::add_host(std::string_view name) {
  SPATE_ASSERT(state_->hosts_.size() < kMostHosts);
  const int index = static_cast<int>(state_->hosts_.size());
  state_->simulation_.network.hosts = index + 1;
  return *state_->hosts_.emplace_back(new Host(*state_, index, name));
}

void World::link(const Host& one, const Host& other, const LinkOptions& options) {
  link_one_way(one, other, options);
  link_one_way(other, one, options);
}

void World::link_one_way(const Host& from, const Host& to, const LinkOptions& options) {
  SPATE_ASSERT(options.mtu >= kLeastMtu && options.mtu <= kMostMtu);
  state_->simulation_.network.set_link(from.index_, to.index_, options);
}

void World::cut(const Host& one, const Host& other, InFlight in_flight) {
  cut_one_way(one, other, in_flight);
  cut_one_way(other, one, in_flight);
}

void World::cut_one_way(const Host& from, const Host& to, InFlight in_flight) {
  state_->simulation_.network.cut(from.index_, to.index_, in_flight);
}

void World::heal(const Host& one, const Host& other) {
  heal_one_way(one, other);
  heal_one_way(other, one);
}

void World::heal_one_way(const Host& from, const Host& to) {
  state_->simulation_.network.heal(from.index_, to.index_);
}

void World::set_rule(Rule rule) {
  if (!rule) return state_->simulation_.network.set_rule({});
  state_->simulation_.network.set_rule([state = state_.get(),
                                        rule = std::move(rule)](const PacketView& packet) {
    const auto host = [state](int index) -> const Host& {
      return *state->hosts_[static_cast<std::size_t>(index)];
    };
    return rule({.from = host(packet.from_host),
                 .to = host(packet.to_host),
                 .source = address_of(packet.from),
                 .destination = address_of(packet.to),
                 .kind = packet.kind,
                 .bytes = bytes_of(packet.bytes),
                 .attempt = packet.attempt});
  });
}

std::error_code World::capture(const std::string& path) {
  auto capture = Capture::open(path);
  if (!capture) return capture.error();
  state_->simulation_.network.set_capture(std::move(*capture));
  return {};
}

std::vector<ConnectionInfo> World::connections() const { return state_->connections(); }

void World::name(std::string_view name, const Host& host) {
  for (const Address& address : {host.address(0), host.address_ipv6(0)}) {
    state_->simulation_.hosts_file += address.host();
    state_->simulation_.hosts_file += ' ';
    state_->simulation_.hosts_file += name;
    state_->simulation_.hosts_file += '\n';
  }
}

void World::answer_name(std::string_view name, NameAnswer answer) {
  state_->simulation_.network.zone.set(name, std::move(answer));
}

Nanos World::now() const { return state_->simulation_.now() - Kernel::kBeginning; }

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
  return state_->simulation_.draw(Purpose::scenario, ++state_->draws_) % bound;
}

bool World::inject_fault(double probability, std::string_view what) {
  const std::uint64_t drawn = state_->simulation_.draw(Purpose::inject, ++state_->fault_draws_);
  if (static_cast<double>(drawn >> 11) * 0x1p-53 >= probability) return false;
  return state_->simulation_.injects({.kind = EventKind::injected, .what = what});
}

std::string World::fail_calls(std::string_view plan) {
  Simulation& simulation = state_->simulation_;
  if (plan.empty()) return simulation.call_faults.reset(), "";
  auto rules = CallFaults::parse(plan);
  if (!rules) return std::move(rules.error());
  const std::uint64_t seed = simulation.draw(Purpose::call, ++state_->plans_);
  simulation.call_faults = std::make_unique<CallFaults>(std::move(*rules), seed);
  return {};
}

std::uint64_t World::trace() const { return state_->simulation_.history.trace(); }

std::size_t World::open_descriptors() const { return state_->simulation_.open_count(); }

}  // namespace spate::sim
