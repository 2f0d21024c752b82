// Request-targets: any text is refused, or is put together again from its parts; Host likewise.
#include "http/codec/target.h"

#include <string>

#include "input.h"

namespace spate::fuzz {
namespace {

using http::RequestTarget;
using Form = RequestTarget::Form;

std::string put_together(const RequestTarget& target) {
  std::string text(target.scheme);
  if (target.form == Form::absolute) text += "://";
  text.append(target.authority).append(target.path);
  if (target.has_query) text.append("?").append(target.query);
  return text;
}

bool is_printable(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c >= 127) return false;
  }
  return true;
}

void parse(std::string_view text, http::Method method) {
  const auto target = http::parse_target(text, method);
  if (!target) return;
  check(is_printable(text));
  check((target->form == Form::authority) == (method == http::Method::connect));
  const std::string whole = put_together(*target);
  const bool path_added = target->form == Form::absolute && whole != text;
  const bool is_same = path_added ? whole.size() == text.size() + 1 : whole == text;
  check(is_same);
  if (path_added && target->path == "*") return;  // that path is in no absolute form
  const auto again = http::parse_target(whole, method);
  check(again && put_together(*again) == whole);
}

void parse_host(std::string_view text) {
  const auto host = http::parse_host(text);
  check(host.has_value() == http::is_valid_host(text));
  if (!host) return;
  check(is_printable(text) && text.starts_with(host->host));
  if (host->port) check(text.size() > host->host.size() + 1);
  const bool in_brackets = host->host.starts_with('[');
  check(in_brackets == (host->host.find(':') != std::string_view::npos));
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  const auto method = static_cast<spate::http::Method>(input.below(10));
  parse(input.rest(), method);
  parse_host(input.rest());
  return 0;
}
