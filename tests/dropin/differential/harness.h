#pragma once

// Shared by the programs of this directory: seeds, cases, random numbers. A program prints only
// text that must be the same on the original and on the drop-in; run.py compares it.

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// --- Random numbers: the same on every machine. ---

static uint64_t random_state;

static inline uint64_t random_next(void) {
  random_state += 0x9e3779b97f4a7c15ULL;
  uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Returns a number from 0 to limit - 1.
static inline int random_below(int limit) { return (int)(random_next() % (uint64_t)limit); }

static inline int random_chance(int percent) { return random_below(100) < percent; }

// A random row of a table whose rows begin with an int, their weight: heavier ones are chosen more
// often.
#define RANDOM_ROW(table) \
  (&(table)[random_by_weight(table, sizeof *(table), sizeof(table) / sizeof *(table))])

static inline int random_by_weight(const void* table, size_t row_size, size_t rows) {
  const char* row = (const char*)table;
  int total = 0;
  for (size_t i = 0; i < rows; i++) total += *(const int*)(row + i * row_size);
  int pick = random_below(total);
  int chosen = 0;
  while (pick >= *(const int*)row) {
    pick -= *(const int*)row;
    row += row_size;
    chosen++;
  }
  return chosen;
}

// --- Each seed or case is a block of the output, and runs in a separate process, so that blocks do
// not affect each other, and a crash is reported. ---

static int block_seconds = 30;

#ifdef __cplusplus
extern "C"
#endif
    void
    event_enable_debug_mode(void) __attribute__((weak));  // Null without libevent.

// Most programs are not linked to the library that has the locks.
static inline void debug_locks(void) {
  void* library = dlopen("libevent_pthreads-2.1.so.7", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return;
  ((int (*)(void))(uintptr_t)dlsym(library, "evthread_use_pthreads"))();
  ((void (*)(void))(uintptr_t)dlsym(library, "evthread_enable_lock_debugging"))();
}

static inline void prepare_block(void) {
  if (getenv("DIFFERENTIAL_DEBUG_MODE") && event_enable_debug_mode) event_enable_debug_mode();
  if (getenv("DIFFERENTIAL_LOCK_DEBUGGING")) debug_locks();
}

// The output before a crash shows where it happened.
static inline void flush_and_end(int number) {
  fflush(stdout);
  signal(number, SIG_DFL);
  raise(number);
}

static inline void run_block(void (*run)(void)) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGALRM, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
      signal(fatal[i], flush_and_end);
    }
    alarm((unsigned)block_seconds);
    prepare_block();
    run();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    printf("ran out of time\n");
  } else if (WIFSIGNALED(status)) {
    printf("ended by signal %d\n", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    printf("exit status %d\n", WEXITSTATUS(status));
  }
}

typedef struct Case {
  const char* name;
  void (*run)(void);
} Case;

// PROGRAM [NAME]...: runs all cases, or those whose name contains one of the words.
static inline int run_cases(int argc, char** argv, const Case* cases, size_t count) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < count; i++) {
    int wanted = argc < 2;
    for (int word = 1; word < argc; word++) {
      wanted |= strstr(cases[i].name, argv[word]) != NULL;
    }
    if (wanted) {
      printf("# %s\n", cases[i].name);
      run_block(cases[i].run);
    }
  }
  return 0;
}

// --- Seeds: PROGRAM --seed FIRST --count HOW_MANY. ---

static inline int run_seeds(int argc, char** argv, void (*run)(void)) {
  uint64_t first = 1;
  uint64_t count = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--seed") == 0) {
      first = strtoull(argv[i + 1], NULL, 10);
    } else if (strcmp(argv[i], "--count") == 0) {
      count = strtoull(argv[i + 1], NULL, 10);
    }
  }
  for (uint64_t seed = first; seed < first + count; seed++) {
    random_state = seed * 0x2545f4914f6cdd1dULL;
    printf("# seed %llu\n", (unsigned long long)seed);
    run_block(run);
  }
  return 0;
}
