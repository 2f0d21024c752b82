// The post_task programs of evpp's benchmarks, written once over a contestant's Loop:
//
//   struct Loop {
//     Loop();                          // made and destroyed on the main thread
//     void run();                      // on its own thread, until stop(); sleeps when idle
//     void stop();                     // from any thread; run() returns soon
//     template <class F> void post(F&&);  // from any thread: run() calls it once, later
//     static void version();           // calls bench_version()
//   };
//
// A task fits two words, so a std::function holds it without allocating.
#ifndef BENCH_WORKLOADS_POST_H
#define BENCH_WORKLOADS_POST_H

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "harness/contestant.h"

template <class Loop>
class PostPrograms {
 public:
  static int main(int argc, char** argv) {
    const long program = bench_number(argc, argv, "program", 1);
    PostPrograms programs(bench_number(argc, argv, "producers", 2),
                          bench_number(argc, argv, "count", 100000),
                          bench_number(argc, argv, "cores", 1024));
    Loop::version();
    switch (program) {
      case 1: programs.ring(); break;
      case 2: programs.pairs(); break;
      case 3: programs.one_to_one(); break;
      case 6: programs.many_to_one(); break;
      default: fprintf(stderr, "--program is 1, 2, 3 or 6\n"); return 2;
    }
    return programs.report();
  }

 private:
  PostPrograms(long producers, long count, long cores)
      : producers_(std::uint32_t(producers)),
        count_(std::uint64_t(count)),
        cores_(int(cores)),
        sums_(producers_) {}

  // 1: the loops stand in a ring; each task posts the next one to the next loop.
  void ring() {
    expected_ = count_;
    start_loops(producers_);
    begin_ = bench_now_ns();
    ring_task(0);
    finish();
  }

  void ring_task(std::uint32_t to) {
    loops_[to]->post([this, to] {
      sums_[0].value += ++tasks_;
      if (tasks_ == count_) return done();
      ring_task(to + 1 < producers_ ? to + 1 : 0);
    });
  }

  // 2: the loops stand in pairs; each pair bounces a task until all have run `count` together.
  void pairs() {
    expected_ = count_;
    start_loops(producers_);
    begin_ = bench_now_ns();
    for (std::uint32_t i = 0; i < producers_; i += 2) pair_task(i);
    finish();
  }

  void pair_task(std::uint32_t to) {
    loops_[to]->post([this, to] {
      const auto turn = shared_tasks_.fetch_add(1, std::memory_order_relaxed) + 1;
      if (turn > count_) return;
      if (turn == count_) return done();
      pair_task(to ^ 1);
    });
  }

  // 3: one loop posts `count` tasks to another.
  void one_to_one() { many_to_one(); }

  // 6: each of T loops posts `count` tasks to one more loop.
  void many_to_one() {
    expected_ = count_ * producers_;
    next_.resize(producers_);
    start_loops(producers_ + 1);
    begin_ = bench_now_ns();
    for (std::uint32_t p = 0; p < producers_; p++) loops_[p]->post([this, p] { produce(p); });
    finish();
  }

  void produce(std::uint32_t producer) {
    Loop& consumer = *loops_[producers_];
    for (std::uint64_t i = 0; i < count_; i++)
      consumer.post([this, tag = std::uint64_t(producer) << 48 | i] { consume(tag); });
  }

  void consume(std::uint64_t tag) {
    const auto producer = tag >> 48, turn = tag & 0xffffffffffff;
    out_of_order_ += turn != next_[producer]++;
    sums_[producer].value += turn;
    if (++tasks_ == expected_) done();
  }

  void start_loops(std::uint32_t n) {
    std::latch running(n);
    for (std::uint32_t i = 0; i < n; i++) {
      loops_.push_back(std::make_unique<Loop>());
      threads_.emplace_back([this, loop = loops_.back().get(), i] {
        pin(i);
        loop->run();
      });
      loops_.back()->post([&running] { running.count_down(); });
    }
    running.wait();
  }

  // Loop i stays on the i-th of the allowed cores (of the first --cores of them), wrapping around:
  // left to the scheduler, whether two loops share a core would decide a run by a factor of 30.
  void pin(std::uint32_t i) const {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int skip = int(i) % std::min(CPU_COUNT(&allowed), cores_), core = 0;
    while (!CPU_ISSET(core, &allowed) || skip-- > 0) core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }

  void done() {
    end_ = bench_now_ns();
    finished_.count_down();
  }

  void finish() {
    finished_.wait();
    for (auto& loop : loops_) loop->stop();
    for (auto& thread : threads_) thread.join();
  }

  int report() {
    const double seconds = double(end_ - begin_) / 1e9;
    bench_metric("posts_per_s", "1/s", double(expected_) / seconds);
    const auto shared = shared_tasks_.load();
    bench_work("tasks", shared > count_ ? count_ : shared + tasks_);
    std::uint64_t sum = 0;
    for (std::uint32_t p = 0; p < producers_; p++) sum += (p + 1) * sums_[p].value;
    bench_work("sum", sum);
    bench_work("out_of_order", out_of_order_);
    bench_ops("post", expected_);
    return 0;
  }

  struct alignas(64) Sum {
    std::uint64_t value = 0;
  };

  const std::uint32_t producers_;
  const std::uint64_t count_;
  const int cores_;
  std::uint64_t expected_ = 0, tasks_ = 0, begin_ = 0, end_ = 0, out_of_order_ = 0;
  std::vector<Sum> sums_;
  std::vector<std::uint64_t> next_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::thread> threads_;
  std::latch finished_{1};
  alignas(64) std::atomic<std::uint64_t> shared_tasks_{0};
};

#endif
