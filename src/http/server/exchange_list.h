// ExchangeList: an intrusive list of exchanges. An exchange has one link per row, so that
// membership in one list does not affect another.
//
// To visit all elements while any of them may be destroyed: move the list with take_over(), then
// pop each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spate::http {

class ExchangeList;
class ExchangeState;

enum class ExchangeRow : std::uint8_t {
  in_progress,  // Checked once a second.
  due,          // The loop will settle or log it.
};
inline constexpr std::size_t kExchangeRows = 2;

struct ExchangeLink {
  ExchangeState* next = nullptr;
  ExchangeState* previous = nullptr;
  ExchangeList* list = nullptr;
};

class ExchangeList {
 public:
  explicit ExchangeList(ExchangeRow row) : row_(row) {}
  ExchangeList(const ExchangeList&) = delete;
  ExchangeList& operator=(const ExchangeList&) = delete;

  bool empty() const { return first_ == nullptr; }
  // Adds it at the front, and removes it from its current list of this row.
  void push(ExchangeState& state);
  // Removes and returns the front; nullptr if the list is empty.
  ExchangeState* pop();
  // Moves all of `other`, of the same row, to this list, which was empty.
  void take_over(ExchangeList& other);

  static void remove(ExchangeState& state, ExchangeRow row);

 private:
  const ExchangeRow row_;
  ExchangeState* first_ = nullptr;
};

}  // namespace spate::http
