// The drop-in libevent's evbuffers: runs the same operations on three of them and on three strings.
#include "dropin/buffers/evbuffer_model.h"
#include "input.h"

namespace {

class FuzzedWorld {
 public:
  explicit FuzzedWorld(spate::fuzz::Input input) : input_(input) {}

  std::size_t below(std::size_t limit) { return input_.below(limit); }
  bool is_over() const { return input_.empty(); }
  void check(bool holds, const char*) { spate::fuzz::check(holds); }

 private:
  spate::fuzz::Input input_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedWorld world(spate::fuzz::Input(data, size));
  spate::dropin::EvbufferModel<FuzzedWorld>(world).run(300);
  return 0;
}
