#include "chaos/guests.h"

#include <algorithm>
#include <utility>

#include "chaos/handler.h"
#include "chaos/verdict.h"
#include "chaos/world.h"
#include "spate/error.h"

namespace spate::chaos {

namespace {

constexpr std::size_t kMaxHosts = 4;

}  // namespace

// ---- a session

Guest::Guest(Host& host, End* end) : host_(host), end_(end) { ++host_.guests; }

Guest::~Guest() {
  World& world = host_.world;
  --host_.guests;
  check(host_.is_going || end_ == nullptr || host_.live.count(end_->number) == 0, "sessions_stay",
        "one that has not ended is destroyed");
  check(host_.is_going || world.loop().depth() > 0, "swept_by_the_loop",
        "a session is destroyed outside of run()");
  if (is_gone_ != nullptr) *is_gone_ = true;
  if (!host_.is_going) world.count(Event::session_swept);
  if (end_ != nullptr) {
    host_.live.erase(end_->number);
    end_->on_session_gone();
  }
  if (!host_.is_going) world.on_dropped();
}

std::size_t Guest::on_data(Bytes bytes) { return end_->handler().on_data(bytes); }
void Guest::on_end() { end_->handler().on_end(); }
void Guest::on_descriptors(std::span<const int> descriptors, bool some_lost) {
  end_->handler().on_descriptors(descriptors, some_lost);
}
void Guest::on_connected() { end_->handler().on_connected(); }
void Guest::on_drained() { end_->handler().on_drained(); }

void Guest::on_open() {
  World& world = host_.world;
  world.moved();
  check(!host_.is_going, "gone_hears_nothing", "on_open() of Sessions that are gone");
  if (end_ == nullptr) end_ = &world.admit_guest(*this, *host_.door);
  End& end = *end_;
  host_.live.insert(end.number);
  world.tell("[end %u on_open]", end.number);
  world.count(Event::session_opened);
  end.on_session_open(*this);
}

void Guest::on_drain() {
  World& world = host_.world;
  End& end = *end_;
  world.moved();
  world.tell("[end %u on_drain]", end.number);
  world.count(Event::told_to_drain);
  check(host_.live.count(end.number) == 1, "ended_hears_nothing", "end %u: on_drain()", end.number);
  check(host_.drained_by >= Nanos{0}, "drain_is_asked", "end %u: on_drain()", end.number);
  check(host_.told.insert(end.number).second, "drain_is_told_once", "end %u: on_drain() once more",
        end.number);
  end.on_session_drain(host_.drained_by - world.now());
  if (end.number % 3 != 0) {
    end.on_closed_for_it();
    Session::on_drain();
  }
  world.visit({Where::drain, &end});
}

void Guest::on_closed(std::error_code error) {
  Host& host = host_;
  const unsigned number = end_->number;
  bool is_gone = false;
  is_gone_ = &is_gone;
  host.live.erase(number);
  end_->handler().on_closed(error);
  check(!is_gone || host.is_going, "stays_in_its_last_call", "end %u: swept", number);
  if (!is_gone) is_gone_ = nullptr;
}

void Guest::note_abort() { host_.live.erase(end_->number); }

// ---- all of them

Guests::Guests(World& world) : world_(world) {}
Guests::~Guests() = default;

void Guests::act(const Step& step, const Visit& visit) {
  if (step.op == Op::sessions) {
    if (open(step)) world_.count(step.op, Coverage::kNone, visit.where);
  } else if (Host* host = some_host(step.target); host != nullptr) {
    world_.count(step.op, Coverage::kNone, visit.where);
    change(*host, step, visit);
  }
}

Host* Guests::some_host(std::size_t choice) {
  std::vector<Host*> there;
  for (const auto& host : hosts_) {
    if (host->list != nullptr) there.push_back(host.get());
  }
  return there.empty() ? nullptr : there[choice % there.size()];
}

bool Guests::open(const Step& step) {
  if (hosts_.size() == kMaxHosts) return false;
  Host& host = *hosts_.emplace_back(std::make_unique<Host>(world_));
  if (step.a % 2 == 0) {
    host.own = std::make_unique<Sessions<Guest>>(world_.loop());
    host.list = host.own.get();
    return true;
  }
  if (world_.serve(host, step)) return true;
  hosts_.pop_back();
  return false;
}

void Guests::take_in(End& end, const Step& step) {
  Host* host = some_host(step.a);
  if (host == nullptr &&
      open(Step{
          .op = Op::sessions, .where = step.where, .target = 0, .more = false, .a = 0, .b = 0}))
    host = some_host(0);
  if (host == nullptr) return;
  const bool was_drained = host->drained_by >= Nanos{0};
  const std::unique_ptr<Stream> stream = end.take_for_session();
  Guest* guest = host->list->open(std::move(*stream), *host, &end);
  check((guest == nullptr) == (host->is_going || end.is_over()), "open_tells",
        "end %u: open() returns %s", end.number, guest == nullptr ? "none" : "one");
  if (guest == nullptr) return world_.count(Event::session_refused);
  end.on_session_start();
  check(!was_drained || host->told.count(end.number) == 1, "drain_is_told",
        "end %u: it came later, and on_drain() has not", end.number);
}

void Guests::change(Host& host, const Step& step, const Visit& visit) {
  switch (step.a % 8) {
    case 0:
    case 1:
      return drain(host, step);
    case 2:
      return end_all(host, step);
    case 3:
    case 4:
      return for_each(host, step, visit);
    case 5:
      if (step.b % 2 != 0) return;
      world_.count(Event::sessions_destroyed);
      return destroy(host);
    default:
      if (host.door == nullptr) return;
      Server<Guest> moved = std::move(host.server);
      host.server = std::move(moved);
  }
}

void Guests::drain(Host& host, const Step& step) {
  static constexpr std::int64_t kGraces[6] = {0,           1'000'000,      50'000'000,
                                              500'000'000, 12'000'000'000, INT64_MAX};
  const Nanos grace{kGraces[step.b % 6]};
  const std::set<unsigned> before = host.live;
  host.told.clear();
  host.drained_by = deadline_after(world_.now(), grace);
  const unsigned drain = ++host.drains;
  host.owed.insert(drain);
  const auto done = [this, &host, drain, token = world_.token()] { on_done(host, drain); };
  world_.count(Event::sessions_drained);
  const int outer = std::exchange(host.drain_depth, world_.loop().depth());
  if (host.door != nullptr) {
    world_.note_closing(*host.door);
    host.server.drain(grace, done);
  } else {
    host.list->drain(grace, done);
  }
  host.drain_depth = outer;
  if (host.is_going || host.drains != drain) return;
  for (const unsigned number : before) {
    check(host.live.count(number) == 0 || host.told.count(number) == 1, "drain_is_told",
          "one of the sessions was not told on_drain()");
  }
}

void Guests::on_done(Host& host, unsigned number) {
  world_.moved();
  world_.tell("[drained]");
  // A run inside on_drain() may report that all is done.
  check(host.drain_depth < 0 || world_.loop().depth() > host.drain_depth, "not_from_inside",
        "done inside drain()");
  check(!host.is_going, "gone_hears_nothing", "done of Sessions that are gone");
  check(host.owed.erase(number) == 1, "drained_once", "done twice");
  check(host.is_going || host.list->empty(), "drained_is_empty", "%zu sessions are left",
        host.live.size());
  world_.visit({.where = Where::done});
}

void Guests::end_all(Host& host, const Step& step) {
  const std::set<unsigned> before = host.live;
  const std::error_code error =
      step.b % 2 == 0 ? make_error_code(Error::deadline) : make_error_code(Error::idle_timeout);
  const std::error_code outer = std::exchange(host.ending, error);
  world_.count(Event::ended_all);
  host.list->end_all(error);
  host.ending = outer;
  if (host.is_going) return;
  for (const unsigned number : before)
    check(host.live.count(number) == 0, "all_are_ended", "end_all() has left a session");
}

// Some sessions end during the iteration.
void Guests::for_each(Host& host, const Step& step, const Visit& visit) {
  const std::set<unsigned> before = host.live;
  std::set<unsigned> seen;
  const auto see = [&](Guest& guest) {
    world_.count(Event::session_visited);
    check(!host.is_going && host.live.count(guest.end().number) == 1, "visits_the_living",
          "for_each() comes to one that has ended");
    check(seen.insert(guest.end().number).second, "visits_once", "for_each() comes to one twice");
    End& end = guest.end();
    const Op op = step.b % 4 == 0   ? Op::abort
                  : step.b % 4 == 1 ? Op::close
                  : step.b % 4 == 2 ? Op::write
                                    : Op::use;
    if ((seen.size() + step.b) % 2 == 0 && end.has_handle())
      end.act({.op = op, .where = visit.where, .target = 0, .more = false, .a = step.a, .b = 0},
              visit);
    if (step.b % 16 == 5 && seen.size() == 2) destroy(host);
    if (step.b % 16 == 6 && seen.size() == 1) end_all(host, step);
  };
  host.list->for_each(see);
  if (host.is_going) return;
  for (const unsigned number : before)
    check(host.live.count(number) == 0 || seen.count(number) == 1, "visits_all",
          "for_each() has left one out");
}

// Closes its sessions in good order. No callback may follow.
void Guests::destroy(Host& host) {
  if (host.list == nullptr) return;
  host.is_going = true;
  host.owed.clear();
  host.list = nullptr;
  if (host.door != nullptr) world_.note_gone(*host.door);
  host.own.reset();
  host.server = Server<Guest>();
  check(host.guests == 0, "sessions_go", "%zu are left", host.guests);
}

// ---- invariants

void Guests::look() {
  for (const auto& host : hosts_) {
    check(host->list == nullptr || host->list->size() == host->live.size(), "sessions_count",
          "%zu of %zu sessions", host->list == nullptr ? 0 : host->list->size(), host->live.size());
  }
}

void Guests::check_settled() {
  for (const auto& host : hosts_) {
    check(host->guests == host->live.size(), "sessions_are_swept",
          "%zu sessions are there, and %zu have not ended", host->guests, host->live.size());
  }
}

void Guests::check_empty() {
  check_settled();
  if (world_.is_stormy()) return;
  for (const auto& host : hosts_) {
    check(host->live.empty(), "sessions_end", "%zu have not ended", host->live.size());
    check(host->owed.empty(), "drained_comes", "done has not come");
  }
}

void Guests::close() {
  for (const auto& host : hosts_) destroy(*host);
}

}  // namespace spate::chaos
