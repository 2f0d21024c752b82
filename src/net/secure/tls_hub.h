// TlsHub: what all TLS connections of one loop share: the memory that ciphertext passes through,
// the loop's own contexts, whose turn it is to shake hands, and who has been idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/array.h"
#include "base/chain.h"
#include "base/loans.h"
#include "core/loop_local.h"
#include "net/secure/tls_engine.h"
#include "spate/loop.h"
#include "spate/timer.h"

namespace spate {

class TlsAttempt;
class TlsTransport;

// Ciphertext of four records, with what comes around it, and as much plaintext.
struct TlsArea {
  static constexpr std::size_t kPlain = 64 * 1024;

  std::byte in[kPlain];
  std::byte out[kPlain + 2 * 1024];
};

class TlsHub final : public LoopLocal {
 public:
  // The loop's; made when it is first asked for. nullptr when memory runs out.
  static TlsHub* of(Loop& loop) { return local_of<TlsHub>(loop); }
  explicit TlsHub(Loop& loop);  // For local_of().

  Loans<TlsArea>::Loan lend_area() { return areas_.borrow(); }

  // nullptr, and why.
  std::unique_ptr<TlsEngine> make_engine(const TlsContext& context, std::string_view host,
                                         TlsFailure& why);

  // Has step() of it called: at once, if this turn has a step left and nobody waits for one.
  void ask(TlsAttempt& attempt);
  // The same, but never at once.
  void ask_later(TlsAttempt& attempt);
  void leave_line(TlsAttempt& attempt);

  // Those that nobody keeps go with the loop.
  void adopt(TlsAttempt& attempt) { unattended_.add(attempt); }
  void disown(TlsAttempt& attempt) { unattended_.remove(attempt); }

  // It has moved bytes for the first time since it was asked to rest: that is a second or two after
  // the last time.
  void note_busy(TlsTransport& transport);
  void forget_busy(TlsTransport& transport) { busy_.remove(transport); }

 private:
  static constexpr int kStepsPerTurn = 8;
  static constexpr Nanos kSweep{1'000'000'000};

  struct Known {
    std::weak_ptr<TlsProvider> provider;
    std::uint64_t generation;
    std::unique_ptr<TlsLoopContext> context;
  };

  ~TlsHub() override;
  bool open() override { return areas_.open(); }
  void on_loop_end() override;
  TlsLoopContext* context_for(const std::shared_ptr<TlsProvider>& provider, TlsFailure& why);
  bool take_step();
  void serve_line();
  void sweep();
  void sweep_later();

  Loans<TlsArea> areas_;
  std::vector<Known> known_;
  Array<TlsAttempt*> line_;  // Those that have left are nullptr.
  std::size_t served_ = 0;
  Timer turn_comes_;
  Nanos turn_{-1};  // Of which the steps were taken.
  int steps_ = 0;
  Chain<TlsAttempt> unattended_;
  Chain<TlsTransport> busy_;
  TimerNode sweep_timer_{};  // Direct: it only queues `sweep_`.
  Node sweep_{};
};

}  // namespace spate
