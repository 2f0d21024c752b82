#include "http/inspector/watched_loop.h"

#include <utility>

#include "spate/net/workers.h"

namespace spate::http {

// A posted task. Moving it moves the duty to deliver a report.
class Question {
 public:
  Question(std::shared_ptr<WatchedLoop> loop, bool measure, std::size_t max_streams)
      : loop_(std::move(loop)), max_streams_(max_streams), measure_(measure) {}
  Question(Question&& other) noexcept = default;
  ~Question() {
    if (loop_ != nullptr) tell(std::nullopt);
  }

  void operator()() { tell(loop_->make_report(measure_, max_streams_)); }

 private:
  void tell(std::optional<LoopReport> report) {
    const std::shared_ptr<WatchedLoop> loop = std::move(loop_);
    if (!loop->inbox_->deliver(loop, std::move(report))) loop->is_queried_ = false;
  }

  std::shared_ptr<WatchedLoop> loop_;
  std::size_t max_streams_;
  bool measure_;
};

// ---- the inbox

bool ReportInbox::deliver(std::shared_ptr<WatchedLoop> loop, std::optional<LoopReport> report) {
  const std::scoped_lock lock(mutex_);
  if (home_ == nullptr) return false;
  return home_->post(
      [inbox = shared_from_this(), loop = std::move(loop), report = std::move(report)]() mutable {
        if (inbox->receiver_ != nullptr) inbox->receiver_->on_report(*loop, std::move(report));
      });
}

void ReportInbox::close() {
  const std::scoped_lock lock(mutex_);
  home_ = nullptr;
  receiver_ = nullptr;
}

// ---- measuring

void Meter::set(Loop& loop, bool on) {
  if (on != loop.is_measuring_callbacks() && (on || measures_callbacks_)) {
    loop.measure_callbacks(on);
    measures_callbacks_ = on;
  }
  if (on != loop.is_measuring_waits() && (on || measures_waits_)) {
    loop.measure_waits(on);
    measures_waits_ = on;
  }
}

// ---- a loop

WatchedLoop::WatchedLoop(std::shared_ptr<ReportInbox> inbox, std::string name, Loop& loop)
    : inbox_(std::move(inbox)), name_(std::move(name)), loop_(&loop) {}

WatchedLoop::WatchedLoop(std::shared_ptr<ReportInbox> inbox, std::string name, Workers& workers,
                         unsigned index)
    : inbox_(std::move(inbox)),
      name_(std::move(name)),
      loop_(&workers.loop(index)),
      workers_(&workers),
      index_(index) {}

// A worker that has ended would keep a task for ever.
bool WatchedLoop::post(Job task) {
  return workers_ == nullptr ? loop_->post(std::move(task))
                             : workers_->post(index_, std::move(task));
}

void WatchedLoop::ask(bool measure, std::size_t max_streams) {
  is_queried_ = true;
  post(Question(shared_from_this(), measure, max_streams));
}

LoopReport WatchedLoop::make_report(bool measure, std::size_t max_streams) {
  this->measure(measure);
  return report_on(*loop_, max_streams);
}

void WatchedLoop::post_measuring(bool on) {
  post([self = shared_from_this(), on] { self->measure(on); });
}

}  // namespace spate::http
