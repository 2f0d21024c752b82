// JsonWriter: appends JSON to a string, and inserts the commas.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/content/json_text.h"
#include "http/inspector/number_text.h"

namespace spate::http {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& json) : json_(json) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  JsonWriter& key(std::string_view name) {
    separate();
    append_json_text(json_, name);
    json_ += ':';
    follows_ = false;
    return *this;
  }

  void value(std::string_view text) {
    separate();
    append_json_text(json_, text);
  }
  void value(bool truth) { put(truth ? "true" : "false"); }
  void value(std::integral auto number) { put(std::to_string(number)); }
  // Writes infinity as null, because JSON does not have it.
  void value(double number) { put(is_finite(number) ? number_text(number) : "null"); }

  // Adds a member.
  template <class Value>
  void add(std::string_view name, const Value& member) {
    key(name).value(member);
  }

 private:
  void begin(char bracket) {
    separate();
    json_ += bracket;
    follows_ = false;
  }
  void end(char bracket) {
    json_ += bracket;
    follows_ = true;
  }
  void put(std::string_view text) {
    separate();
    json_ += text;
  }
  void separate() {
    if (follows_) json_ += ',';
    follows_ = true;
  }

  std::string& json_;
  bool follows_ = false;  // A comma is needed.
};

}  // namespace spate::http
