#include "sim/kernel.h"

#include <algorithm>

#include "spate/assert.h"

namespace spate::sim {

namespace {

constexpr std::size_t kMaxDescriptors = 1u << 20;

thread_local Kernel* here = nullptr;

}  // namespace

Kernel::Kernel(std::uint64_t seed, Surroundings& surroundings)
    : seed_(seed), surroundings_(surroundings), now_(kBeginning) {
  SPATE_ASSERT(here == nullptr);
  here = this;
}

Kernel::~Kernel() { here = nullptr; }

void Kernel::close_all() {
  for (std::shared_ptr<File>& file : files_) file = nullptr;
  open_count_ = 0;
}

Kernel* Kernel::current() { return here; }

void Kernel::at(Nanos time, Happening happening) {
  happenings_.emplace(std::pair{std::max(time, now_), ++happening_count_}, std::move(happening));
}

bool Kernel::happen() {
  const std::pair<Nanos, std::uint64_t> end{now_, happening_count_};
  bool any = false;
  while (!happenings_.empty() && happenings_.begin()->first <= end) {
    auto first = happenings_.extract(happenings_.begin());
    first.mapped()();
    any = true;
  }
  return any;
}

int Kernel::open(std::shared_ptr<File> file) {
  const auto free = std::ranges::find(files_, nullptr);
  const auto number = static_cast<std::size_t>(free - files_.begin());
  if (number == kMaxDescriptors) return -EMFILE;
  if (free == files_.end()) files_.emplace_back();
  files_[number] = std::move(file);
  ++open_count_;
  return kFirstDescriptor + static_cast<int>(number);
}

std::shared_ptr<File> Kernel::find(int fd) const {
  const auto number = static_cast<std::size_t>(fd - kFirstDescriptor);
  return fd >= kFirstDescriptor && number < files_.size() ? files_[number] : nullptr;
}

long Kernel::close(int fd) {
  const std::shared_ptr<File> closing = find(fd);
  if (closing == nullptr) return -EBADF;
  files_[static_cast<std::size_t>(fd - kFirstDescriptor)] = nullptr;
  --open_count_;
  return 0;
}

}  // namespace spate::sim
