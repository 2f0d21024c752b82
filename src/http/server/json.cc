#include "spate/http/json.h"

#include <optional>
#include <string>
#include <utility>

#include "http/codec/characters.h"
#include "http/content/json_text.h"
#include "spate/http/fields.h"
#include "spate/http/media_type.h"
#include "spate/http/status.h"

namespace spate::http {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kProblem = "application/problem+json";
constexpr std::string_view kSuffix = "+json";

// The place of a byte as editors show it: both count from 1.
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
};

Place place_of(std::string_view text, std::size_t offset) {
  Place place;
  for (const char c : text.substr(0, offset)) {
    ++place.column;
    if (c == '\n') place = {place.line + 1, 1};
  }
  return place;
}

}  // namespace

bool is_json_type(std::string_view content_type) {
  const std::optional<MediaType> type = MediaType::parse(content_type);
  if (!type) return false;
  if (type->is("application", "json")) return true;
  const std::string_view subtype = type->subtype();
  return subtype.size() > kSuffix.size() &&
         equal_ignoring_case(subtype.substr(subtype.size() - kSuffix.size()), kSuffix);
}

bool is_json_deeper(std::string_view json, std::size_t depth) {
  std::size_t open = 0;
  bool is_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      is_string = !is_string;
    } else if (is_string) {
      if (c == '\\') ++i;  // The next character does not end the string.
    } else if (c == '[' || c == '{') {
      if (++open > depth) return true;
    } else if ((c == ']' || c == '}') && open > 0) {
      --open;
    }
  }
  return false;
}

void read_json_text(Exchange exchange, const JsonLimits& limits, OnJsonText on_text) {
  if (!limits.any_type && !is_json_type(exchange.request().fields()[FieldId::content_type])) {
    respond_problem(exchange, Status::unsupported_media_type,
                    "the Content-Type of the body must be application/json");
    return;
  }
  read_body(
      std::move(exchange), limits.max_size,
      [depth = limits.max_depth, on_text = std::move(on_text)](Exchange whole, Bytes body) mutable {
        if (!is_json_deeper(text_of(body), depth)) return on_text(std::move(whole), text_of(body));
        respond_problem(
            whole, Status::bad_request,
            "arrays and objects are nested more than " + std::to_string(depth) + " deep");
      });
}

bool respond_json_text(Exchange& exchange, Status status, std::string_view json) {
  return exchange.respond(status, json, kJson);
}

bool respond_problem(Exchange& exchange, Status status, std::string_view detail) {
  std::string json = "{\"status\":" + std::to_string(static_cast<int>(status)) + ",\"title\":";
  append_json_text(json, reason_of(status));
  json += ",\"detail\":";
  append_json_text(json, detail);
  json += "}\n";
  return exchange.respond(status, json, kProblem);
}

bool respond_bad_json(Exchange& exchange, std::string_view json, std::size_t offset) {
  const Place place = place_of(json, offset);
  return respond_problem(exchange, Status::bad_request,
                         "the body is not valid JSON: line " + std::to_string(place.line) +
                             ", column " + std::to_string(place.column));
}

}  // namespace spate::http
