// The exported functions that are not written yet. A program that the dynamic loader binds at start
// needs every name to exist, whether it calls the function or not; one that calls it learns which.
#include "compat/libevent/log.h"

namespace {

[[noreturn]] void not_implemented(const char* name) {
  spate::libevent::fatal(spate::libevent::kAbort, "%s is not implemented by spate's libevent",
                         name);
}

}  // namespace

// Without the arguments that the headers declare: these are never looked at.
#define SPATE_STUB(name) \
  extern "C" [[noreturn, gnu::visibility("default")]] void name() { not_implemented(#name); }
#include "compat/libevent/stub_names.def"
#undef SPATE_STUB
