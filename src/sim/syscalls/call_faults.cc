#include "sim/syscalls/call_faults.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <initializer_list>
#include <span>

#include "base/mix.h"

namespace spate::sim {

namespace {

constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostRules = 64;

constexpr std::string_view kCallNames[kCallKinds] = {
    "accept",  "bind",      "connect", "epoll_create", "epoll_ctl",  "epoll_wait",
    "eventfd", "getrandom", "listen",  "open",         "poll",       "read",
    "recv",    "select",    "send",    "sendfile",     "setsockopt", "shutdown",
    "socket",  "spawn",     "thread",  "timerfd",      "write",      "fsync",
    "rename"};

struct ErrorName {
  std::string_view name;
  int error;
};
constexpr ErrorName kErrors[] = {
    {"short", 0},
    {"EACCES", EACCES},
    {"EADDRINUSE", EADDRINUSE},
    {"EADDRNOTAVAIL", EADDRNOTAVAIL},
    {"EAGAIN", EAGAIN},
    {"ECONNABORTED", ECONNABORTED},
    {"ECONNREFUSED", ECONNREFUSED},
    {"ECONNRESET", ECONNRESET},
    {"EHOSTUNREACH", EHOSTUNREACH},
    {"EINTR", EINTR},
    {"EINVAL", EINVAL},
    {"EIO", EIO},
    {"EMFILE", EMFILE},
    {"ENETDOWN", ENETDOWN},
    {"ENETUNREACH", ENETUNREACH},
    {"ENFILE", ENFILE},
    {"ENOBUFS", ENOBUFS},
    {"ENOENT", ENOENT},
    {"ENOMEM", ENOMEM},
    {"ENOSPC", ENOSPC},
    {"ENOSYS", ENOSYS},
    {"EPERM", EPERM},
    {"EPIPE", EPIPE},
    {"EPROTO", EPROTO},
    {"ETIMEDOUT", ETIMEDOUT},
};

constexpr std::uint32_t bit(Call call) { return 1u << static_cast<unsigned>(call); }

constexpr std::uint32_t bits(std::initializer_list<Call> calls) {
  std::uint32_t all = 0;
  for (const Call call : calls) all |= bit(call);
  return all;
}

// The calls that can move fewer bytes or events.
constexpr std::uint32_t kMoving =
    bits({Call::epoll_wait, Call::read, Call::recv, Call::send, Call::sendfile, Call::write});

// Returns the calls that may report an error by their manual pages, for "*". If none, the rule must
// name a call.
std::uint32_t reporters_of(int error) {
  switch (error) {
    case 0:
      return kMoving;
    case EINTR:
      return bits({Call::accept, Call::epoll_wait, Call::open, Call::poll, Call::read, Call::recv,
                   Call::select, Call::send, Call::sendfile, Call::write, Call::fsync});
    case EAGAIN:  // write() of an eventfd returns EAGAIN with another meaning.
      return bits({Call::accept, Call::recv, Call::send, Call::sendfile});
    case EMFILE:
    case ENFILE:
      return bits({Call::accept, Call::epoll_create, Call::eventfd, Call::open, Call::socket,
                   Call::timerfd});
    case ENOMEM:
      return bits({Call::accept, Call::epoll_create, Call::epoll_ctl, Call::eventfd, Call::open,
                   Call::recv, Call::send, Call::sendfile, Call::socket, Call::timerfd});
    case ENOBUFS:
      return bits({Call::accept, Call::send, Call::socket});
    case ECONNRESET:
      return bits({Call::recv, Call::send});
    case EPIPE:
      return bits({Call::send, Call::sendfile, Call::write});
    default:
      return 0;
  }
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

std::string error_names() {
  std::vector<std::string_view> names;
  for (const ErrorName& one : kErrors) names.push_back(one.name);
  return listed(names);
}

using Problem = std::unexpected<std::string>;

Problem problem(std::string_view rule, std::string_view reason) {
  return Problem('"' + std::string(rule) + "\": " + std::string(reason));
}

template <class Number>
std::optional<Number> value_of(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// Parses "5" or "5..20".
bool read_numbers(std::string_view text, CallFaults::Rule& rule) {
  const std::size_t dots = text.find("..");
  const auto first = value_of<std::uint64_t>(text.substr(0, dots));
  const auto last = dots == text.npos ? first : value_of<std::uint64_t>(text.substr(dots + 2));
  if (!first || !last || *first == 0 || *last < *first) return false;
  rule.first = *first;
  rule.last = *last;
  return true;
}

bool read_share(std::string_view text, CallFaults::Rule& rule) {
  const auto share = value_of<double>(text);
  if (!share || !(*share >= 0 && *share <= 1)) return false;
  rule.share = *share;
  return true;
}

std::expected<CallFaults::Rule, std::string> parse_rule(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == text.npos)
    return problem(text, "a rule is CALL.ERROR, CALL.ERROR=SHARE or CALL.ERROR@NUMBER");
  const std::string_view call = text.substr(0, dot);
  const std::size_t end = text.find_first_of("=@", dot);
  const std::string_view error = text.substr(dot + 1, end == text.npos ? end : end - dot - 1);
  const auto* known_error = std::ranges::find(kErrors, error, &ErrorName::name);
  if (known_error == std::end(kErrors))
    return problem(text, "no such error is known; known are " + error_names());
  CallFaults::Rule rule{.error = known_error->error};
  if (call == "*") {
    rule.calls = reporters_of(rule.error);
    if (rule.calls == 0) return problem(text, "\"*\" is not for this error: name the calls");
  } else {
    const auto* known_call = std::ranges::find(kCallNames, call);
    if (known_call == std::end(kCallNames))
      return problem(text, "no such call is known; known are *, " + listed(kCallNames));
    rule.calls = 1u << (known_call - kCallNames);
  }
  if (rule.error == 0 && (rule.calls & ~kMoving) != 0)
    return problem(text, "only epoll_wait, read, recv, send, sendfile and write can be short");
  if (end == text.npos) return rule;
  const std::string_view when = text.substr(end + 1);
  if (text[end] == '=' && !read_share(when, rule))
    return problem(text, "a share is a number from 0 to 1, as in =.05");
  if (text[end] == '@' && !read_numbers(when, rule))
    return problem(text, "calls are counted from 1, as in @7 or @5..20");
  return rule;
}

}  // namespace

std::string_view name_of(Call call) { return kCallNames[static_cast<std::size_t>(call)]; }

std::string_view name_of_error(int error) {
  const auto* known = std::ranges::find(kErrors, error, &ErrorName::error);
  return known == std::end(kErrors) ? "an error" : known->name;
}

std::expected<CallFaults::Rules, std::string> CallFaults::parse(std::string_view text) {
  if (text.size() > kMostText) return Problem("it is longer than 4096 bytes");
  Rules rules;
  for (bool is_more = true; is_more;) {
    const std::size_t comma = text.find(',');
    auto rule = parse_rule(text.substr(0, comma));
    if (!rule) return Problem(std::move(rule.error()));
    rules.push_back(*rule);
    if (rules.size() > kMostRules) return Problem("it has more than 64 rules");
    is_more = comma != text.npos;
    text.remove_prefix(is_more ? comma + 1 : text.size());
  }
  return rules;
}

CallFaults::Verdict CallFaults::decide(Call call) {
  const std::uint64_t number = ++counts_[static_cast<std::size_t>(call)];
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    if ((rule.calls & bit(call)) == 0 || number < rule.first || number > rule.last) continue;
    const std::uint64_t drawn =
        mix(seed_ ^ mix(number << 16 ^ static_cast<std::uint64_t>(call) << 8 ^ i));
    if (static_cast<double>(drawn >> 11) * 0x1p-53 >= rule.share) continue;
    if (rule.error != 0) return {.error = rule.error, .drawn = {}};
    return {.error = 0, .drawn = mix(drawn)};
  }
  return {};
}

}  // namespace spate::sim
