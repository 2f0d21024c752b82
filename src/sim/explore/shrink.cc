#include "sim/explore/shrink.h"

#include <algorithm>
#include <optional>

namespace spate::sim {

namespace {

class Shrinking {
 public:
  Shrinking(const std::function<bool(const Numbers&)>& holds, std::size_t most)
      : holds_(holds), left_(most) {}

  Numbers run(Numbers all) {
    if (all.empty() || holds({})) return {};
    std::size_t parts = 2;
    while (all.size() > 1 && left_ != 0) {
      if (std::optional<Numbers> less = smaller(all, parts)) {
        parts = less->size() <= all.size() / parts ? 2 : std::max<std::size_t>(parts - 1, 2);
        all = std::move(*less);
      } else if (parts >= all.size()) {
        break;
      } else {
        parts = std::min(parts * 2, all.size());
      }
    }
    return all;
  }

 private:
  bool holds(const Numbers& numbers) {
    if (left_ == 0) return false;
    --left_;
    return holds_(numbers);
  }

  // Tries each of `parts` parts, and each complement.
  std::optional<Numbers> smaller(const Numbers& all, std::size_t parts) {
    const auto begin_of = [&](std::size_t part) {
      return all.begin() + static_cast<std::ptrdiff_t>(all.size() * part / parts);
    };
    for (std::size_t part = 0; part < parts; ++part) {
      const Numbers one(begin_of(part), begin_of(part + 1));
      if (holds(one)) return one;
    }
    for (std::size_t part = 0; parts > 2 && part < parts; ++part) {
      Numbers others(all.begin(), begin_of(part));
      others.insert(others.end(), begin_of(part + 1), all.end());
      if (holds(others)) return others;
    }
    return std::nullopt;
  }

  const std::function<bool(const Numbers&)>& holds_;
  std::size_t left_;
};

}  // namespace

Numbers shrink(Numbers all, const std::function<bool(const Numbers&)>& holds, std::size_t most) {
  return Shrinking(holds, most).run(std::move(all));
}

}  // namespace spate::sim
