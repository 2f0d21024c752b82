// moodycamel::ConcurrentQueue, as evpp uses it where configured to. Tasks are dequeued in bulk,
// through a consumer token, which is its fastest way. The header has no version macro.
#include <concurrentqueue/concurrentqueue.h>

#include "eventfd_loop.h"

struct MoodycamelQueue {
  void push(Job task) { tasks.enqueue(std::move(task)); }

  void drain() {
    while (const auto n = tasks.try_dequeue_bulk(token, batch, 256))
      for (std::size_t i = 0; i < n; i++) batch[i]();
  }

  static void version() { bench_version("header-only, no version macro", nullptr); }

  moodycamel::ConcurrentQueue<Job> tasks;
  moodycamel::ConsumerToken token{tasks};
  Job batch[256];
};

int main(int argc, char** argv) {
  return PostPrograms<EventfdLoop<MoodycamelQueue>>::main(argc, argv);
}
