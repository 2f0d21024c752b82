// Semantics: ev(3) "ev_set_syserr_cb".
#include "compat/libev/fatal.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compat/libev/ev_api.h"

namespace spate::libev {

namespace {

void (*system_error_callback)(const char* message) noexcept = nullptr;

}  // namespace

void report_system_error(const char* message) {
  if (system_error_callback != nullptr) return system_error_callback(message);
  std::fprintf(stderr, "%s: %s\n", message, std::strerror(errno));
  std::abort();
}

void abort_with(const char* message) {
  std::fprintf(stderr, "(libev) %s\n", message);
  std::abort();
}

}  // namespace spate::libev

void ev_set_syserr_cb(void (*callback)(const char* message) noexcept) noexcept {
  spate::libev::system_error_callback = callback;
}
