// Adds up the bytes of files on the threads of a pool, while the loop goes on ticking.
//   example_checksums file...      without a file, itself
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "spate/offload.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

namespace {

// Fletcher's, of as many bytes as there are.
struct Checksum {
  std::uint32_t value = 0;
  std::size_t size = 0;
};

Checksum checksum_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  Checksum sum;
  for (char byte = 0; file.get(byte); ++sum.size) {
    low = (low + static_cast<unsigned char>(byte)) % 65535;
    high = (high + low) % 65535;
  }
  sum.value = high << 16 | low;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  const std::vector<std::string> paths(argv + (argc > 1 ? 1 : 0), argv + argc);

  int ticks = 0;
  spate::Timer ticker{*loop, [&ticks] { ++ticks; }};
  ticker.start(1ms, 1ms);
  loop->unref();  // It is the jobs that keep the loop running.

  std::size_t done = 0;
  std::vector<spate::Offloading> jobs;
  for (const std::string& path : paths) {
    auto job = offload(
        *loop, [path] { return checksum_of(path); },
        [path, &done](Checksum sum) {
          std::printf("%08x %10zu %s\n", sum.value, sum.size, path.c_str());
          ++done;
        });
    if (!job) return 1;
    jobs.push_back(std::move(*job));
  }
  loop->run();
  std::printf("%d ticks meanwhile\n", ticks);
  return done == paths.size() ? 0 : 1;
}
