// Threads hand results to a loop, which adds them up without a lock.
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "spate/loop.h"

namespace {

constexpr int kThreads = 4;
constexpr int kTasks = 1000;

class Sum {
 public:
  explicit Sum(spate::Loop& loop) : loop_(loop) { loop_.ref(); }

  void add(int value) {
    total_ += value;
    if (++added_ == kThreads * kTasks) loop_.unref();
  }
  long total() const { return total_; }

 private:
  spate::Loop& loop_;
  long total_ = 0;
  int added_ = 0;
};

void produce(spate::Loop& loop, Sum& sum) {
  for (int i = 1; i <= kTasks; ++i) {
    while (!loop.post([&sum, i] { sum.add(i); })) std::this_thread::yield();
  }
}

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  Sum sum{*loop};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { produce(*loop, sum); });
  loop->run();
  std::printf("total %ld\n", sum.total());
  return sum.total() == kThreads * (kTasks * (kTasks + 1L) / 2) ? 0 : 1;
}
