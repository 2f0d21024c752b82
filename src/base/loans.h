// Loans: receive buffers, each lent to a callback until it returns. If the callback runs the loop,
// it keeps its buffer, and nested callbacks borrow others. So a callback never sees bytes of
// another connection, however deep the nesting.
//
// One buffer is kept for the next loan; those of nested calls are freed when they are returned.
#pragma once

#include <new>
#include <utility>

#include "base/memory.h"

namespace spate {

template <class T>
class Loans {
  struct Piece {
    T value;
  };

 public:
  // A borrowed buffer. The destructor returns it, and poisons it for the address sanitizer.
  class Loan {
   public:
    Loan(Loans& loans, Piece* piece) : loans_(loans), piece_(piece) {}
    Loan(Loan&& other) noexcept
        : loans_(other.loans_), piece_(std::exchange(other.piece_, nullptr)) {}
    Loan& operator=(Loan&&) = delete;
    [[gnu::always_inline]] ~Loan() {
      if (piece_ != nullptr) loans_.take_back(piece_);
    }

    // False if memory ran out.
    explicit operator bool() const { return piece_ != nullptr; }
    T& operator*() const { return piece_->value; }
    T* operator->() const { return &piece_->value; }

   private:
    Loans& loans_;
    Piece* piece_;
  };

  Loans() = default;
  ~Loans() {
    if (spare_ != nullptr) mark_used(spare_, sizeof(Piece));
    delete spare_;
  }
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  // Allocates the first buffer. False when memory runs out.
  bool open() {
    if (spare_ == nullptr) spare_ = new (std::nothrow) Piece;
    return spare_ != nullptr;
  }

  Loan borrow() {
    Piece* piece = std::exchange(spare_, nullptr);
    if (piece != nullptr) {
      mark_used(piece, sizeof(Piece));
    } else {
      piece = new (std::nothrow) Piece;
    }
    return Loan(*this, piece);
  }

 private:
  void take_back(Piece* piece) {
    if (spare_ != nullptr) return delete piece;
    spare_ = piece;
    mark_unused(piece, sizeof(Piece));
  }

  Piece* spare_ = nullptr;
};

}  // namespace spate
