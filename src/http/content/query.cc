#include <algorithm>

#include "http/codec/uri_chars.h"
#include "spate/http/url.h"

namespace spate::http {

namespace {

// Decodes a name or value of a form. Returns `raw`, or a text in `room`.
std::string_view decode_of_form(std::string_view raw, std::string& room) {
  if (raw.find_first_of("%+") == std::string_view::npos) return raw;
  room.clear();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '%' && is_escape(raw, i)) {
      room += escaped_byte(raw, i);
      i += 2;
    } else {
      room += raw[i] == '+' ? ' ' : raw[i];
    }
  }
  return room;
}

}  // namespace

bool Query::next() {
  std::string_view pair;
  while (pair.empty()) {
    if (rest_.empty()) return false;
    pair = rest_.substr(0, rest_.find('&'));
    rest_.remove_prefix(std::min(pair.size() + 1, rest_.size()));
  }
  const std::size_t sign = std::min(pair.find('='), pair.size());
  name_ = decode_of_form(pair.substr(0, sign), name_room_);
  value_ = decode_of_form(pair.substr(std::min(sign + 1, pair.size())), value_room_);
  return true;
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  for (Query pairs(query); pairs.next();) {
    if (pairs.name() == name) return std::string(pairs.value());
  }
  return {};
}

}  // namespace spate::http
