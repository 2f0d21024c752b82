#include "chaos/doors.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "chaos/guests.h"
#include "chaos/raw.h"
#include "chaos/verdict.h"
#include "chaos/world.h"
#include "spate/net/resolver.h"
#include "support/closed_port.h"
#include "support/name_server.h"
#include "support/own_loopback.h"

namespace spate::chaos {

namespace {

constexpr std::size_t kMaxDoors = 2;
constexpr std::size_t kMaxServers = 2;
constexpr std::size_t kMaxAttempts = 6;
constexpr std::size_t kMaxCallers = 2;

}  // namespace

Doors::Doors(World& world) : world_(world) {}
Doors::~Doors() = default;

void Doors::act(const Step& step, const Visit& visit) {
  static_cast<void>(visit);
  switch (step.op) {
    case Op::listen:
      return listen(step);
    case Op::listener:
      return change_door(step);
    case Op::connect:
      return step.b % 3 == 0 ? knock(step) : connect(step);
    case Op::connecting:
      return cancel(step);
    case Op::connect_stream:
      return connect_stream(nullptr, step);
    default:
      return use_client(step);
  }
}

// ---- listeners

void Doors::listen(const Step& step) {
  if (doors_.size() >= kMaxDoors) return;
  auto door = std::make_unique<Door>();
  Door& it = *door;
  ListenOptions options;
  options.accepts_per_turn = 1 + static_cast<int>(step.a % 4);
  if (step.b % 4 == 0) it.max = options.max_connections = 1 + step.a % 3;
  options.no_delay = step.b % 8 < 4;
  auto made = Listener::create(
      world_.loop(), testing::own_address(0),
      [this, &it](Stream stream, const Address& peer) { on_accept(it, std::move(stream), peer); },
      options);
  check(made.has_value() || world_.is_stormy(), "listens", "%s",
        made ? "" : made.error().message().c_str());
  if (!made) return;
  it.own.emplace(std::move(*made));
  it.listener = &*it.own;
  it.address = it.listener->address();
  it.in_listen = false;
  doors_.push_back(std::move(door));
}

Doors::Door* Doors::some_door(std::size_t choice) {
  return doors_.empty() ? nullptr : doors_[choice % doors_.size()].get();
}

void Doors::change_door(const Step& step) {
  Door* door = some_door(step.target);
  if (door == nullptr || !door->listener) return;
  switch (step.a % 6) {
    case 0:
    case 1:
      door->listener->pause();
      door->is_paused = !door->is_closing;
      return;
    case 5:
      if (step.b % 2 != 0) return;
      door->listener->close();
      door->is_paused = false;
      door->is_closing = true;
      return;
    case 2:
    case 3:
      door->listener->resume();
      door->is_paused = false;
      return;
    default:
      if (step.b % 3 != 0 || !door->own) return;
      Listener last = std::move(*door->own);
      door->own.reset();
      door->listener = nullptr;
  }
}

void Doors::on_accept(Door& door, Stream stream, const Address& peer) {
  note_accepted(door, peer);
  End& end = world_.add_end(Kind::tcp, std::move(stream));
  world_.meet(peer.port(), World::Side::called, end);
  if (end.number % 8 != 0) end.start();
  world_.visit({Where::accept, &end, {}, 0});
}

void Doors::note_accepted(Door& door, const Address& peer) {
  world_.moved();
  world_.tell("[accepted from port %u]", peer.port());
  check(door.listener != nullptr, "gone_hears_nothing", "a listener that is gone accepts");
  check(!door.is_paused, "paused_accepts_nobody", "a listener that is paused accepts");
  check(!door.in_listen, "not_from_inside", "on_accept() inside listen()");
  ++door.calls;
  if (door.listener) {
    check(door.listener->accepted() == door.calls, "accepted_counts", "%llu of %llu",
          static_cast<unsigned long long>(door.listener->accepted()),
          static_cast<unsigned long long>(door.calls));
    check(door.listener->connections() <= door.max, "max_connections", "%zu of %zu",
          door.listener->connections(), door.max);
  }
}

// ---- servers

bool Doors::serve(Host& host, const Step& step) {
  if (doors_.size() >= kMaxDoors + kMaxServers) return false;
  auto door = std::make_unique<Door>();
  ListenOptions options;
  options.accepts_per_turn = 1 + static_cast<int>(step.b % 3);
  auto made = spate::serve<Guest>(world_.loop(), testing::own_address(0), options, std::ref(host));
  check(made.has_value() || world_.is_stormy(), "serves", "%s",
        made ? "" : made.error().message().c_str());
  if (!made) return false;
  host.server = std::move(*made);
  host.list = &host.server.sessions();
  door->listener = &host.server.listener();
  door->address = host.server.address();
  door->in_listen = false;
  host.door = doors_.emplace_back(std::move(door)).get();
  return true;
}

End& Doors::admit_guest(Guest& guest, Door& door) {
  const Address peer = guest.stream().peer_address();
  note_accepted(door, peer);
  End& end = world_.add_end(Kind::tcp, std::unique_ptr<Stream>());
  // A connection that was already reset has no address, so its caller is unknown.
  peer.port() == 0 ? world_.await(end) : world_.meet(peer.port(), World::Side::called, end);
  return end;
}

// Pending connections are still accepted.
void Doors::note_closing(Door& door) {
  door.is_paused = false;
  door.is_closing = true;
}

void Doors::note_gone(Door& door) { door.listener = nullptr; }

// A bare socket connects. It may send, end or reset before it is accepted.
void Doors::knock(const Step& step) {
  Door* door = some_door(step.target);
  if (door == nullptr || !door->listener || !world_.has_room()) return;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto* address = static_cast<const sockaddr*>(door->address.data());
  if (::connect(fd, address, static_cast<socklen_t>(door->address.size())) != 0 &&
      errno != EINPROGRESS) {
    ::close(fd);
    return;
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  Raw& raw = world_.add_raw(Kind::tcp, fd);
  world_.meet(Address::from_system(&bound, size)->port(), World::Side::calling, raw);
  if (!door->is_closing) door->guests.push_back(&raw);
}

// ---- connect()

void Doors::connect(const Step& step) {
  static constexpr std::int64_t kTimeouts[4] = {0, 0, 1, 200'000'000};
  if (attempts_.size() == kMaxAttempts || !world_.has_room()) return;
  Attempt& attempt = *attempts_.emplace_back(std::make_unique<Attempt>());
  Door* door = some_door(step.target);
  ConnectOptions options;
  options.timeout = attempt.timeout = Nanos{kTimeouts[step.a % 4]};
  options.attempt_delay = Nanos{(step.a >> 2) % 2 == 0 ? 20'000'000 : 250'000'000};
  options.no_delay = step.a % 2 == 0;
  attempt.since = world_.now();
  attempt.door = door;
  const bool is_to_nowhere = door == nullptr || (step.a >> 3) % 8 == 0;
  attempt.may_fail = is_to_nowhere;
  const auto callback = [this, &attempt](Result<Stream> result) {
    on_connected(attempt, std::move(result));
  };
  Loop& loop = world_.loop();
  Connecting made;
  if (is_to_nowhere) {
    made = spate::connect(loop, testing::closed_ipv4(), callback, options);
  } else if (step.b % 3 == 1) {
    made = spate::connect(loop, door->address, callback, options);
  } else if (step.b % 2 == 0 || is_left_out("connect_by_name")) {
    made = spate::connect(loop, std::vector<Address>{testing::closed_ipv4(), door->address},
                          callback, options);
  } else {
    return connect_by_name(attempt, options, step);
  }
  attempt.in_connect = false;
  attempt.handle = std::move(made);
}

void Doors::connect_by_name(Attempt& attempt, const ConnectOptions& options, const Step& step) {
  static constexpr const char* kHosts[6] = {"good.test", "slow.test",   "alias.test",
                                            "localhost", "absent.test", "broken.test"};
  names();
  const std::size_t choice = (step.a >> 6) % 6;
  // localhost has no listener, and a query that cannot be sent counts as failed.
  attempt.may_fail = choice >= 3 || !world_.is_fair();
  attempt.handle = spate::connect(
      world_.loop(), kHosts[choice], attempt.door->address.port(),
      [this, &attempt](Result<Stream> result) { on_connected(attempt, std::move(result)); },
      options);
  attempt.in_connect = false;
}

testing::NameServer& Doors::names() {
  if (names_ != nullptr) return *names_;
  names_ = std::make_unique<testing::NameServer>(world_.loop());
  names_->names["good.test"].ipv4 = {testing::own_loopback_text()};
  testing::NameEntry& slow = names_->names["slow.test"];
  slow.ipv4 = {testing::own_loopback_text()};
  slow.ipv6 = {"::1"};
  slow.ipv6_delay = Nanos{60'000'000};
  slow.ipv4_delay = Nanos{5'000'000};
  names_->names["alias.test"].alias = "good.test";
  names_->names["broken.test"].code = 2;
  ResolverOptions options;
  options.servers = {names_->address()};
  options.hosts = "/dev/null";
  options.resolv_conf = "/dev/null";
  static_cast<void>(configure_resolver(world_.loop(), options));
  return *names_;
}

void Doors::on_connected(Attempt& attempt, Result<Stream> result) {
  world_.moved();
  world_.tell("[connected: %s]", result ? "yes" : result.error().message().c_str());
  check(!attempt.in_connect, "not_from_inside", "the callback inside connect()");
  check(!attempt.is_cancelled, "cancelled_hears_nothing", "a connect() that was cancelled");
  check(!attempt.is_over, "one_result", "a second result of connect()");
  attempt.is_over = true;
  if (!result && !world_.is_stormy()) {
    const bool is_late = result.error() == Error::connect_timeout;
    check(
        !is_late || (attempt.timeout > Nanos{0} && world_.now() - attempt.since >= attempt.timeout),
        "right_error", "connect() is over before its time");
    check(is_late || attempt.may_fail || may_refuse(attempt.door, result.error()), "right_error",
          "connect() to one who listens: %s", result.error().message().c_str());
  }
  End* end = admit(result);
  world_.visit({Where::connected, end, {}, 0});
}

// A caller that is accepted and dropped at once may see only the reset.
bool Doors::may_refuse(const Door* door, std::error_code error) const {
  const bool is_thrown_out = error == std::error_code(ECONNRESET, std::system_category()) ||
                             error == std::error_code(EPIPE, std::system_category());
  return is_thrown_out || door->listener == nullptr || door->is_closing;
}

void Doors::connect_stream(End* before, const Step& step) {
  static constexpr std::int64_t kTimeouts[4] = {0, 0, 1, 200'000'000};
  if (!world_.has_room()) return;
  if (doors_.empty() && step.b % 4 != 0) listen(step);
  Door* const door = some_door(step.target);
  ConnectOptions options;
  options.timeout = Nanos{kTimeouts[step.a % 4]};
  const bool is_by_name = door != nullptr && step.b % 3 == 0;
  const bool is_to_nowhere = door == nullptr || (step.a >> 3) % 8 == 0;
  static constexpr const char* kHosts[5] = {"good.test", "slow.test", "alias.test", "absent.test",
                                            "broken.test"};
  const char* const host = kHosts[(step.a >> 6) % 5];
  const bool may_fail =
      is_to_nowhere || (is_by_name && ((step.a >> 6) % 5 >= 3 || !world_.is_fair()));
  if (is_by_name) names();
  const Address address = is_to_nowhere ? testing::closed_ipv4() : door->address;
  Loop& loop = world_.loop();
  const auto begin = [&](Stream& stream, StreamHandler& handler) {
    if (is_by_name) return stream.connect(loop, host, door->address.port(), handler, options);
    if (step.a % 2 == 0) return stream.connect(loop, address, handler);
    return stream.connect(loop, address, handler, options);
  };
  End& end = world_.add_end(Kind::tcp, before == nullptr ? std::make_unique<Stream>()
                                                         : before->give_away("connected anew"));
  world_.await(end);
  const Nanos since = world_.now();
  // If the server closes the first connection, it tries the second address, which has no listener.
  const bool has_two = is_by_name && (step.a >> 6) % 5 == 1;
  end.connect(begin, [this, may_fail, has_two, door, options, since](std::error_code error) {
    if (has_two && error == std::errc::connection_refused) return true;
    if (error == Error::connect_timeout)
      return options.timeout > Nanos{0} && world_.now() - since >= options.timeout;
    return may_fail || may_refuse(door, error);
  });
}

End* Doors::admit(Result<Stream>& result) {
  if (!result) return nullptr;
  // The server of another process, which has the door's port on localhost.
  if (result->local_address().host() != testing::own_loopback_text()) return nullptr;
  const std::uint16_t port = result->local_address().port();
  End& end = world_.add_end(Kind::tcp, std::move(*result));
  world_.meet(port, World::Side::calling, end);
  if (end.number % 8 != 0) end.start();
  return &end;
}

void Doors::cancel(const Step& step) {
  if (attempts_.empty()) return;
  Attempt& attempt = *attempts_[step.target % attempts_.size()];
  if (!attempt.is_over) attempt.is_over = attempt.is_cancelled = true;
  if (step.a % 2 == 0) {
    attempt.handle.cancel();
  } else {
    attempt.handle = Connecting();
  }
}

// ---- clients

void Doors::use_client(const Step& step) {
  if (callers_.size() == kMaxCallers || (!callers_.empty() && step.b % 4 != 0)) {
    Caller& caller = *callers_[step.target % callers_.size()];
    return caller.client ? change_client(caller, step) : void();
  }
  Door* door = some_door(step.target);
  if (door == nullptr) return;
  Caller& caller = *callers_.emplace_back(std::make_unique<Caller>());
  caller.door = door;
  ClientOptions options;
  options.connect.timeout = Nanos{1'000'000'000};
  options.first_delay = Nanos{10'000'000};
  options.max_delay = Nanos{100'000'000};
  options.steady_after = Nanos{50'000'000};
  options.max_failures = step.a % 4 == 0 ? 3 : 0;
  auto made = Client::create(
      world_.loop(), door->address,
      [this, &caller](Result<Stream> result) { on_called(caller, std::move(result)); }, options);
  check(made.has_value() || world_.is_stormy(), "client_is_made", "refused");
  if (!made) return;
  caller.client.emplace(std::move(*made));
  caller.client->connect();
  caller.is_wanted = true;
}

void Doors::change_client(Caller& caller, const Step& step) {
  switch (step.a % 6) {
    case 0:
    case 1:
      caller.client->connect();
      caller.is_wanted = true;
      return;
    case 2:
      if (caller.current != nullptr) caller.current->on_closed_for_it();
      caller.client->disconnect();
      caller.is_wanted = false;
      return;
    case 3:
      caller.client->stop();
      caller.is_wanted = false;
      return;
    case 4: {
      Client moved = std::move(*caller.client);
      *caller.client = std::move(moved);
      return;
    }
    default: {
      if (step.b % 2 == 0) return;
      const Client last = std::move(*caller.client);
      caller.client.reset();
      caller.is_wanted = false;
    }
  }
}

void Doors::on_called(Caller& caller, Result<Stream> result) {
  world_.moved();
  world_.tell("[client: %s]", result ? "connected" : result.error().message().c_str());
  check(caller.client.has_value(), "gone_hears_nothing", "a client that is gone");
  check(caller.is_wanted, "idle_client_hears_nothing", "a client that was told to stop");
  if (result) ++caller.connections;
  if (caller.client) {
    check(caller.client->connections() == caller.connections, "client_counts", "%llu of %llu",
          static_cast<unsigned long long>(caller.client->connections()),
          static_cast<unsigned long long>(caller.connections));
    check(!result || caller.client->state() == Client::State::connected, "client_state",
          "not connected in its callback");
  }
  if (!world_.has_room()) {  // Every connection counts, and this client might connect without end.
    if (caller.client) caller.client->stop();
    caller.is_wanted = false;
  }
  End* end = admit(result);
  caller.current = end;
  world_.visit({Where::connected, end, {}, 0});
}

// ---- the end

void Doors::make_friendly() {
  for (const auto& caller : callers_) {
    if (caller->client) caller->client->stop();
    caller->is_wanted = false;
  }
  for (const auto& door : doors_) {
    if (door->max != SIZE_MAX) {
      door->listener = nullptr;
      door->own.reset();
    }
    if (door->listener) door->listener->resume();
    door->is_paused = false;
  }
}

bool Doors::has_attempts() const {
  return std::ranges::any_of(attempts_, [](const auto& attempt) { return !attempt->is_over; });
}

void Doors::check_settled() {
  if (world_.is_stormy()) return;
  for (const auto& attempt : attempts_)
    check(attempt->is_over, "connect_is_answered", "connect() has no result");
  for (const auto& door : doors_) {
    for (const Raw* guest : door->guests) {
      check(!door->listener || !guest->is_open() || guest->has_met(), "newcomers_are_accepted",
            "peer %u waits to be accepted", guest->number);
    }
  }
}

void Doors::check_empty() {
  if (world_.is_stormy()) return;
  for (const auto& door : doors_) {
    check(!door->listener || door->listener->connections() == 0, "connections_return",
          "a listener counts %zu connections when all are gone",
          door->listener ? door->listener->connections() : 0);
  }
  for (const auto& caller : callers_) {
    check(!caller->client || caller->client->state() == Client::State::idle, "client_state",
          "a client that was stopped is not idle when its connection is gone");
  }
}

void Doors::close() {
  attempts_.clear();
  callers_.clear();
  doors_.clear();
  names_.reset();
}

}  // namespace spate::chaos
