// Computes checksums of files on a thread pool, and prints each when it is done.
//   checksums FILE...
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "spate/offload.h"

namespace {

// Returns Fletcher's checksum.
std::uint32_t checksum(std::istream& file) {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  for (char byte = 0; file.get(byte);) {
    low = (low + static_cast<unsigned char>(byte)) % 65535;
    high = (high + low) % 65535;
  }
  return high << 16 | low;
}

std::string line_for(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return path + ": cannot be opened";
  return path + ": " + std::to_string(checksum(file));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: checksums FILE...\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  std::vector<spate::Offloading> jobs;
  for (int i = 1; i < argc; ++i) {
    jobs.push_back(spate::must(offload(
        *loop, [path = std::string(argv[i])] { return line_for(path); },
        [](const std::string& line) { std::cout << line << "\n"; })));
  }
  loop->run();
}
