// Watches files, whether they exist or not, until ctrl-C.
//   watch_path /tmp/a /tmp/b
#include <iostream>
#include <list>

#include "spate/stat.h"

namespace {

void on_change(spate::Stat& watcher) {
  std::cout << watcher.path() << ": ";
  if (!watcher.current().exists()) {
    std::cout << "gone";
  } else {
    std::cout << (watcher.previous().exists() ? "changed, " : "created, ") << watcher.current().size
              << " bytes";
  }
  std::cout << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: watch_path PATH...\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  std::list<spate::Stat> watchers;
  for (int i = 1; i < argc; ++i)
    spate::must(watchers.emplace_back(*loop, on_change).start(argv[i]));
  std::cout << "watching" << std::endl;
  loop->run();
}
