// What every header of spate's begins with: the language it needs, and SPATE_EXPORT, what the
// shared library shows. Everything else is hidden.
#pragma once

#if !defined(__cplusplus) || __cplusplus <= 202002L
#error "spate needs C++23: compile with -std=c++23, or in CMake link to spate::spate"
#endif

#define SPATE_EXPORT __attribute__((visibility("default")))
