#include "compat/libevent/memory.h"

#include <event2/event.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

// The names that the linker's --wrap gives to a call of malloc() anywhere in this library, and to
// libc's own.
extern "C" {
void* __real_malloc(std::size_t size);
void* __real_calloc(std::size_t count, std::size_t size);
void* __real_realloc(void* old, std::size_t size);
void __real_free(void* memory);
void* __wrap_malloc(std::size_t size);
void* __wrap_calloc(std::size_t count, std::size_t size);
void* __wrap_realloc(void* old, std::size_t size);
void __wrap_free(void* memory);
}

namespace spate::libevent {
namespace {

// Each may be null separately: then libc's is used, as in libevent.
struct MemoryFunctions {
  void* (*malloc)(std::size_t size);
  void* (*realloc)(void* old, std::size_t size);
  void (*free)(void* memory);
};

// Constant-initialised: libstdc++ allocates while the library is being loaded.
constinit MemoryFunctions program{};

void* zeroed_by_program(std::size_t count, std::size_t size) {
  if (size != 0 && count > SIZE_MAX / size) {
    errno = ENOMEM;
    return nullptr;
  }
  void* memory = program.malloc(count * size);
  if (memory == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  return std::memset(memory, 0, count * size);
}

}  // namespace

void* allocate(std::size_t size) { return size == 0 ? nullptr : __wrap_malloc(size); }

void* allocate_zeroed(std::size_t size) { return size == 0 ? nullptr : __wrap_calloc(1, size); }

void* reallocate(void* old, std::size_t size) { return __wrap_realloc(old, size); }

void release(void* memory) { __wrap_free(memory); }

char* duplicate(const char* text) {
  if (text == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  return duplicate(std::string_view(text));
}

char* duplicate(std::string_view text) {
  char* copy = static_cast<char*>(allocate(text.size() + 1));
  if (copy == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace spate::libevent

using spate::libevent::program;

void* __wrap_malloc(std::size_t size) {
  return program.malloc != nullptr ? program.malloc(size) : __real_malloc(size);
}

void* __wrap_calloc(std::size_t count, std::size_t size) {
  return program.malloc != nullptr ? spate::libevent::zeroed_by_program(count, size)
                                   : __real_calloc(count, size);
}

void* __wrap_realloc(void* old, std::size_t size) {
  return program.realloc != nullptr ? program.realloc(old, size) : __real_realloc(old, size);
}

void __wrap_free(void* memory) {
  if (program.free != nullptr) {
    if (memory != nullptr) program.free(memory);  // It need not accept null.
  } else {
    __real_free(memory);
  }
}

void event_set_mem_functions(void* (*malloc_function)(size_t size),
                             void* (*realloc_function)(void* old, size_t size),
                             void (*free_function)(void* memory)) {
  program = {malloc_function, realloc_function, free_function};
}
