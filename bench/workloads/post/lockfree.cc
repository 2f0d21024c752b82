// boost::lockfree::queue, as evpp uses it where configured to: it takes only trivial types, hence
// tasks on the heap.
#include <boost/lockfree/queue.hpp>
#include <boost/version.hpp>

#include "eventfd_loop.h"

struct LockfreeQueue {
  void push(Job task) {
    auto* moved = new Job(std::move(task));
    while (!tasks.push(moved)) continue;
  }

  void drain() {
    Job* task;
    while (tasks.pop(task)) {
      (*task)();
      delete task;
    }
  }

  static void version() {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", BOOST_VERSION / 100000,
             BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100);
    bench_version(version, nullptr);
  }

  boost::lockfree::queue<Job*> tasks{1024};
};

int main(int argc, char** argv) {
  return PostPrograms<EventfdLoop<LockfreeQueue>>::main(argc, argv);
}
