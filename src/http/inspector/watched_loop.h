// WatchedLoop: a loop, on this or another thread, that is queried for its statistics. ReportInbox:
// receives the reports.
//
// A query is a task that is posted to the loop. On that loop's thread it posts a task with the
// report to the Inspector's loop. If the loop is destroyed first, the task's destructor reports
// that. The ReportInbox is shared by both threads, and outlives either.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "http/inspector/loop_report.h"
#include "spate/loop.h"

namespace spate {
class Workers;
}

namespace spate::http {

class WatchedLoop;

// The receiver of reports.
class ReportReceiver {
 public:
  // Without a report, the loop was destroyed.
  virtual void on_report(WatchedLoop& loop, std::optional<LoopReport> report) = 0;

 protected:
  ~ReportReceiver() = default;
};

class ReportInbox : public std::enable_shared_from_this<ReportInbox> {
 public:
  ReportInbox(Loop& home, ReportReceiver& receiver) : home_(&home), receiver_(&receiver) {}
  // Any thread. False after close(), or when memory runs out.
  bool deliver(std::shared_ptr<WatchedLoop> loop, std::optional<LoopReport> report);
  // Stops the delivery of reports. Called on the thread of `home`.
  void close();

 private:
  std::mutex mutex_;
  Loop* home_;      // nullptr after close().
  ReportReceiver* receiver_;  // As home_; used on the thread of `home`.
};

// Switches measuring on the loop's thread. Does not switch off measuring that was turned on by
// other code.
class Meter {
 public:
  void set(Loop& loop, bool on);

 private:
  bool measures_callbacks_ = false;
  bool measures_waits_ = false;
};

// Shared with its queries. All members except `meter` and `is_queried` are used on the Inspector's
// thread.
class WatchedLoop : public std::enable_shared_from_this<WatchedLoop> {
 public:
  // A loop that is a source by itself, or that of a worker.
  WatchedLoop(std::shared_ptr<ReportInbox> inbox, std::string name, Loop& loop);
  WatchedLoop(std::shared_ptr<ReportInbox> inbox, std::string name, Workers& workers,
              unsigned index);

  const std::string& name() const { return name_; }
  Loop& loop() const { return *loop_; }
  // Returns whether a query is outstanding.
  bool is_queried() const { return is_queried_.load(); }
  void end_query() { is_queried_ = false; }

  // Posts a query that also switches measuring on or off.
  void ask(bool measure, std::size_t max_streams);
  // Does the same directly, for the Inspector's own loop.
  LoopReport make_report(bool measure, std::size_t max_streams);
  // Switches measuring, without receiver for a report.
  void post_measuring(bool on);
  void measure(bool on) { meter_.set(*loop_, on); }

  // ---- latest data

  std::optional<LoopReport> report;
  Nanos queried_at{0};
  std::uint64_t round = 0;  // The round of the last query.
  bool has_ended = false;

 private:
  friend class Question;
  bool post(Job task);

  const std::shared_ptr<ReportInbox> inbox_;
  const std::string name_;
  Loop* const loop_;
  Workers* const workers_ = nullptr;
  const unsigned index_ = 0;
  Meter meter_;
  std::atomic<bool> is_queried_{false};
};

}  // namespace spate::http
