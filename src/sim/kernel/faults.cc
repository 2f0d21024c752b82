#include "sim/kernel/faults.h"

#include <algorithm>
#include <utility>

namespace spate::sim {

bool Faults::inject(Event event, History& history) {
  event.number = ++count_;
  if (only_ && !std::ranges::binary_search(*only_, count_)) return false;
  history.note(event);
  if (only_) passed_.push_back(std::move(event));
  return true;
}

}  // namespace spate::sim
