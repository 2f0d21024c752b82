// JSON of nlohmann (https://json.nlohmann.me) in requests and responses.
//
//   read_json(std::move(exchange), [](Exchange whole, nlohmann::json order) {
//     respond_json(whole, {{"accepted", order.value("count", 0)}});
//   });
//
// Nothing here throws. Values do: read them with value() or find(), or let the exception leave the
// handler, which then responds 500 (ServerOptions::on_exception).
// Needs nlohmann/json.hpp (in Debian: nlohmann-json3-dev). The library itself does not.
// Threads: the loop's thread only for read_json() and respond_json(); any thread for the others.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "spate/function.h"
#include "spate/http/json.h"

namespace spate::http {

// Returns the text of a value. Invalid UTF-8 in strings becomes U+FFFD.
inline std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Parses a text. Returns nullopt if it is not valid JSON in UTF-8, or is nested deeper than
// `max_depth`.
inline std::optional<nlohmann::json> parse_json(std::string_view text,
                                                std::size_t max_depth = JsonLimits{}.max_depth) {
  if (is_json_deeper(text, max_depth)) return std::nullopt;
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

// Not for programs: finds the byte where a text stops being JSON.
class JsonErrorPlace final : public nlohmann::json_sax<nlohmann::json> {
 public:
  static std::size_t of(std::string_view text) {
    JsonErrorPlace place;
    nlohmann::json::sax_parse(text, &place);
    return place.offset_;
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    offset_ = position == 0 ? 0 : position - 1;  // It counts the byte that it has read.
    return false;
  }

 private:
  std::size_t offset_ = 0;
};

// Receives the body's value.
using OnJson = Function<void(Exchange exchange, nlohmann::json value)>;

// Receives the whole body, parses it, and calls `on_json`, from the loop. Other bodies get an error
// response: 415 for another type, 413 for more than `limits.max_size` bytes, and 400 with the line
// and column of the error if the body is not JSON or is nested too deep. If the client disconnects,
// or after such a response, `on_json` is destroyed uncalled.
inline void read_json(Exchange exchange, OnJson on_json, const JsonLimits& limits = {}) {
  read_json_text(std::move(exchange), limits,
                 [on_json = std::move(on_json)](Exchange whole, std::string_view text) mutable {
                   nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
                   if (!value.is_discarded()) return on_json(std::move(whole), std::move(value));
                   respond_bad_json(whole, text, JsonErrorPlace::of(text));
                 });
}

// Sends a value as application/json. Returns false as Exchange::respond().
inline bool respond_json(Exchange& exchange, Status status, const nlohmann::json& value) {
  return respond_json_text(exchange, status, json_text(value));
}
inline bool respond_json(Exchange& exchange, const nlohmann::json& value) {
  return respond_json(exchange, Status::ok, value);
}

}  // namespace spate::http
