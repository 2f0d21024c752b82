#include "chaos/handshakes.h"

#include <utility>

#include "chaos/end.h"
#include "chaos/verdict.h"
#include "chaos/world.h"
#include "tls/testing/certificates.h"

namespace spate::chaos {

namespace {

// They cost more than the rest of a program.
constexpr std::size_t kMaxPairs = 3;
constexpr Nanos kTimeout{10'000'000'000};  // That of the contexts.

}  // namespace

void prepare_certificates() {
  static_cast<void>(testing::test_server_context());
  static_cast<void>(testing::test_client_context());
}

// Stands in for an End during its handshake, or for good if that fails.
struct Handshakes::Side final : Party {
  Side(World& its_world, End& its_end) : Party(its_world, 0, its_end.kind, true), before(its_end) {
    in = its_end.in;
    out = its_end.out;
  }

  void fail(const char* why) {
    may_show_end = may_show_cut = may_show_error = true;
    in->lose(why);
    out->lose(why);
  }

  End& before;
  Connecting attempt;
  bool in_begin = true;
  bool is_told = false;
  bool is_cancelled = false;
};

struct Handshakes::Pair {
  Pair(World& world, End& one, End& other) : first(world, one), second(world, other) {
    first.peer = &second;
    second.peer = &first;
  }

  Side first;
  Side second;
  Nanos since{0};
  bool may_fail = false;
};

Handshakes::Handshakes(World& world) : world_(world) {}
Handshakes::~Handshakes() = default;

// If bytes are unread or queued, the handshake may fail: plain bytes must not be taken for
// protected ones.
void Handshakes::begin(End& end, const Step& step) {
  if (pairs_.size() == kMaxPairs || end.out == nullptr || end.in == nullptr) return;
  if (end.peer->is_raw) return;
  auto& other = static_cast<End&>(*end.peer);
  if (other.is_acting() || !end.may_be_relayed() || !other.may_be_relayed()) return;
  Pair& pair = *pairs_.emplace_back(std::make_unique<Pair>(world_, end, other));
  pair.since = world_.now();
  pair.may_fail = !end.may_be_secured() || !other.may_be_secured();
  world_.tell("  end %u and end %u shake hands%s", end.number, other.number,
              pair.may_fail ? ", maybe in vain" : "");
  const bool is_client = step.a % 2 == 0;
  begin(pair, pair.first, end.pass_to_tls(), is_client);
  begin(pair, pair.second, other.pass_to_tls(), !is_client);
}

void Handshakes::begin(Pair& pair, Side& side, std::unique_ptr<Stream> plain, bool is_client) {
  const auto told = [this, &pair, &side, token = world_.token()](TlsResult<Stream> result) {
    on_told(pair, side, std::move(result));
  };
  side.attempt =
      is_client ? start_tls(std::move(*plain), testing::test_client_context(), "localhost", told)
                : accept_tls(std::move(*plain), testing::test_server_context(), told);
  side.in_begin = false;
  if (side.attempt.is_pending()) return;
  check(world_.is_stormy(), "handshake_begins", "no handshake");
  side.is_told = true;
  side.fail("a handshake without memory");
}

void Handshakes::on_told(Pair& pair, Side& side, TlsResult<Stream> result) {
  world_.moved();
  world_.tell("[end %u has shaken hands: %s]", side.before.number,
              result ? "yes" : result.error().text.c_str());
  check(!side.in_begin, "not_from_inside", "the callback inside start_tls()");
  check(!side.is_cancelled, "cancelled_hears_nothing", "a handshake that was given up");
  check(!std::exchange(side.is_told, true), "one_result", "a second result of a handshake");
  if (result) return go_on(side, std::move(*result));
  world_.count(Event::not_secured);
  side.peer->catch_up();
  const bool is_late =
      result.error().code == Error::deadline && world_.now() - pair.since >= kTimeout;
  check(is_late || pair.may_fail || world_.is_stormy() || side.peer->may_show_end ||
            side.peer->may_show_cut || side.peer->may_show_error,
        "handshake_succeeds", "%s", result.error().text.c_str());
  check(!result.error().text.empty(), "failure_has_words", "no words");
  side.fail("a handshake that has failed");
  world_.visit({.where = Where::connected});
}

void Handshakes::go_on(Side& side, Stream secured) {
  const auto info = tls_info(secured);
  check(info.has_value() && info->version == "TLSv1.3" && info->server_name == "localhost",
        "handshake_tells", "tls_info() is wrong");
  world_.count(Event::secured);
  if (info->is_resumed) world_.count(Event::resumed);
  End& end = world_.add_end(side.kind, std::move(secured));
  end.is_secure = true;
  end.in = side.in;
  end.out = side.out;
  end.peer = side.peer;
  end.peer->peer = &end;
  world_.tell("  end %u goes on as %u", side.before.number, end.number);
  end.go_on_from(side.before);
  world_.visit({Where::connected, &end});
}

void Handshakes::act(const Step& step) {
  if (step.a % 4 == 0) {
    const TlsServerOptions options{.identities = {testing::test_server().identity()}};
    check(testing::test_server_context().reload(options).has_value(), "reloads", "refused");
    world_.count(Event::reloaded);
  } else if (step.a % 4 == 1) {
    testing::test_server_context().rotate_tickets();
  } else if (!pairs_.empty()) {
    Pair& pair = *pairs_[step.target % pairs_.size()];
    Side& side = step.b % 2 == 0 ? pair.first : pair.second;
    if (side.is_told || side.is_cancelled) return;
    side.is_cancelled = true;
    side.fail("a handshake that was given up");
    side.attempt.cancel();
    world_.count(Event::handshake_cancelled);
  }
}

bool Handshakes::has_slow() const {
  for (const auto& pair : pairs_) {
    if (pair->first.kind == Kind::tcp &&
        (pair->first.attempt.is_pending() || pair->second.attempt.is_pending()))
      return true;
  }
  return false;
}

void Handshakes::check_settled() const {
  for (const auto& pair : pairs_) {
    for (const Side* side : {&pair->first, &pair->second}) {
      check(side->is_told || side->is_cancelled || world_.is_stormy(), "handshake_is_answered",
            "end %u: no result of its handshake", side->before.number);
    }
  }
}

void Handshakes::close() { pairs_.clear(); }

}  // namespace spate::chaos
