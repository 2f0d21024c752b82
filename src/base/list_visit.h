// ListVisit: a visit to each item of an intrusive list. Meanwhile items may be unlinked, the
// visited one included, other visits may be nested inside, and the list may be destroyed.
//
// The list keeps a pointer to the innermost visit. It calls pass() before it unlinks an item, and
// detach() when it is destroyed. `Visit` derives from this, and returns the item after another by
// its static function next().
#pragma once

#include <utility>

#include "base/guard.h"

namespace spate {

template <class Visit, class Item>
class ListVisit : public StackGuard<Visit> {
 public:
  ListVisit(Visit*& innermost, Item* first) : StackGuard<Visit>(innermost), next_(first) {}

  // Returns the next item; nullptr at the end of the list, or if it was destroyed.
  Item* take() {
    if (this->is_gone() || next_ == nullptr) return nullptr;
    return std::exchange(next_, Visit::next(*next_));
  }
  bool has_list() const { return !this->is_gone(); }
  bool is_at(const Item& item) const { return has_list() && next_ == &item; }

  // Called by the list.
  static void pass(Visit* innermost, const Item& item) {
    Visit::for_each(innermost, [&](ListVisit& visit) {
      if (visit.next_ == &item) visit.next_ = Visit::next(item);
    });
  }

 private:
  Item* next_;
};

}  // namespace spate
