// List: an intrusive list. Adding and removing take constant time and do not allocate. It does not
// own its items, and must be empty of them, or abandoned with them, when it is destroyed.
//
// The links are a ring through the items and the list itself. Therefore an item leaves its list
// without knowing which one that is, and no operation has a special case.
#pragma once

namespace spate {

template <class T, class Tag = void>
class List;

// The links. T derives from one for each list that it can be in at a time, each with its own tag.
template <class T, class Tag = void>
class Linked {
 public:
  Linked() = default;
  Linked(const Linked&) = delete;
  Linked& operator=(const Linked&) = delete;

  bool is_linked() const { return next_ != nullptr; }
  // Removes it from its list. Must be linked.
  void unlink() {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = nullptr;
  }

 private:
  friend class List<T, Tag>;

  Linked* next_ = nullptr;
  Linked* previous_ = nullptr;
};

template <class T, class Tag>
class List {
  using Links = Linked<T, Tag>;

 public:
  List() { close(); }
  // Takes the items of `other`.
  List(List&& other) noexcept {
    close();
    take_over(other);
  }
  List& operator=(List&&) = delete;

  bool empty() const { return ring_.next_ == &ring_; }
  // Return nullptr at the end.
  T* first() const { return item_of(ring_.next_); }
  T* after(const T& item) const { return item_of(static_cast<const Links&>(item).next_); }

  // Must not be linked.
  void push_front(T& item) { insert(item, *ring_.next_); }
  void push_back(T& item) { insert(item, ring_); }
  // Removes and returns the first item; nullptr if empty.
  T* pop_front() {
    T* const item = first();
    if (item != nullptr) remove(*item);
    return item;
  }
  static void remove(T& item) { static_cast<Links&>(item).unlink(); }
  static bool is_linked(const T& item) { return static_cast<const Links&>(item).is_linked(); }
  // Appends all items of `other`.
  void take_over(List& other) {
    if (other.empty()) return;
    Links& first = *other.ring_.next_;
    Links& last = *other.ring_.previous_;
    join(*ring_.previous_, first);
    join(last, ring_);
    other.close();
  }
  // Calls `function` with each item, which may remove this item.
  template <class Function>
  void for_each(const Function& function) const {
    for (T* item = first(); item != nullptr;) {
      T* const next = after(*item);
      function(*item);
      item = next;
    }
  }

 private:
  void close() { ring_.next_ = ring_.previous_ = &ring_; }
  T* item_of(Links* links) const { return links == &ring_ ? nullptr : static_cast<T*>(links); }
  static void join(Links& before, Links& after) {
    before.next_ = &after;
    after.previous_ = &before;
  }
  static void insert(T& item, Links& after) {
    Links& links = item;
    join(*after.previous_, links);
    join(links, after);
  }

  Links ring_;
};

}  // namespace spate
