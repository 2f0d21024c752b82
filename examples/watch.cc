// Prints the changes in a directory tree, until ctrl-C.
//   watch /tmp/tree
#include <iostream>

#include "spate/watch.h"

namespace {

void print(const spate::WatchEvent& event) {
  std::cout << spate::name_of(event.change);
  if (event.is_found) std::cout << " (found)";
  if (event.change == spate::Change::moved) std::cout << ' ' << event.old_path << " ->";
  std::cout << ' ' << (event.path.empty() ? "." : event.path) << (event.is_directory ? "/" : "");
  if (event.error) std::cout << ": " << event.error.message();
  std::cout << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: watch DIRECTORY\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto watch = spate::Watch::start(
      *loop, argv[1], [](const spate::Result<std::span<const spate::WatchEvent>>& events) {
        if (!events) {
          std::cout << "the watch has ended: " << events.error().message() << std::endl;
          return;
        }
        for (const spate::WatchEvent& event : *events) print(event);
      });
  if (!watch) {
    std::cerr << argv[1] << ": " << watch.error().message() << '\n';
    return 1;
  }
  loop->run();
}
