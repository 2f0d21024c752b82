#include "http/pair/pair_world.h"

#include <algorithm>

namespace spate::testing {

namespace {

// At the same time, for each kind.
constexpr int kMostOpen = 12;

template <class T>
bool are_enough(const std::vector<std::unique_ptr<T>>& all) {
  return std::ranges::count_if(all, [](const auto& each) { return each->is_open(); }) > kMostOpen;
}

template <class T>
void let_go_of(std::vector<std::unique_ptr<T>>& all, T& what) {
  what.silence();
  const auto found =
      std::ranges::find_if(all, [&](const auto& each) { return each.get() == &what; });
  if (found == all.end()) return;
  const std::unique_ptr<T> going = std::move(*found);
  all.erase(found);
}

template <class T>
void act_on_any(Random& random, const std::vector<std::unique_ptr<T>>& all) {
  if (!all.empty()) all[random.below(all.size())]->act();
}

// A repeated request has a new peer, so the first attempt has none.
template <class T>
void forget_attempt(const std::vector<std::unique_ptr<T>>& all, std::size_t number) {
  for (const auto& each : all)
    if (!each->is_client() && each->number() == number) each->lose_other_end();
}

}  // namespace

PairWorld::~PairWorld() {
  askings_.clear();
  talkings_.clear();
  tunnelings_.clear();
  handlings.forget_all();
}

void PairWorld::run(int steps) {
  SCOPED_TRACE(std::string(sides_.has_sockets() ? "sockets " : "memory ") +
               (sides_.has_gateway() ? "gateway" : ""));
  for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
  settle();
}

// ---- used by its ends

void PairWorld::let_go(Asking& asking) { let_go_of(askings_, asking); }
void PairWorld::let_go(Talking& talking) { let_go_of(talkings_, talking); }
void PairWorld::let_go(Tunneling& tunneling) { let_go_of(tunnelings_, tunneling); }

std::string& PairWorld::bytes_of(const Tunneling& tunneling) {
  return bytes_[{tunneling.number(), tunneling.is_client()}];
}
std::string& PairWorld::bytes_to(const Tunneling& tunneling) {
  return bytes_[{tunneling.number(), !tunneling.is_client()}];
}

std::vector<std::string>& PairWorld::messages_of(const Talking& talking) {
  return messages_[{talking.number(), talking.is_client()}];
}
const std::vector<std::string>* PairWorld::messages_to(const Talking& talking) const {
  const auto found = messages_.find({talking.number(), !talking.is_client()});
  return found == messages_.end() ? nullptr : &found->second;
}

// ---- requests to the server

void PairWorld::on_request(http::Exchange exchange) {
  const std::string path(exchange.request().path());
  if (path.starts_with("/tunnel/"))
    return serve_tunnel(std::move(exchange), std::stoul(path.substr(8)));
  if (path.starts_with("/ws/"))
    return serve_socket(std::move(exchange), std::stoul(path.substr(4)));
  handlings.on_request(std::move(exchange));
}

void PairWorld::serve_socket(http::Exchange exchange, std::size_t number) {
  if (random.one_in(6)) return;
  messages_.erase({number, false});
  forget_attempt(talkings_, number);
  talkings_.push_back(std::make_unique<Talking>(*this, false, number));
  Talking& talking = *talkings_.back();
  if (!talking.accept(std::move(exchange))) return let_go(talking);
  if (random.one_in(2)) talking.act();
}

void PairWorld::serve_tunnel(http::Exchange exchange, std::size_t number) {
  if (random.one_in(6)) return;
  bytes_[{number, false}].clear();
  forget_attempt(tunnelings_, number);
  Result<Stream> stream = exchange.upgrade("talk");
  if (!stream) return;
  tunnelings_.push_back(std::make_unique<Tunneling>(*this, false, number));
  Tunneling& tunneling = *tunnelings_.back();
  tunneling.open(std::move(*stream));
  if (random.one_in(2)) tunneling.act();
}

// ---- operations

void PairWorld::act_anywhere() {
  switch (random.below(10)) {
    case 0:
      return ask();
    case 1:
      return connect();
    case 2:
    case 3:
      return act_on_any(random, askings_);
    case 4:
    case 5:
      return act_on_any(random, talkings_);
    case 6:
      if (random.one_in(4)) loop_->run(Run::no_wait);
      return;
    case 8:
      return ask_for_tunnel();
    case 9:
      return act_on_any(random, tunnelings_);
    default:
      return act_on_all();
  }
}

void PairWorld::act_on_all() {
  if (random.one_in(60)) {
    for (const auto& each : askings_) each->silence();
    for (const auto& each : tunnelings_) each->silence_call();
    sides_.renew_client();
  } else if (random.one_in(60)) {
    handlings.silence();
    sides_.renew_server();
  } else if (random.one_in(60)) {
    sides_.drain_server();
  } else if (random.one_in(60) && sides_.has_gateway()) {
    sides_.renew_gateway();
  } else if (random.one_in(30)) {
    client().close_idle();
  }
}

void PairWorld::ask() {
  if (are_enough(askings_)) return;
  const auto [number, added] = handlings.add();
  askings_.push_back(std::make_unique<Asking>(*this, number));
  askings_.back()->begin(*added);
}

void PairWorld::connect() {
  if (are_enough(talkings_)) return;
  talkings_.push_back(std::make_unique<Talking>(*this, true, ++last_socket_));
  talkings_.back()->connect();
}

void PairWorld::ask_for_tunnel() {
  if (are_enough(tunnelings_)) return;
  tunnelings_.push_back(std::make_unique<Tunneling>(*this, true, ++last_tunnel_));
  tunnelings_.back()->ask();
}

// ---- the program

void PairWorld::step() {
  switch (random.below(10)) {
    case 0:
      return ask();
    case 1:
      if (random.one_in(3)) connect();
      if (random.one_in(3)) ask_for_tunnel();
      return;
    case 2:
      return act_anywhere();
    case 3:
      return handlings.act_on_any();
    case 4:
      if (random.one_in(8)) clock_.advance(Nanos{random.span(4'000'000'000)});
      return;
    default:
      loop_->run(Run::no_wait);
  }
}

// Lifts all pauses: then everything must end without waiting for time.
void PairWorld::settle() {
  is_settling_ = true;
  for (int i = 0; i < 40; ++i) {
    finish_all();
    for (int turn = 0; turn < 30; ++turn) loop_->run(Run::no_wait);
  }
  for (const auto& each : askings_) each->expect_over();
  for (const auto& each : talkings_) each->expect_over();
  for (const auto& each : tunnelings_) each->expect_over();
  sides_.expect_no_calls();
  pass_minutes();
  handlings.let_all_go();
  pass_minutes();
  sides_.expect_nothing_left();
  handlings.expect_over();
}

void PairWorld::finish_all() {
  handlings.begin_to_settle();
  handlings.let_all_go();
  for (const auto& each : askings_) each->finish();
  for (const auto& each : talkings_) each->finish();
  for (const auto& each : tunnelings_) each->finish();
}

void PairWorld::pass_minutes() {
  for (int i = 0; i < 60; ++i) {
    clock_.advance(Nanos{2'000'000'000});
    for (int turn = 0; turn < 5; ++turn) loop_->run(Run::no_wait);
  }
}

}  // namespace spate::testing
