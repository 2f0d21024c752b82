// Sends commands to Redis in one pipeline, and prints the responses in order.
//   redis localhost 6379 'SET a 1' 'INCR a' 'LRANGE list 0 -1'
//   redis localhost 6379 'SUBSCRIBE news'     prints published messages, for ever
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "spate/loop.h"
#include "spate/net/request_pipe.h"

using spate::Bytes;
using spate::Frame;
using spate::Result;

namespace {

constexpr std::string_view kLineEnd = "\r\n";

// A message of the protocol, RESP 2 or 3: one value, or a tree of values in depth-first order.
struct Resp {
  static constexpr std::int64_t kMaxCount = 1'000'000;
  static constexpr std::int64_t kMaxText = 512 * 1024 * 1024;

  Frame next(Bytes bytes) const {
    return walk(bytes, [](char, std::string_view) {});
  }
  bool is_push(Bytes message) const { return spate::text_of(message).starts_with('>'); }

  // Calls `visit(type, text)` for each value, and returns where the message ends.
  template <class Visit>
  static Frame walk(Bytes bytes, Visit visit) {
    const std::string_view text = spate::text_of(bytes);
    std::size_t at = 0;
    for (std::int64_t left = 1; left > 0; --left) {
      const std::size_t end = text.find(kLineEnd, at);
      if (end == std::string_view::npos) return Frame::unfinished(text.size() + 1);
      if (end == at) return Frame::broken();
      const char type = text[at];
      std::string_view value = text.substr(at + 1, end - at - 1);
      at = end + kLineEnd.size();
      if (const std::int64_t children = children_of(type); children > 0) {
        const std::int64_t count = number(value, kMaxCount);
        if (count < -1 || left > kMaxCount) return Frame::broken();
        if (count > 0) left += count * children;
        if (type == '|') ++left;  // Attributes, and then the value.
        if (count >= 0) continue;
        value = "(nil)";
      } else if (is_counted(type)) {
        const std::int64_t size = number(value, kMaxText);
        if (size < -1) return Frame::broken();
        const std::size_t whole = size < 0 ? at : at + static_cast<std::size_t>(size) + 2;
        if (text.size() < whole) return Frame::unfinished(whole);
        value = size < 0 ? "(nil)" : text.substr(at, static_cast<std::size_t>(size));
        at = whole;
      }
      visit(type, type == '_' ? "(nil)" : value);
    }
    return Frame::whole(bytes.first(at), at);
  }

 private:
  static bool is_counted(char type) { return type == '$' || type == '=' || type == '!'; }
  static std::int64_t children_of(char type) {
    if (type == '*' || type == '~' || type == '>') return 1;
    return type == '%' || type == '|' ? 2 : 0;
  }
  // Returns -1 for null, and -2 for anything that is not a number up to `max`.
  static std::int64_t number(std::string_view text, std::int64_t max) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, value);
    return error != std::errc() || last != end || value < -1 || value > max ? -2 : value;
  }
};

// Encodes words that are separated by single spaces.
std::string command(std::string_view line) {
  std::string words;
  int count = 0;
  for (std::size_t at = 0; at <= line.size(); ++count) {
    const std::string_view word = line.substr(at, line.find(' ', at) - at);
    words += '$' + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
    at += word.size() + 1;
  }
  return '*' + std::to_string(count) + "\r\n" + words;
}

void print(Bytes message) {
  Resp::walk(message, [](char type, std::string_view text) {
    std::cout << (type == '-' || type == '!' ? "error: " : "") << text << "\n";
  });
  std::cout << std::flush;
}

bool is_subscription(std::string_view line) { return line.starts_with("SUBSCRIBE "); }

class Redis {
 public:
  // With `stays` it never gives up connecting.
  Redis(spate::Loop& loop, std::string_view host, std::uint16_t port, bool stays)
      : pipe_(spate::must(spate::RequestPipe<Resp>::create(
            loop, host, port, {}, {.on_connected = [this] { greet(); }, .on_push = &print},
            {.client = {.max_failures = stays ? 0u : 3u},
             .limits = {.max_unread = Resp::kMaxText}}))) {}

  void ask(std::string_view line) {
    if (is_subscription(line)) {  // Its response is pushed.
      subscriptions_ += command(line);
      return;
    }
    const std::error_code error = pipe_.request(command(line), [this](Result<Bytes> response) {
      if (response) return print(*response);
      std::cout << response.error().message() << std::endl;
      has_failed_ = true;
    });
    spate::must(error);
  }
  void finish(spate::Loop& loop) {
    if (subscriptions_.empty()) pipe_.drain([&loop] { loop.stop(); });
  }
  bool has_failed() const { return has_failed_; }

 private:
  // RESP 3, which has pushed messages, and the subscriptions, for each connection.
  void greet() {
    spate::must(pipe_.request(command("HELLO 3"), [this](Result<Bytes> response) {
      if (!response) return;  // The pipe connects again.
      if (spate::text_of(*response).starts_with('-')) return print(*response), pipe_.close();
      if (!subscriptions_.empty()) spate::must(pipe_.send(subscriptions_));
    }));
  }

  std::string subscriptions_;
  bool has_failed_ = false;
  spate::RequestPipe<Resp> pipe_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: redis HOST PORT COMMAND...\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const std::span<char*> commands(argv + 3, argv + argc);
  Redis redis(*loop, argv[1], static_cast<std::uint16_t>(std::atoi(argv[2])),
              std::ranges::any_of(commands, is_subscription));
  for (const std::string_view line : commands) redis.ask(line);
  redis.finish(*loop);
  loop->run();
  return redis.has_failed() ? 1 : 0;
}
