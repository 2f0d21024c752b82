#include "net/workers/drain_notice.h"

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "spate/async.h"
#include "spate/hooks.h"
#include "sys/descriptor.h"

namespace spate {

// Connects the last ticket with the loop, either of which may end first.
struct DrainGate {
  std::mutex mutex;
  Async* async = nullptr;  // nullptr after the loop was destroyed.
};

namespace {

// Owned by itself, on the loop's thread.
class Notice {
 public:
  Notice(Loop& loop, std::shared_ptr<DrainGate> gate, Function<void()> done)
      : gate_(std::move(gate)),
        done_(std::move(done)),
        all_drained_(loop, [this] { call(); }),
        end_of_loop_(loop, [this] { delete this; }) {}
  Notice(const Notice&) = delete;
  Notice& operator=(const Notice&) = delete;
  ~Notice() {
    const std::scoped_lock lock(gate_->mutex);
    gate_->async = nullptr;
  }

  bool start() {
    if (!end_of_loop_.start() || !all_drained_.start()) return false;
    gate_->async = &all_drained_;
    return true;
  }

 private:
  void call() {
    Function<void()> done = std::move(done_);
    delete this;
    if (done) done();
  }

  const std::shared_ptr<DrainGate> gate_;
  Function<void()> done_;
  Async all_drained_;
  Cleanup end_of_loop_;
};

}  // namespace

class DrainTicketState {
 public:
  explicit DrainTicketState(std::shared_ptr<DrainGate> gate) : gate_(std::move(gate)) {}
  DrainTicketState(const DrainTicketState&) = delete;
  DrainTicketState& operator=(const DrainTicketState&) = delete;
  ~DrainTicketState() {
    const std::scoped_lock lock(gate_->mutex);
    if (gate_->async != nullptr) gate_->async->send();
  }

 private:
  const std::shared_ptr<DrainGate> gate_;
};

Result<DrainTicket> notify_when_drained(Loop& loop, Function<void()> done) {
  auto gate = std::make_shared<DrainGate>();
  auto ticket = std::make_shared<DrainTicketState>(gate);
  std::unique_ptr<Notice> notice(new (std::nothrow)
                                     Notice(loop, std::move(gate), std::move(done)));
  if (notice == nullptr || !notice->start()) return std::unexpected(sys::error_code(-ENOMEM));
  notice.release();
  return ticket;
}

}  // namespace spate
