// A shared object with a copy of the library, which watches a signal.
#include <csignal>
#include <memory>

#include "spate/loop.h"
#include "spate/signal.h"

namespace {

std::unique_ptr<spate::Loop> loop;
std::unique_ptr<spate::Signal> watcher;
int calls = 0;

}  // namespace

#define SPATE_PART extern "C" __attribute__((visibility("default")))

SPATE_PART void start() {
  loop = spate::must(spate::Loop::create());
  watcher = std::make_unique<spate::Signal>(*loop, [] { ++calls; });
  spate::must(watcher->start(SIGUSR1));
}
// Returns how often the watcher was called since the last time.
SPATE_PART int turn() {
  for (int i = 0; i < 3; ++i) spate::must(loop->run(spate::Run::no_wait));
  const int counted = calls;
  calls = 0;
  return counted;
}
SPATE_PART void stop() {
  watcher.reset();
  loop.reset();
}
