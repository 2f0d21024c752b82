// ExchangeList: exchanges in a row. One is in at most one list, which it leaves when it goes.
//
// To visit all of a list while any of them may go: take it over, then pop them one by one.
#pragma once

namespace spate::http {

class ExchangeList;
class ExchangeState;

struct ExchangeLink {
  ExchangeState* next = nullptr;
  ExchangeState* previous = nullptr;
  ExchangeList* list = nullptr;
};

class ExchangeList {
 public:
  ExchangeList() = default;
  ExchangeList(const ExchangeList&) = delete;
  ExchangeList& operator=(const ExchangeList&) = delete;

  bool empty() const { return first_ == nullptr; }
  // At the front; it leaves the list that it was in.
  void push(ExchangeState& state);
  // The front; nullptr if there is none.
  ExchangeState* pop();
  // All of `other`, which is empty then; this list was.
  void take_over(ExchangeList& other);
  static void remove(ExchangeState& state);

 private:
  ExchangeState* first_ = nullptr;
};

}  // namespace spate::http
