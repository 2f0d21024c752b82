#include "chaos/verdict.h"

#include <cstdlib>
#include <string>
#include <vector>

namespace spate::chaos {

namespace {

// Promises that do not hold yet, each with its reason.
constexpr std::string_view kNotYet[] = {
    "",
};

OnFailure handler = nullptr;

std::vector<std::string> read_left_out() {
  std::vector<std::string> names(std::begin(kNotYet), std::end(kNotYet));
  const char* wanted = std::getenv("SPATE_CHAOS_WITHOUT");
  std::string_view rest = wanted == nullptr ? "" : wanted;
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return names;
}

}  // namespace

void set_on_failure(OnFailure on_failure) { handler = on_failure; }

void fail(const char* promise, const char* how) {
  if (handler != nullptr) handler(promise, how);
  std::fprintf(stderr, "chaos: %s: %s\n", promise, how);
  std::abort();
}

bool is_left_out(std::string_view name) {
  static const std::vector<std::string> names = read_left_out();
  for (const std::string& one : names) {
    if (one == name) return true;
  }
  return false;
}

}  // namespace spate::chaos
