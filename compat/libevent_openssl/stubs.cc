// The exported functions that are not written yet, as in compat/libevent/stubs.cc. The callbacks of
// event_set_log_callback and event_set_fatal_callback are in another library, which exports nothing
// that would lead to them, so these write to stderr and abort.
#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] void not_implemented(const char* name) {
  std::fprintf(stderr, "[err] %s is not implemented by spate's libevent_openssl\n", name);
  std::abort();
}

}  // namespace

// Without the arguments that the header declares: these are never looked at.
#define SPATE_STUB(name) \
  extern "C" [[noreturn, gnu::visibility("default")]] void name() { not_implemented(#name); }
#include "compat/libevent_openssl/stub_names.def"
#undef SPATE_STUB
