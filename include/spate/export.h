// Not for programs. Included by every header: checks the language, and defines SPATE_EXPORT, which
// marks what the shared library exports. Everything else is hidden.
#pragma once

#if !defined(__cplusplus) || __cplusplus <= 202002L
#error "spate needs C++23: compile with -std=c++23, or in CMake link to spate::spate"
#endif

#define SPATE_EXPORT __attribute__((visibility("default")))
