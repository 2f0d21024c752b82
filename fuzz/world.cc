// A World: the program of tests/swarms/small_world.h. The fuzzer's bytes replace the random draws
// of a seed. Bytes from the front make the program's choices. Bytes from the back choose the fate
// of each packet and the order of events. When the two meet, no more faults are injected.
#include <cstdint>
#include <cstdio>
#include <span>

#include "input.h"
#include "sim/kernel/kernel.h"
#include "swarms/small_world.h"

namespace spate::fuzz {
namespace {

using sim::Purpose;

// A byte is as much of a share as of a number below some bound.
constexpr std::uint64_t spread(std::uint8_t byte) { return byte * 0x0101'0101'0101'0101u; }

class Weather {
 public:
  Weather(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  std::uint64_t draw(Purpose purpose, std::uint64_t number) {
    switch (purpose) {
      case Purpose::scenario:
      case Purpose::inject:
      case Purpose::call:
        return rest_.empty() ? kFine : spread(front());
      case Purpose::order:
        return draw_order(number);
      case Purpose::program:  // Only to look random.
        return mix(number);
      default:
        return rest_.empty() ? kFine : spread(back());
    }
  }

 private:
  static constexpr std::uint64_t kFine = ~std::uint64_t{0};

  std::uint8_t front() {
    const std::uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }
  std::uint8_t back() {
    const std::uint8_t byte = rest_.back();
    rest_ = rest_.first(rest_.size() - 1);
    return byte;
  }
  // There are many of these: a byte is enough for some.
  std::uint64_t draw_order(std::uint64_t number) {
    if (number % 16 == 1) orders_ = rest_.empty() ? number : back();
    return mix(orders_ * 16 + number % 16);
  }

  std::span<const std::uint8_t> rest_;
  std::uint64_t orders_ = 0;
};

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spate::fuzz::Weather weather(data, size);
  spate::sim::World world(1);
  spate::sim::Kernel& kernel = *spate::sim::Kernel::current();
  kernel.draw_by([&](spate::sim::Purpose purpose, std::uint64_t number) {
    return weather.draw(purpose, number);
  });
  spate::testing::SmallWorld::play(world);
  if (kernel.findings.failure)
    std::fprintf(stderr, "not so: %s\n", kernel.findings.failure->name.c_str());
  spate::fuzz::check(!kernel.findings.failure);
  return 0;
}
