#include "compat/libevent/dns/log.h"

#include <cstdarg>
#include <cstdio>

#include "compat/libevent/dns_api.h"
#include "compat/libevent/log.h"

namespace spate::libevent::dns {
namespace {

evdns_debug_log_fn_type log_function;

}  // namespace

void log(Note note, const char* format, ...) {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  if (std::vsnprintf(line, sizeof line, format, arguments) < 0) line[0] = '\0';
  va_end(arguments);
  const bool is_warning = note == Note::warning;
  if (log_function != nullptr) {
    log_function(static_cast<int>(is_warning), line);
  } else {
    libevent::log(is_warning ? Severity::warning : Severity::message, "%s", line);
  }
}

}  // namespace spate::libevent::dns

void evdns_set_log_fn(evdns_debug_log_fn_type function) {
  spate::libevent::dns::log_function = function;
}
