#include "net/dns/resolv_conf.h"

#include <algorithm>
#include <charconv>

#include "net/dns/words.h"

namespace spate {

namespace {

// The limits of resolv.conf(5), to which larger values are clamped.
constexpr int kMaxSeconds = 30;
constexpr int kMaxAttempts = 5;

// Returns the number after `name` in an option; 0 for another option, or if it is not a number.
int value_of(std::string_view option, std::string_view name, int max) {
  if (!option.starts_with(name)) return 0;
  option.remove_prefix(name.size());
  int value = 0;
  const char* end = option.data() + option.size();
  const auto [stop, error] = std::from_chars(option.data(), end, value);
  if (error == std::errc::result_out_of_range) return max;
  return stop == end && value > 0 ? std::min(value, max) : 0;
}

void take_option(ResolvConf& conf, std::string_view option) {
  if (const int seconds = value_of(option, "timeout:", kMaxSeconds))
    conf.timeout = std::chrono::seconds(seconds);
  if (const int tries = value_of(option, "attempts:", kMaxAttempts)) conf.tries = tries;
}

}  // namespace

ResolvConf parse_resolv_conf(std::string_view text) {
  ResolvConf conf;
  while (!text.empty()) {
    std::string_view line = take_until(text, "\n");
    if (take_word(line) != "options") continue;
    while (!line.empty()) take_option(conf, take_word(line));
  }
  return conf;
}

}  // namespace spate
