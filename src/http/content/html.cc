#include "spate/http/html.h"

namespace spate::http {

namespace {

std::string_view reference_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

void append_html(std::string& page, std::string_view text) {
  for (const char c : text) {
    const std::string_view reference = reference_of(c);
    reference.empty() ? page.push_back(c) : void(page.append(reference));
  }
}

std::string html_of(std::string_view text) {
  std::string page;
  append_html(page, text);
  return page;
}

}  // namespace spate::http
