#include "http2/priority.h"

#include "http/codec/characters.h"

namespace spate::http {

namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_key(char c) {
  return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
}

// A parser of structured fields that skips all members but two.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : rest_(text) {}

  bool parse(Http2Priority& priority) {
    skip_spaces();
    while (!rest_.empty()) {
      if (!take_member(priority)) return false;
      skip_blanks();
      if (rest_.empty()) return true;
      if (!take(',')) return false;
      skip_blanks();
      if (rest_.empty()) return false;
    }
    return true;
  }

 private:
  bool take(char wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_spaces() {
    while (take(' ')) continue;
  }
  void skip_blanks() {
    while (take(' ') || take('\t')) continue;
  }
  template <class Is>
  std::string_view take_while(Is is) {
    std::size_t size = 0;
    while (size < rest_.size() && is(rest_[size])) ++size;
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  bool take_member(Http2Priority& priority) {
    if (rest_.empty() || !(is_lower(rest_.front()) || rest_.front() == '*')) return false;
    const std::string_view key = take_while(is_key);
    if (!take('=')) {
      if (key == "i") priority.is_incremental = true;
      return take_parameters();
    }
    const std::string_view before = rest_;
    if (!take_item_or_list()) return false;
    const std::string_view item = before.substr(0, before.size() - rest_.size());
    if (key == "u" && item.size() == 1 && item >= "0" && item <= "7")
      priority.urgency = static_cast<std::uint8_t>(item[0] - '0');
    if (key == "i" && item.starts_with('?')) priority.is_incremental = item == "?1";
    return take_parameters();
  }

  bool take_parameters() {
    while (take(';')) {
      skip_spaces();
      if (rest_.empty() || !(is_lower(rest_.front()) || rest_.front() == '*')) return false;
      take_while(is_key);
      if (take('=') && !take_item()) return false;
    }
    return true;
  }

  bool take_item_or_list() {
    if (!take('(')) return take_item();
    for (;;) {
      skip_spaces();
      if (take(')')) return true;
      if (!take_item() || !take_parameters()) return false;
      if (!rest_.starts_with(' ') && !rest_.starts_with(')')) return false;
    }
  }

  bool take_item() {
    if (rest_.empty()) return false;
    const char first = rest_.front();
    if (take('?')) return take('0') || take('1');
    if (take('"')) return take_string();
    if (take(':')) return take_bytes();
    if (first == '-' || is_digit(first)) return take_number();
    if (first != '*' && !is_lower(static_cast<char>(first | 0x20))) return false;
    take_while([](char c) { return is_in(c, kToken) || c == ':' || c == '/'; });
    return true;
  }

  bool take_number() {
    constexpr std::size_t kMostDigits = 15;
    constexpr std::size_t kMostBeforePoint = 12;
    constexpr std::size_t kMostBehindPoint = 3;
    take('-');
    const std::size_t digits = take_while(is_digit).size();
    if (digits == 0 || digits > kMostDigits) return false;
    if (!take('.')) return true;
    const std::size_t behind = take_while(is_digit).size();
    return digits <= kMostBeforePoint && behind > 0 && behind <= kMostBehindPoint;
  }

  bool take_string() {
    for (;;) {
      take_while([](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
      if (take('"')) return true;
      if (!take('\\') || !(take('"') || take('\\'))) return false;
    }
  }

  bool take_bytes() {
    take_while([](char c) {
      return is_digit(c) || is_lower(static_cast<char>(c | 0x20)) || c == '+' || c == '/' ||
             c == '=';
    });
    return take(':');
  }

  std::string_view rest_;
};

}  // namespace

bool parse_priority(std::string_view text, Http2Priority& priority) {
  Http2Priority parsed = priority;
  if (!Dictionary(text).parse(parsed)) return false;
  priority = parsed;
  return true;
}

}  // namespace spate::http
