#include "net/secure/tls_hub.h"

#include <cerrno>
#include <utility>

#include "net/secure/tls_attempt.h"
#include "net/secure/tls_transport.h"

namespace spate {

TlsHub::TlsHub(Loop& loop) : LoopLocal(loop), turn_comes_(loop, bind<&TlsHub::serve_line>(this)) {
  sweep_timer_.head.priority = kDirect;
  sweep_timer_.head.context = this;
  sweep_timer_.head.callback = [](void* context, Node&, Events) {
    TlsHub& hub = *static_cast<TlsHub*>(context);
    hub.loop().feed(hub.sweep_, Events::timer);
  };
  sweep_.context = this;
  sweep_.callback = [](void* context, Node&, Events) { static_cast<TlsHub*>(context)->sweep(); };
}

TlsHub::~TlsHub() = default;

void TlsHub::on_loop_end() {
  while (TlsAttempt* attempt = unattended_.first()) delete attempt;
  turn_comes_.stop();
  loop().stop(sweep_timer_);
  loop().clear_pending(sweep_);
  forsake_loop();
}

// ---- contexts

std::unique_ptr<TlsEngine> TlsHub::make_engine(const TlsContext& context, std::string_view host,
                                               TlsFailure& why) {
  TlsLoopContext* ours = context_for(context.provider(), why);
  return ours == nullptr ? nullptr : ours->make_engine(host, why);
}

// One that cannot be made anew after a reload stays as it was.
TlsLoopContext* TlsHub::context_for(const std::shared_ptr<TlsProvider>& provider, TlsFailure& why) {
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

// ---- whose turn it is

// A turn has one time. On a clock that stands still, the line has turns of its own.
bool TlsHub::take_step() {
  const Nanos now = loop().now();
  if (std::exchange(turn_, now) != now) steps_ = 0;
  return steps_ < kStepsPerTurn && ++steps_ != 0;
}

void TlsHub::ask(TlsAttempt& attempt) {
  if (attempt.place() != 0) return;
  if (line_.empty() && take_step()) return attempt.step();
  ask_later(attempt);
}

void TlsHub::ask_later(TlsAttempt& attempt) {
  if (attempt.place() != 0) return;
  if (!line_.push(&attempt)) return attempt.step();
  attempt.set_place(static_cast<std::uint32_t>(line_.size()));
  if (!turn_comes_.is_active() && !turn_comes_.start(Nanos{0})) turn_comes_.feed();
}

void TlsHub::leave_line(TlsAttempt& attempt) {
  if (attempt.place() == 0) return;
  line_[attempt.place() - 1] = nullptr;
  attempt.set_place(0);
}

// A step calls no user code. It may put the attempt in the line again.
void TlsHub::serve_line() {
  steps_ = 0;
  turn_ = loop().now();
  const std::size_t end = line_.size();
  while (served_ < end && steps_ < kStepsPerTurn) {
    TlsAttempt* attempt = line_[served_++];
    if (attempt == nullptr) continue;
    ++steps_;
    attempt->set_place(0);
    attempt->step();
  }
  if (served_ == line_.size()) {
    line_.clear();
    served_ = 0;
  } else if (!turn_comes_.start(Nanos{0})) {
    turn_comes_.feed();
  }
}

// ---- who has been idle

void TlsHub::note_busy(TlsTransport& transport) {
  busy_.add(transport);
  if (sweep_timer_.head.active == 0) sweep_later();
}

// Without memory for the timer, they rest some time after the next one that is busy.
void TlsHub::sweep_later() {
  if (is_alive()) loop().restart(sweep_timer_, deadline_after(loop().now(), kSweep).count());
}

void TlsHub::sweep() {
  Chain<TlsTransport> all = std::exchange(busy_, {});
  while (TlsTransport* transport = all.first()) {
    all.remove(*transport);
    if (!transport->rest_unless_busy()) busy_.add(*transport);
  }
  if (busy_.first() != nullptr) sweep_later();
}

}  // namespace spate
