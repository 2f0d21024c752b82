// The operations of a random program on a server's exchanges, in and out of callbacks, and the
// checks: bodies arrive unchanged, and no callback comes after the last one, or after the exchange
// was released.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spate/http/server.h"
#include "spate/loop.h"
#include "support/random.h"

namespace spate::testing {

inline constexpr std::size_t kMostBody = 40'000;

// The response expected on the wire for one request, by its number.
struct ExpectedAnswer {
  http::Method method = http::Method::get;
  std::string body;        // The request's body.
  std::string answer;      // The bytes that the handler has written.
  bool is_ended = false;   // By end() or respond().
  bool was_asked = false;  // The server has seen it.
  std::size_t number = 0;  // The request's number; differs if it was repeated.
  int informed = 0;
};

inline std::string letters(std::size_t number, std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (number * 7 + i) % 26);
  return text;
}

class Handlings;

// The user's side of one exchange.
class Handling final : public http::ExchangeHandler {
 public:
  Handling(Handlings& all, std::size_t number, http::Exchange given)
      : all_(all), number_(number), exchange(std::move(given)) {}

  inline void on_body(Bytes bytes) override;
  inline void on_body_end(const http::FieldsView& trailers) override;
  inline void on_client_end() override;
  inline void on_drained() override;
  inline void on_closed(std::error_code error) override;

  std::size_t number() const { return number_; }
  inline ExpectedAnswer& expected() const;

  bool is_started = false;
  bool is_paused = false;
  bool is_closed = false;  // Told so.
  bool is_silent = false;  // It has released the exchange: no callback may come any more.

 private:
  inline void note(const char* what);

  Handlings& all_;
  std::size_t number_;
  std::string received_;
  bool has_ended_ = false;  // The body.

 public:
  http::Exchange exchange;  // Destroyed first.
};

class Handlings {
 public:
  // `act_elsewhere` performs another operation of the program.
  Handlings(Random& given, Loop& loop, std::function<void()> act_elsewhere)
      : random(given), loop_(loop), act_elsewhere_(std::move(act_elsewhere)) {}

  // Returns a new number for the next request, and its expected response.
  std::pair<std::size_t, ExpectedAnswer*> add() {
    const std::size_t number = ++last_number_;
    ExpectedAnswer& added = expected[number];
    added.number = number;
    return {number, &added};
  }

  // A repeated request has a new number.
  std::size_t number_of(const http::Exchange& exchange) {
    const std::size_t number = std::stoul(std::string(exchange.request().path().substr(1)));
    EXPECT_TRUE(expected.contains(number));
    ExpectedAnswer& first = expected[number];
    EXPECT_EQ(exchange.request().method(), first.method);
    if (!std::exchange(first.was_asked, true)) return number;
    const auto [again, added] = add();
    added->method = first.method;
    added->body = first.body;
    added->was_asked = true;
    added->number = number;
    return again;
  }

  void on_request(http::Exchange exchange) {
    const std::size_t number = number_of(exchange);
    if (random.one_in(12)) return;  // Dropped: 500.
    if (random.one_in(6)) return read_whole(std::move(exchange), number);
    all_.push_back(std::make_unique<Handling>(*this, number, std::move(exchange)));
    Handling& handling = *all_.back();
    const std::size_t count = random.below(4);
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_alive(handling)) return;
      act(handling);
    }
  }

  // Called within a callback of a handling: performs an operation on this one or another.
  void on_call(Handling& handling) {
    if (is_settling_) return;
    if (random.one_in(2)) return act(handling);
    if (random.one_in(3)) act_on_any();
  }

  void act_on_any() {
    if (!all_.empty()) act(*all_[random.below(all_.size())]);
  }

  // ---- the end

  void forget_all() { all_.clear(); }
  // Their server is destroyed.
  void silence() {
    for (const auto& each : all_) each->is_silent = true;
  }
  // A paused exchange does not notice that the client has closed, so resume all.
  void begin_to_settle() {
    is_settling_ = true;
    for (const auto& handling : all_) {
      handling->is_paused = false;
      handling->exchange.resume();
      if (!handling->is_started) handling->exchange = {};
    }
  }
  // An exchange whose client has closed may still be open, so release all.
  void let_all_go() {
    for (const auto& handling : all_)
      if (handling->exchange.is_open()) let_go(*handling, false);
  }
  void expect_over() {
    for (const auto& handling : all_) {
      EXPECT_FALSE(handling->exchange.is_open());
      if (handling->is_started && !handling->is_silent)
        EXPECT_TRUE(handling->is_closed) << handling->number();
    }
  }

  Random& random;
  std::map<std::size_t, ExpectedAnswer> expected;

 private:
  void read_whole(http::Exchange exchange, std::size_t number) {
    http::read_body(std::move(exchange), random.one_in(3) ? random.below(kMostBody) : kMostBody,
                    [this, number](http::Exchange again, Bytes body) {
                      EXPECT_EQ(text_of(body), expected[number].body);
                      all_.push_back(std::make_unique<Handling>(*this, number, std::move(again)));
                      if (random.one_in(2)) act(*all_.back());
                    });
  }

  bool is_alive(const Handling& handling) const {
    return std::ranges::any_of(all_, [&](const auto& each) { return each.get() == &handling; });
  }

  http::Fields numbered(const Handling& handling) {
    http::Fields fields;
    fields.add("X-Number", std::to_string(handling.number()));
    return fields;
  }

  // Performs one operation on an exchange, which may be destroyed by it.
  void act(Handling& handling) {
    ExpectedAnswer& what = handling.expected();
    http::Exchange& exchange = handling.exchange;
    switch (random.below(16)) {
      case 0:
      case 1:
        return respond(handling);
      case 2:
        return begin(handling);
      case 3:
      case 4:
        return write(handling);
      case 5:
        return end(handling);
      case 6:
        if (exchange.inform(http::Status::early_hints)) ++what.informed;
        return;
      case 7:
      case 8:
        if (exchange.start(handling)) handling.is_started = true;
        return;
      case 9:
        handling.is_paused = true;
        return exchange.pause();
      case 10:
        handling.is_paused = false;
        return exchange.resume();
      case 11:
        if (random.one_in(3)) exchange.set_deadline(Nanos{1'000'000'000});
        return;
      case 12:
        if (!random.one_in(4)) return;
        handling.is_silent = true;
        return exchange.abort();
      case 13:
        return let_go(handling, random.one_in(2));
      case 14:
        if (random.one_in(4)) loop_.run(Run::no_wait);
        return;
      default:
        return act_elsewhere_();
    }
  }

  void begin(Handling& handling) {
    const bool is_sized = random.one_in(2);
    const std::size_t size = random.below(5000);
    handling.exchange.begin(http::Status::ok, numbered(handling),
                            is_sized ? std::optional<std::uint64_t>(size) : std::nullopt);
  }

  void end(Handling& handling) {
    const bool was_open = handling.exchange.is_open();
    if (handling.exchange.end()) {
      handling.expected().is_ended = true;
    } else if (was_open && !handling.exchange.is_open()) {
      handling.is_silent = true;  // Too short: it was reset.
    }
  }

  void respond(Handling& handling) {
    ExpectedAnswer& what = handling.expected();
    const std::string text = letters(handling.number(), random.below(3000));
    bool is_sent = false;
    if (random.one_in(2)) {
      is_sent = handling.exchange.respond(http::Status::ok, numbered(handling), bytes_of(text));
    } else {
      Buffer buffer;
      buffer.append(text);
      is_sent = handling.exchange.respond(http::Status::ok, numbered(handling), std::move(buffer));
    }
    if (!is_sent) return;
    what.answer = text;
    what.is_ended = true;
  }

  void write(Handling& handling) {
    ExpectedAnswer& what = handling.expected();
    const std::string text =
        letters(random.below(26), random.below(random.one_in(5) ? 90'000 : 900));
    bool is_sent = false;
    if (random.one_in(2)) {
      is_sent = handling.exchange.write(text);
    } else {
      Buffer buffer;
      buffer.append(text);
      is_sent = handling.exchange.write(std::move(buffer));
      if (!is_sent) EXPECT_EQ(buffer.size(), text.size());
    }
    if (is_sent) what.answer += text;
  }

  void let_go(Handling& handling, bool destroys) {
    handling.is_silent = true;
    if (!destroys) {
      handling.exchange = {};
      return;
    }
    const auto found =
        std::ranges::find_if(all_, [&](const auto& each) { return each.get() == &handling; });
    if (found == all_.end()) return;
    const std::unique_ptr<Handling> going = std::move(*found);
    all_.erase(found);
  }

  Loop& loop_;
  std::function<void()> act_elsewhere_;
  std::vector<std::unique_ptr<Handling>> all_;
  std::size_t last_number_ = 0;
  bool is_settling_ = false;
};

// ---- a handling

inline ExpectedAnswer& Handling::expected() const { return all_.expected[number_]; }

inline void Handling::note(const char* what) {
  EXPECT_TRUE(is_started && !is_silent && !is_closed) << what << " of " << number_;
}

inline void Handling::on_body(Bytes bytes) {
  note("on_body");
  EXPECT_FALSE(has_ended_ || is_paused);
  received_ += text_of(bytes);
  EXPECT_TRUE(expected().body.starts_with(received_)) << number_;
  all_.on_call(*this);
}

inline void Handling::on_body_end(const http::FieldsView&) {
  note("on_body_end");
  EXPECT_FALSE(is_paused);
  has_ended_ = true;
  EXPECT_EQ(received_, expected().body) << number_;
  all_.on_call(*this);
}

inline void Handling::on_client_end() {
  note("on_client_end");
  all_.on_call(*this);
}

inline void Handling::on_drained() {
  note("on_drained");
  all_.on_call(*this);
}

inline void Handling::on_closed(std::error_code error) {
  note("on_closed");
  is_closed = true;
  if (!error) EXPECT_TRUE(expected().is_ended) << number_;
  all_.on_call(*this);
}

}  // namespace spate::testing
