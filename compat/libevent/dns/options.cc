// The options of an evdns_base, and resolv.conf.
//
// Semantics: event2/dns.h (evdns_base_set_option, evdns_base_resolv_conf_parse), resolv.conf(5);
// probed: which values are rejected or clamped, and which part of resolv.conf an option belongs to.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "compat/libevent/dns/config_file.h"
#include "compat/libevent/dns/resolver.h"

using namespace spate::libevent::dns;

namespace {

constexpr double kSecondsLeast = 0.001;
constexpr double kSecondsMost = 100.0 * 365 * 86400;

// The results of evdns_base_resolv_conf_parse().
enum Parsed { kParsed = 0, kCannotOpen = 1, kCannotRead = 2, kNoMemory = 4, kNoNameservers = 6 };

// -1 is no number.
int read_number(const char* text) {
  char* end;
  const int number = static_cast<int>(std::strtol(text, &end, 10));
  return *end == '\0' ? number : -1;
}

bool read_number(const char* text, int least, int most, int& value) {
  const int number = read_number(text);
  if (number == -1) return false;
  value = std::clamp(number, least, most);
  return true;
}

bool read_time(const char* text, std::int64_t most, std::int64_t& value) {
  char* end;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds >= kSecondsLeast)) return false;
  const double cut = std::min(seconds, kSecondsMost);
  value = std::min(static_cast<std::int64_t>(cut * 1e9), most);
  return true;
}

bool read_address(const char* text, Options& options) {
  Address address;
  int size = sizeof address;
  if (evutil_parse_sockaddr_port(text, &address.any, &size) != 0) return false;
  options.bind_to = address;
  options.bind_to_size = static_cast<socklen_t>(size);
  return true;
}

// In resolv.conf a colon follows an option's name, and programs may include it.
bool is_called(const char* option, const char* name) {
  const std::size_t size = std::strlen(name);
  return std::strncmp(option, name, size) == 0 && (option[size] == '\0' || option[size] == ':');
}

// The numeric options, as members.
struct NumberOption {
  const char* name;
  int Options::* member;
  int least;
  int most;
};

struct TimeOption {
  const char* name;
  std::int64_t Options::* member;
  std::int64_t most;
};

constexpr NumberOption kNumbers[] = {
    {"max-timeouts", &Options::max_timeouts, 1, 255},
    {"max-inflight", &Options::max_in_flight, 1, 65000},
    {"attempts", &Options::attempts, INT_MIN, 255},
    {"randomize-case", &Options::randomizes_case, INT_MIN, INT_MAX},
    {"so-rcvbuf", &Options::receive_buffer, INT_MIN, INT_MAX},
    {"so-sndbuf", &Options::send_buffer, INT_MIN, INT_MAX},
};

constexpr TimeOption kTimes[] = {
    {"timeout", &Options::timeout, INT64_MAX},
    {"initial-probe-timeout", &Options::first_probe, kProbeMost},
    {"getaddrinfo-allow-skew", &Options::skew, INT64_MAX},
};

// Sets the option only if its part is among the requested parts. An unknown option is no failure.
bool set_option(evdns_base& base, const char* option, const char* value, int parts) {
  if (is_called(option, "ndots")) {
    const int ndots = read_number(value);
    if (ndots == -1) return false;
    if ((parts & DNS_OPTION_SEARCH) != 0) evdns_base_search_ndots_set(&base, ndots);
    return true;
  }
  if (is_called(option, "bind-to")) {
    return (parts & DNS_OPTION_NAMESERVERS) == 0 || read_address(value, base.options);
  }
  if ((parts & DNS_OPTION_MISC) == 0) return true;
  for (const NumberOption& known : kNumbers) {
    if (!is_called(option, known.name)) continue;
    return read_number(value, known.least, known.most, base.options.*known.member);
  }
  for (const TimeOption& known : kTimes) {
    if (!is_called(option, known.name)) continue;
    return read_time(value, known.most, base.options.*known.member);
  }
  return true;
}

// ---- resolv.conf

void add_domain(evdns_base& base, std::string_view domain) {
  SearchList* longer = SearchList::with_domain(base.search, domain, SearchList::Place::last);
  if (longer == nullptr) return;
  SearchList::give_up(base.search);
  base.search = longer;
}

void replace_domains(evdns_base& base, std::string_view words, int most) {
  evdns_base_search_clear(&base);
  for (; most > 0; --most) {
    const std::string_view domain = take_word(words);
    if (domain.empty()) return;
    add_domain(base, domain);
  }
}

void set_options(evdns_base& base, std::string_view words, int parts) {
  for (;;) {
    const std::string_view word = take_word(words);
    if (word.empty()) return;
    const std::size_t colon = word.find(':');
    const bool has_value = colon != std::string_view::npos;
    const Word value(has_value ? word.substr(colon + 1) : std::string_view());
    set_option(base, Word(word.substr(0, colon)).c_str(), value.c_str(), parts);
  }
}

void take_command(evdns_base& base, std::string_view line, int parts) {
  const std::string_view command = take_word(line);
  if (command == "nameserver" && (parts & DNS_OPTION_NAMESERVERS) != 0) {
    const std::string_view address = take_word(line);
    if (!address.empty()) evdns_base_nameserver_ip_add(&base, Word(address).c_str());
  } else if (command == "domain" && (parts & DNS_OPTION_SEARCH) != 0) {
    replace_domains(base, line, 1);
  } else if (command == "search" && (parts & DNS_OPTION_SEARCH) != 0) {
    replace_domains(base, line, INT_MAX);
  } else if (command == "options") {
    set_options(base, line, parts);
  }
}

// If no domain was configured, uses the domain of this host.
void add_own_domain(evdns_base& base) {
  char name[256] = "";
  if (SearchList::count_of(base.search) != 0 || gethostname(name, sizeof name - 1) != 0) return;
  const char* dot = std::strchr(name, '.');
  if (dot != nullptr) add_domain(base, dot + 1);
}

void add_default_server(evdns_base& base, int parts) {
  const bool wanted =
      (parts & DNS_OPTION_NAMESERVERS) != 0 && (parts & DNS_OPTION_NAMESERVERS_NO_DEFAULT) == 0;
  if (wanted) evdns_base_nameserver_ip_add(&base, "127.0.0.1");
}

int parse(evdns_base& base, int parts, const char* path) {
  ConfigFile file;
  const ConfigFile::Result result =
      path != nullptr ? file.read(path) : ConfigFile::Result::cannot_open;
  if (result == ConfigFile::Result::cannot_read) return kCannotRead;
  if (result == ConfigFile::Result::no_memory) return kNoMemory;
  std::string_view text = file.text();
  while (!text.empty()) take_command(base, take_line(text), parts);
  if ((parts & DNS_OPTION_SEARCH) != 0) add_own_domain(base);
  const bool is_missing = result == ConfigFile::Result::cannot_open;
  const bool lacks_server = (parts & DNS_OPTION_NAMESERVERS) != 0 && base.server_count() == 0;
  if (is_missing || lacks_server) add_default_server(base, parts);
  if (is_missing) return kCannotOpen;
  return lacks_server && base.server_count() != 0 ? kNoNameservers : kParsed;
}

}  // namespace

int evdns_base_set_option(evdns_base* base, const char* option, const char* value) {
  const spate::libevent::Holding holding(base->lock);
  return set_option(*base, option, value, DNS_OPTIONS_ALL) ? 0 : -1;
}

int evdns_base_resolv_conf_parse(evdns_base* base, int flags, const char* const filename) {
  const spate::libevent::Holding holding(base->lock);
  if ((flags & DNS_OPTION_HOSTSFILE) != 0) evdns_base_load_hosts(base, "/etc/hosts");
  return parse(*base, flags, filename);
}
