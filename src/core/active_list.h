// ActiveList: the entries of for_each_active(). Entries of one kind and id are merged.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "spate/active.h"
#include "spate/export.h"
#include "spate/layer/node.h"

namespace spate {

class ActiveList {
 public:
  SPATE_EXPORT void add(ActiveInfo info);
  // Adds a node under the name of its callback; `info` is what its kind of node is by itself.
  void add(const Node& node, ActiveInfo info);

  std::int64_t total() const { return total_; }
  // Returns the entries in the order of their kinds.
  std::vector<ActiveInfo> take() const;

 private:
  std::map<std::pair<ActiveKind, const void*>, ActiveInfo> entries_;
  std::int64_t total_ = 0;
};

}  // namespace spate
