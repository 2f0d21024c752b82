// Strict JSON of RFC 8259, for tests that read the library's output.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spate::testing {

struct Json {
  enum class Kind { null, truth, number, text, array, object };

  Kind kind = Kind::null;
  bool truth = false;
  double number = 0;
  std::string text;
  std::vector<Json> items;
  std::map<std::string, Json> members;

  bool has(const std::string& name) const { return members.contains(name); }
  const Json& operator[](const std::string& name) const {
    static const Json none;
    const auto found = members.find(name);
    return found == members.end() ? none : found->second;
  }
  const Json& operator[](std::size_t index) const {
    static const Json none;
    return index < items.size() ? items[index] : none;
  }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Null, if it is anything else.
  std::optional<Json> read() {
    Json value;
    if (!read_value(value) || at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool read_value(Json& value) {
    if (take('{')) return read_members(value);
    if (take('[')) return read_items(value);
    if (take('"')) return value.kind = Json::Kind::text, read_text(value.text);
    if (take("null")) return true;
    if (take("true")) return value.kind = Json::Kind::truth, value.truth = true;
    if (take("false")) return value.kind = Json::Kind::truth, true;
    return read_number(value);
  }
  bool read_members(Json& value) {
    value.kind = Json::Kind::object;
    if (take('}')) return true;
    do {
      std::string name;
      if (!take('"') || !read_text(name) || !take(':')) return false;
      if (value.has(name) || !read_value(value.members[name])) return false;
    } while (take(','));
    return take('}');
  }
  bool read_items(Json& value) {
    value.kind = Json::Kind::array;
    if (take(']')) return true;
    do {
      if (!read_value(value.items.emplace_back())) return false;
    } while (take(','));
    return take(']');
  }
  bool read_text(std::string& text) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\') {
        if (!read_escape(text)) return false;
      } else {
        text += c;
      }
    }
    return false;
  }
  bool read_escape(std::string& text) {
    ++at_;
    if (at_ == text_.size()) return false;
    const char c = text_[at_];
    constexpr std::string_view kSigns = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t sign = kSigns.find(c); sign != std::string_view::npos)
      return text += kMeanings[sign], true;
    if (c != 'u' || at_ + 4 >= text_.size()) return false;
    const std::string digits(text_.substr(at_ + 1, 4));
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return false;
    at_ += 4;
    text += static_cast<char>(std::strtoul(digits.c_str(), nullptr, 16));  // ASCII only.
    return true;
  }
  bool read_number(Json& value) {
    const std::size_t begin = at_;
    take('-');
    if (!take('0') && !take_digits()) return false;
    if (take('.') && !take_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!take_digits()) return false;
    }
    value.kind = Json::Kind::number;
    value.number = std::strtod(std::string(text_.substr(begin, at_ - begin)).c_str(), nullptr);
    return true;
  }
  bool take_digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > begin;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace spate::testing
