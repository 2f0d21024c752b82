// The queue of evpp's and muduo's event loops: a mutex and a vector, swapped out to run.
#include <mutex>

#include "eventfd_loop.h"

struct MutexQueue {
  void push(Job task) {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
  }

  void drain() {
    running.clear();
    {
      const std::lock_guard lock(mutex);
      running.swap(tasks);
    }
    for (auto& task : running) task();
  }

  static void version() { bench_version("hand-written", nullptr); }

  std::mutex mutex;
  std::vector<Job> tasks, running;  // both keep their capacity
};

int main(int argc, char** argv) { return PostPrograms<EventfdLoop<MutexQueue>>::main(argc, argv); }
