// Shared by the tests of sessions: a session that records its callbacks.
#pragma once

#include <functional>
#include <string>
#include <system_error>

#include "spate/net/session.h"

namespace spate::testing {

// Shared by all sessions of a test.
struct Book {
  int alive = 0;
  int opened = 0;
  std::string log;
  std::error_code error;
  std::function<void(Session&)> when_opened;
  std::function<void(Session&)> when_data;
  std::function<void(Session&)> when_drained;
  std::function<void(Session&)> when_closed;
};

class Noting : public Session {
 public:
  explicit Noting(Book& book) : book_(book) { ++book_.alive; }
  ~Noting() override { --book_.alive; }

  void on_open() override {
    ++book_.opened;
    if (book_.when_opened) book_.when_opened(*this);
  }
  std::size_t on_data(Bytes bytes) override {
    book_.log += text_of(bytes);
    const std::size_t size = bytes.size();
    if (book_.when_data) book_.when_data(*this);
    return size;
  }
  void on_drain() override {
    book_.log += "drain ";
    if (book_.when_drained) return book_.when_drained(*this);
    Session::on_drain();
  }
  void on_closed(std::error_code error) override {
    book_.log += "closed ";
    book_.error = error;
    if (book_.when_closed) book_.when_closed(*this);
  }

 private:
  Book& book_;
};

}  // namespace spate::testing
