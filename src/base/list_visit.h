// ListVisit: a visit to each item of an intrusive list. Meanwhile items may be unlinked, the
// visited one included, other visits may be nested inside, and the list may be destroyed.
//
// The list keeps a pointer to the innermost visit. It calls pass() before it unlinks an item, and
// leave() when it is destroyed. `Visit` derives from this, and returns the item after another by
// its static function next().
#pragma once

#include <utility>

namespace spate {

template <class Visit, class Item>
class ListVisit {
 public:
  // Not inlined: g++ 12 warns of a dangling pointer to the visit otherwise.
  [[gnu::noinline]] ListVisit(Visit*& innermost, Item* first)
      : innermost_(&innermost),
        next_(first),
        outer_(std::exchange(innermost, static_cast<Visit*>(this))) {}
  ~ListVisit() {
    if (innermost_ != nullptr) *innermost_ = outer_;
  }
  ListVisit(const ListVisit&) = delete;
  ListVisit& operator=(const ListVisit&) = delete;

  // Returns the next item; nullptr at the end of the list, or if it was destroyed.
  Item* take() {
    if (innermost_ == nullptr || next_ == nullptr) return nullptr;
    return std::exchange(next_, Visit::next(*next_));
  }
  bool has_list() const { return innermost_ != nullptr; }
  bool is_at(const Item& item) const { return innermost_ != nullptr && next_ == &item; }

  // ---- called by the list

  static void pass(Visit* innermost, const Item& item) {
    for (ListVisit* visit = innermost; visit != nullptr; visit = visit->outer_)
      if (visit->next_ == &item) visit->next_ = Visit::next(item);
  }
  static void leave(Visit* innermost) {
    for (ListVisit* visit = innermost; visit != nullptr; visit = visit->outer_)
      visit->innermost_ = nullptr;
  }

 private:
  Visit** innermost_;  // nullptr when the list was destroyed.
  Item* next_;
  Visit* const outer_;
};

}  // namespace spate
