// The driver of a target where there is no libFuzzer: gives it each file that is named, or that is
// in a directory that is named.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
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

}  // namespace

int main(int count, char** arguments) {
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
