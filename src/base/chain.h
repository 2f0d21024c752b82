// Chain: an intrusive list. Adding and removing do not allocate; it does not own its items.
#pragma once

namespace spate {

template <class T>
class Chain;

// The links. T derives from this, and is in at most one Chain.
template <class T>
class Linked {
  friend class Chain<T>;

  T* next_ = nullptr;
  T* previous_ = nullptr;
};

template <class T>
class Chain {
 public:
  // Returns the item added last; nullptr if empty.
  T* first() const { return first_; }

  template <class F>
  void for_each(const F& show) const {
    for (T* item = first_; item != nullptr; item = links(*item).next_) show(*item);
  }

  void add(T& item) {
    links(item).previous_ = nullptr;
    links(item).next_ = first_;
    if (first_ != nullptr) links(*first_).previous_ = &item;
    first_ = &item;
  }
  void remove(T& item) {
    const Linked<T>& gone = links(item);
    (gone.previous_ == nullptr ? first_ : links(*gone.previous_).next_) = gone.next_;
    if (gone.next_ != nullptr) links(*gone.next_).previous_ = gone.previous_;
  }

 private:
  static Linked<T>& links(T& item) { return item; }

  T* first_ = nullptr;
};

}  // namespace spate
