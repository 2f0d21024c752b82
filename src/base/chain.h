// Chain: a list of objects that bring their links along, so that neither adding nor removing one
// takes memory. It owns none of them.
#pragma once

namespace spate {

template <class T>
class Chain;

// The links of a T, which derives from this and is in one Chain at most.
template <class T>
class Linked {
  friend class Chain<T>;

  T* next_ = nullptr;
  T* previous_ = nullptr;
};

template <class T>
class Chain {
 public:
  // nullptr if there is none. The one that was added last.
  T* first() const { return first_; }

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
