// Memory by the functions of event_set_mem_functions(), or by libc's while none were set.
//
// Semantics: event2/event.h (event_set_mem_functions); the empty request and the overflow: probes.
//
// Whatever the program gets from the library, or what it may hand back, comes from here. spate's
// core and libstdc++, which are linked into the library, get here too, by the linker's --wrap of
// malloc, calloc, realloc and free. So memory that libc itself has allocated (strdup, getline,
// getaddrinfo, ...) must never reach free() in this library.
#pragma once

#include <cstddef>
#include <string_view>

namespace spate::libevent {

// Null if there is no memory, and from the first two also for no bytes. reallocate() and release()
// are plain realloc() and free().
void* allocate(std::size_t size);
void* allocate_zeroed(std::size_t size);
void* reallocate(void* old, std::size_t size);
void release(void* memory);

// A copy of a string; null for null, with EINVAL.
char* duplicate(const char* text);
char* duplicate(std::string_view text);

}  // namespace spate::libevent
