// Memory by the functions of event_set_mem_functions(), or by libc's while none were set.
//
// Semantics: event2/event.h (event_set_mem_functions); probed: the empty request and the overflow.
//
// All memory that passes between the program and the library comes from here. spate's core and
// libstdc++, which are linked into the library, get here too, by the linker's --wrap of malloc,
// calloc, realloc and free. So memory that libc itself has allocated (strdup, getline, getaddrinfo,
// ...) must never reach free() in this library.
#pragma once

#include <cstddef>
#include <string_view>

namespace spate::libevent {

// Return null without memory; the first two also for a size of 0. reallocate() and release() are
// plain realloc() and free().
void* allocate(std::size_t size);
void* allocate_zeroed(std::size_t size);
void* reallocate(void* old, std::size_t size);
void release(void* memory);

// Copies a string; returns null for null, with EINVAL.
char* duplicate(const char* text);
char* duplicate(std::string_view text);

}  // namespace spate::libevent
