// The texts of the drop-in evhttp: a parsed URI joins and parses again as itself, each of its parts
// can be set separately, and encoded text decodes.
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <sys/queue.h>

#include <cstring>
#include <memory>
#include <string>

#include "input.h"

namespace spate::fuzz {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }
  void operator()(evhttp_uri* uri) const { evhttp_uri_free(uri); }
};
using Text = std::unique_ptr<char, Free>;
using Uri = std::unique_ptr<evhttp_uri, Free>;

struct Part {
  const char* (*get)(const evhttp_uri* uri);
  int (*set)(evhttp_uri* uri, const char* text);
};

constexpr Part kParts[] = {
    {evhttp_uri_get_scheme, evhttp_uri_set_scheme},
    {evhttp_uri_get_userinfo, evhttp_uri_set_userinfo},
    {evhttp_uri_get_host, evhttp_uri_set_host},
    {evhttp_uri_get_path, evhttp_uri_set_path},
    {evhttp_uri_get_query, evhttp_uri_set_query},
    {evhttp_uri_get_fragment, evhttp_uri_set_fragment},
};

bool are_same(const char* a, const char* b) {
  return a == nullptr || b == nullptr ? a == b : std::strcmp(a, b) == 0;
}

void check_same(const evhttp_uri* a, const evhttp_uri* b) {
  check(evhttp_uri_get_port(a) == evhttp_uri_get_port(b));
  for (const Part& part : kParts) check(are_same(part.get(a), part.get(b)));
}

std::string join(evhttp_uri* uri, std::size_t most) {
  std::string text(most + 1, '?');
  const char* joined = evhttp_uri_join(uri, text.data(), text.size());
  check(joined == text.data());
  text.resize(std::strlen(joined));
  check(text.empty() || evhttp_uri_join(uri, std::string(text).data(), text.size()) == nullptr);
  return text;
}

void parse(const std::string& text, unsigned flags) {
  const Uri uri(evhttp_uri_parse_with_flags(text.c_str(), flags));
  if (uri == nullptr) return;
  check(flags != 0 || Uri(evhttp_uri_parse_with_flags(text.c_str(), EVHTTP_URI_NONCONFORMANT)));
  const std::string joined = join(uri.get(), std::strlen(text.c_str()));
  const Uri again(evhttp_uri_parse_with_flags(joined.c_str(), flags));
  check(again != nullptr);
  check_same(uri.get(), again.get());
  const Uri built(evhttp_uri_new());
  evhttp_uri_set_flags(built.get(), flags);
  check(evhttp_uri_set_port(built.get(), evhttp_uri_get_port(uri.get())) == 0);
  for (const Part& part : kParts) check(part.set(built.get(), part.get(uri.get())) == 0);
  check_same(uri.get(), built.get());
}

void set(const std::string& text, unsigned flags) {
  const Uri uri(evhttp_uri_new());
  evhttp_uri_set_flags(uri.get(), flags);
  for (const Part& part : kParts) {
    if (part.set(uri.get(), text.c_str()) != 0) continue;
    check(part.set(uri.get(), part.get(uri.get())) == 0);  // Its own text.
    check(are_same(part.get(uri.get()), text.c_str()));
  }
}

void code(const std::string& text) {
  const Text encoded(evhttp_uriencode(text.data(), static_cast<ev_ssize_t>(text.size()), 1));
  std::size_t size = 0;
  const Text decoded(evhttp_uridecode(encoded.get(), 1, &size));
  check(std::string(decoded.get(), size) == text);
  const Text loose(evhttp_uridecode(text.c_str(), 0, &size));
  check(size <= text.size() && loose.get()[size] == '\0');
  check(Text(evhttp_decode_uri(text.c_str())) != nullptr);
  const Text escaped(evhttp_htmlescape(text.c_str()));
  check(std::strpbrk(escaped.get(), "<>\"'") == nullptr);
}

void query(const std::string& text) {
  evkeyvalq list;
  const int status = evhttp_parse_query_str(text.c_str(), &list);
  check(status == 0 || TAILQ_EMPTY(&list));
  const evkeyval* entry;
  TAILQ_FOREACH(entry, &list, next) {
    check(*entry->key != '\0' && evhttp_find_header(&list, entry->key) != nullptr);
  }
  evhttp_clear_headers(&list);
  evhttp_parse_query(text.c_str(), &list);
  evhttp_clear_headers(&list);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  const unsigned flags = input.flag() ? EVHTTP_URI_NONCONFORMANT : 0;
  const std::string text(input.rest());
  parse(text, flags);
  set(text, flags);
  code(text);
  query(text);
  return 0;
}
