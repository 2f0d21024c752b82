// WatchedLoop: a loop of another thread, or of this one, that is asked what it does. Desk: where
// the answers arrive.
//
// A question is a task that is posted to the loop. It answers on that loop's thread by a task that
// is posted to the Inspector's; or, if the loop ends and destroys it uncalled, that there is
// nobody. The Desk is what both threads know of each other, and outlives either.
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

// Who asks.
class Asking {
 public:
  // None: the loop has ended.
  virtual void on_answer(WatchedLoop& loop, std::optional<LoopReport> report) = 0;

 protected:
  ~Asking() = default;
};

class Desk : public std::enable_shared_from_this<Desk> {
 public:
  Desk(Loop& home, Asking& asking) : home_(&home), asking_(&asking) {}
  // Any thread. False if nobody waits for answers any more, or memory runs out.
  bool deliver(std::shared_ptr<WatchedLoop> loop, std::optional<LoopReport> report);
  // The thread of `home`: no answer arrives from here on.
  void close();

 private:
  std::mutex mutex_;
  Loop* home_;      // nullptr once it is closed.
  Asking* asking_;  // The same; on the thread of `home`.
};

// What is measured for whom: on the thread of the loop. What somebody else has asked for stays.
class Meter {
 public:
  void set(Loop& loop, bool on);

 private:
  bool measures_callbacks_ = false;
  bool measures_waits_ = false;
};

// Shared with the questions to it. All but `meter` and `is_asked` is the Inspector's.
class WatchedLoop : public std::enable_shared_from_this<WatchedLoop> {
 public:
  // The only one of a source, or a worker's.
  WatchedLoop(std::shared_ptr<Desk> desk, std::string name, Loop& loop);
  WatchedLoop(std::shared_ptr<Desk> desk, std::string name, Workers& workers, unsigned index);

  const std::string& name() const { return name_; }
  Loop& loop() const { return *loop_; }
  // Whether it has not yet answered a question.
  bool is_asked() const { return is_asked_.load(); }
  void has_answered() { is_asked_ = false; }

  // It is to measure or not, and to report.
  void ask(bool measure, std::size_t max_streams);
  // The same of the Inspector's own.
  LoopReport answer(bool measure, std::size_t max_streams);
  // Only that, without an answer.
  void ask_to_measure(bool on);
  void measure(bool on) { meter_.set(*loop_, on); }

  // ---- what is known of it

  std::optional<LoopReport> report;
  Nanos asked_at{0};
  std::uint64_t round = 0;  // In which it was asked last.
  bool has_ended = false;

 private:
  friend class Question;
  bool post(Job task);

  const std::shared_ptr<Desk> desk_;
  const std::string name_;
  Loop* const loop_;
  Workers* const workers_ = nullptr;
  const unsigned index_ = 0;
  Meter meter_;
  std::atomic<bool> is_asked_{false};
};

}  // namespace spate::http
