// LoopTls: the state shared by all TLS connections of one loop: buffers for ciphertext, the loop's
// contexts, the handshake queue, and the list of busy connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/fifo.h"
#include "base/list.h"
#include "base/loans.h"
#include "core/loop_local.h"
#include "net/tls/tls_engine.h"
#include "spate/loop.h"
#include "spate/timer.h"

namespace spate {

class TlsAttempt;
struct InLine;
struct Unattended;
class TlsTransport;

// Buffers for the ciphertext of four records with its overhead, and as much plaintext.
struct TlsArea {
  static constexpr std::size_t kPlain = 64 * 1024;

  std::byte in[kPlain];
  std::byte out[kPlain + 2 * 1024];
};

class LoopTls final : public LoopLocal {
 public:
  // Returns the loop's LoopTls, which the first call makes. nullptr when memory runs out.
  static LoopTls* of(Loop& loop) { return local_of<LoopTls>(loop); }
  explicit LoopTls(Loop& loop);  // For local_of().

  Loans<TlsArea>::Loan lend_area() { return areas_.borrow(); }

  // On an error returns nullptr, and sets `why`.
  std::unique_ptr<TlsEngine> make_engine(const TlsContext& context, std::string_view host,
                                         TlsFailure& why);

  // Schedules step() of an attempt: at once, if this turn has a step left and the queue is empty.
  void ask(TlsAttempt& attempt);
  // As above, but never at once.
  void ask_later(TlsAttempt& attempt);
  void dequeue(TlsAttempt& attempt);

  // Attempts without a handle, which are destroyed with the loop.
  void adopt(TlsAttempt& attempt) { unattended_.push_front(attempt); }
  void disown(TlsAttempt& attempt) { unattended_.remove(attempt); }

  // Called when a transport moves bytes for the first time since rest_unless_busy(). It will be
  // asked again after a second or two.
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

  ~LoopTls() override;
  bool open() override { return areas_.open(); }
  void on_loop_end() override;
  TlsLoopContext* context_for(const std::shared_ptr<TlsProvider>& provider, TlsFailure& why);
  bool take_step();
  void serve_line();
  void sweep();
  void sweep_later();

  Loans<TlsArea> areas_;
  std::vector<Known> known_;
  Fifo<TlsAttempt, InLine> line_;
  bool is_serving_ = false;
  Timer turn_comes_;
  Nanos turn_{-1};  // The turn for which the steps were counted.
  int steps_ = 0;
  List<TlsAttempt, Unattended> unattended_;
  List<TlsTransport> busy_;
  TimerNode sweep_timer_{};  // Direct: it only queues `sweep_`.
  Node sweep_{};
};

}  // namespace spate
