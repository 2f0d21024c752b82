// Threads post results to a loop, which sums them without a lock.
#include <cstdio>
#include <thread>
#include <vector>

#include "spate/loop.h"

namespace {

constexpr int kThreads = 4;
constexpr int kTasks = 1000;

}  // namespace

int main() {
  auto loop = spate::must(spate::Loop::create());
  loop->ref();
  long total = 0;
  int left = kThreads * kTasks;

  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int value = 1; value <= kTasks; ++value) {
        loop->post([&, value] {
          total += value;
          if (--left == 0) loop->unref();
        });
      }
    });
  }
  loop->run();
  std::printf("total %ld\n", total);
}
