#include "net/tls/loop_tls.h"

#include <cerrno>
#include <utility>

#include "net/tls/tls_attempt.h"
#include "net/tls/tls_transport.h"
#include "spate/named_callback.h"

namespace spate {

LoopTls::LoopTls(Loop& loop)
    : LoopLocal(loop),
      turn_comes_(loop, named<Timer, ActiveKind::tls_handshake>(bind<&LoopTls::serve_line>(this))) {
  sweep_timer_.head.priority = kDirect;
  sweep_timer_.head.context = this;
  sweep_timer_.head.callback = [](void* context, Node&, Events) {
    LoopTls& loop_state = *static_cast<LoopTls*>(context);
    loop_state.loop().feed(loop_state.sweep_, Events::timer);
  };
  sweep_.context = this;
  sweep_.callback = [](void* context, Node&, Events) { static_cast<LoopTls*>(context)->sweep(); };
}

LoopTls::~LoopTls() = default;

void LoopTls::on_loop_end() {
  while (TlsAttempt* attempt = unattended_.first()) delete attempt;
  turn_comes_.stop();
  loop().stop(sweep_timer_);
  loop().clear_pending(sweep_);
  on_loop_destroyed();
}

// ---- contexts

std::unique_ptr<TlsEngine> LoopTls::make_engine(const TlsContext& context, std::string_view host,
                                                TlsFailure& why) {
  TlsLoopContext* ours = context_for(context.provider(), why);
  return ours == nullptr ? nullptr : ours->make_engine(host, why);
}

// If a context cannot be made after a reload(), the old one stays in use.
TlsLoopContext* LoopTls::context_for(const std::shared_ptr<TlsProvider>& provider,
                                     TlsFailure& why) {
  const std::uint64_t generation = provider->generation();
  std::erase_if(known_, [](const Known& known) { return known.provider.expired(); });
  for (Known& known : known_) {
    if (known.provider.lock() != provider) continue;
    if (known.generation == generation) return known.context.get();
    if (auto context = provider->open_for_loop(why)) {
      known.generation = generation;
      known.context = std::move(context);
    }
    return known.context.get();
  }
  auto context = provider->open_for_loop(why);
  if (context == nullptr) return nullptr;
  known_.push_back({provider, generation, std::move(context)});
  return known_.back().context.get();
}

// ---- the handshake queue

// A turn has one loop time. With a clock that stands still, serve_line() also counts as a turn.
bool LoopTls::take_step() {
  const Nanos now = loop().now();
  if (std::exchange(turn_, now) != now) steps_ = 0;
  if (steps_ == kStepsPerTurn) return false;
  ++steps_;
  return true;
}

void LoopTls::ask(TlsAttempt& attempt) {
  if (line_.is_linked(attempt)) return;
  if (!is_serving_ && line_.empty() && take_step()) return attempt.step();
  ask_later(attempt);
}

void LoopTls::ask_later(TlsAttempt& attempt) {
  if (line_.is_linked(attempt)) return;
  line_.push(attempt);
  attempt.on_queued(true);
  if (!turn_comes_.is_active() && !turn_comes_.start(Nanos{0})) turn_comes_.feed();
}

void LoopTls::dequeue(TlsAttempt& attempt) {
  if (!line_.is_linked(attempt)) return;
  line_.remove(attempt);
  attempt.on_queued(false);
}

// A step calls no user code. It may queue the attempt again.
void LoopTls::serve_line() {
  steps_ = 0;
  turn_ = loop().now();
  is_serving_ = true;
  for (std::size_t left = line_.size(); left > 0 && steps_ < kStepsPerTurn; --left) {
    TlsAttempt* const attempt = line_.pop();
    if (attempt == nullptr) break;
    ++steps_;
    attempt->on_queued(false);
    attempt->step();
  }
  is_serving_ = false;
  if (!line_.empty() && !turn_comes_.start(Nanos{0})) turn_comes_.feed();
}

// ---- idle connections

void LoopTls::note_busy(TlsTransport& transport) {
  busy_.push_front(transport);
  if (sweep_timer_.head.active == 0) sweep_later();
}

// Without memory for the timer, the sweep follows the next note_busy().
void LoopTls::sweep_later() {
  if (is_alive()) loop().restart(sweep_timer_, deadline_after(loop().now(), kSweep).count());
}

void LoopTls::sweep() {
  List<TlsTransport> all = std::move(busy_);
  while (TlsTransport* transport = all.pop_front()) {
    if (!transport->rest_unless_busy()) busy_.push_front(*transport);
  }
  if (!busy_.empty()) sweep_later();
}

}  // namespace spate
