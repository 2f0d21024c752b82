// Notes which tests reach which place of the library's code, for tools/mutants.py. The library is
// compiled with -fsanitize-coverage=trace-pc, which calls __sanitizer_cov_trace_pc() in each basic
// block.
//
// A program writes to the file $SPATE_REACH.<process>: a line for each place, with the module, the
// place's offset there, and the first tests of GoogleTest that reached it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kSlots = std::size_t{1} << 20;  // More than the library has basic blocks.
constexpr std::size_t kMost = 6;                      // Tests that are noted for a place.

struct Place {
  std::atomic<std::uintptr_t> at;
  std::array<std::atomic<std::uint32_t>, kMost> tests;  // 1 + the number.
};
Place places[kSlots];
std::atomic<std::uint32_t> running{0};  // 1 + the number of the test; 0: nothing is noted.
std::vector<std::string> names;
pid_t owner = 0;

// Returns the slot of the place, or a free one after it; nullptr if the table is full.
Place* find(std::uintptr_t at) {
  std::size_t slot = (at * 0x9e3779b97f4a7c15u) >> 44;
  for (std::size_t i = 0; i < 64; ++i, slot = (slot + 1) % kSlots) {
    std::uintptr_t found = places[slot].at.load(std::memory_order_relaxed);
    if (found == 0 && places[slot].at.compare_exchange_strong(found, at)) return &places[slot];
    if (found == at) return &places[slot];
  }
  return nullptr;
}

void note(std::uintptr_t at, std::uint32_t test) {
  Place* const place = find(at);
  if (place == nullptr) return;
  for (std::atomic<std::uint32_t>& each : place->tests) {
    std::uint32_t found = each.load(std::memory_order_relaxed);
    if (found == 0 && each.compare_exchange_strong(found, test)) return;
    if (found == test) return;
  }
}

void write(std::FILE* file, const Place& place) {
  Dl_info module{};
  const std::uintptr_t at = place.at.load();
  if (at == 0 || dladdr(reinterpret_cast<void*>(at), &module) == 0) return;
  // The address is behind the call, and may belong to the next line.
  const std::uintptr_t offset = at - 1 - reinterpret_cast<std::uintptr_t>(module.dli_fbase);
  std::fprintf(file, "%s 0x%lx", module.dli_fname, static_cast<unsigned long>(offset));
  for (const std::atomic<std::uint32_t>& test : place.tests) {
    if (test.load() != 0) std::fprintf(file, " %s", names[test.load() - 1].c_str());
  }
  std::fputc('\n', file);
}

class Listener final : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override {
    names.push_back(std::string(test.test_suite_name()) + '.' + test.name());
    running = static_cast<std::uint32_t>(names.size());
  }
  void OnTestEnd(const ::testing::TestInfo&) override { running = 0; }
  void OnTestProgramEnd(const ::testing::UnitTest&) override {
    if (::getpid() != owner) return;
    const std::string path = std::string(std::getenv("SPATE_REACH")) + '.' + std::to_string(owner);
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) return;
    for (const Place& place : places) write(file, place);
    std::fclose(file);
  }
};

const bool begun = [] {
  if (std::getenv("SPATE_REACH") == nullptr) return false;
  owner = ::getpid();
  ::testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  return true;
}();

}  // namespace

// Called in each basic block of the library.
extern "C" void __sanitizer_cov_trace_pc();
void __sanitizer_cov_trace_pc() {
  const std::uint32_t test = running.load(std::memory_order_relaxed);
  if (test != 0) note(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)), test);
}
