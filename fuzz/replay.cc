// The driver of a target where there is no libFuzzer: gives it each file that is named, or that is
// in a directory that is named. `--random SEED COUNT [FIRST]` gives it random inputs instead, from
// number FIRST on. The number of an input that fails is printed.
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

bool replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::fprintf(stderr, "%s cannot be read\n", path.c_str()), false;
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::printf("%s\n", path.filename().c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

volatile std::uint64_t current = 0;  // The number of the random input.

void report(int) {
  std::fprintf(stderr, "random input %llu failed\n", static_cast<unsigned long long>(current));
  std::_Exit(1);
}

// Returns the size of input `number`: the same for each run.
std::size_t fill(std::array<std::uint8_t, 320>& input, std::uint64_t seed, std::uint64_t number) {
  std::uint64_t state = (seed << 40) + number * 0x9e3779b97f4a7c15u + 1;
  const auto next = [&state] {  // xorshift
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  next();
  next();
  const std::size_t size = 20 + next() % 300;
  for (std::size_t i = 0; i < size; ++i) input[i] = static_cast<std::uint8_t>(next() >> 32);
  return size;
}

int run_random(int count, char** arguments) {
  std::uint64_t numbers[3] = {};  // The seed, the count and the first number.
  for (int i = 2; i < count; ++i) {
    char* end = nullptr;
    numbers[i - 2] = std::strtoull(arguments[i], &end, 10);
    if (end == arguments[i] || *end != '\0')
      return std::fprintf(stderr, "\"%s\" is no number\n", arguments[i]), 1;
  }
  std::signal(SIGABRT, report);
  std::array<std::uint8_t, 320> input;
  for (std::uint64_t i = 0; i < numbers[1]; ++i) {
    current = numbers[2] + i;
    LLVMFuzzerTestOneInput(input.data(), fill(input, numbers[0], current));
  }
  std::printf("%llu random inputs\n", static_cast<unsigned long long>(numbers[1]));
  return numbers[1] > 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if ((count == 4 || count == 5) && std::string_view(arguments[1]) == "--random")
    return run_random(count, arguments);
  int replayed = 0;
  for (int i = 1; i < count; ++i) {
    std::error_code error;
    if (!fs::is_directory(arguments[i], error)) {
      if (!replay(arguments[i])) return 1;
      ++replayed;
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(arguments[i], error)) {
      if (!replay(entry.path())) return 1;
      ++replayed;
    }
  }
  std::printf("%d inputs\n", replayed);
  return replayed > 0 ? 0 : 1;
}
