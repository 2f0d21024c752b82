#pragma once

// Calls with every argument that a program might pass: null pointers, numbers out of range, the
// least and the greatest. Each argument has a domain, a table of values; a call is made with each
// combination of them, each in a separate block, and so in a new process and a new world.
//
// A program has its calls under headings (`// ---- name`). covered.py does not search the lines
// before the first one, "domains" and "the world": they only prepare calls.
//
// The tables name the domain of each argument. A prototype could not: an int is a descriptor, a
// signal, a priority or a size. covered.py reads the prototypes, and finds functions without a row.
//
// A call that ends the original, by a crash or an assertion, is undefined there, and not compared:
// `--undefined` of run.py.

#include <limits.h>

#include "harness.h"

enum { kArgumentsMax = 6, kTitleMax = 256, kCallSeconds = 10 };

typedef struct Value {
  const char* text;
  long value;  // The value, or its address.
} Value;

typedef struct Domain {
  const Value* values;
  int count;
} Domain;

#define DOMAIN_OF(values) {values, (int)(sizeof(values) / sizeof *(values))}

typedef struct Call {
  const char* name;
  void (*run)(const long* arguments);
  const Domain* domains[kArgumentsMax];
} Call;

static const Call* current_call;
static long current_arguments[kArgumentsMax];

static void run_current_call(void) { current_call->run(current_arguments); }

// The number of a combination determines the value of each argument. False when there are no more.
static int choose_arguments(const Call* call, int number, char* title) {
  title += sprintf(title, "%s(", call->name);
  for (int i = 0; i < kArgumentsMax && call->domains[i] != NULL; i++) {
    const Value* value = &call->domains[i]->values[number % call->domains[i]->count];
    number /= call->domains[i]->count;
    current_arguments[i] = value->value;
    title += sprintf(title, "%s%s", i == 0 ? "" : ", ", value->text);
  }
  sprintf(title, ")");
  return number == 0;
}

// PROGRAM [WORD]...: runs all calls, or those whose title contains one of the words.
static int run_calls(int argc, char** argv, const Call* calls, size_t count) {
  char title[kTitleMax];
  block_seconds = kCallSeconds;
  for (current_call = calls; current_call < calls + count; current_call++) {
    for (int number = 0; choose_arguments(current_call, number, title); number++) {
      int wanted = argc < 2;
      for (int word = 1; word < argc; word++) wanted |= strstr(title, argv[word]) != NULL;
      if (!wanted) continue;
      printf("# %s\n", title);
      run_block(run_current_call);
    }
  }
  return 0;
}

// ---- domains that all programs use

static const Value kNumberValues[] = {
    {"-1", -1}, {"0", 0},     {"1", 1},     {"2", 2},         {"3", 3},         {"7", 7},
    {"8", 8},   {"255", 255}, {"256", 256}, {"max", INT_MAX}, {"min", INT_MIN},
};
static const Domain kNumbers = DOMAIN_OF(kNumberValues);

static const Value kBooleanValues[] = {{"0", 0}, {"1", 1}};
static const Domain kBooleans = DOMAIN_OF(kBooleanValues);
