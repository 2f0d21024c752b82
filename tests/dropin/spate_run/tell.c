// Prints the libraries of libev and libevent that the loader has mapped, its arguments and its
// input; exits with the status in its first argument.
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tell_library(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size;
  (void)unused;
  if (strstr(info->dlpi_name, "/libev") != NULL) {
    printf("library: %s\n", info->dlpi_name);
  }
  return 0;
}

int main(int argc, char** argv) {
  dl_iterate_phdr(tell_library, NULL);
  const char* path = getenv("LD_LIBRARY_PATH");
  printf("path: %s\n", path != NULL ? path : "");
  for (int i = 1; i < argc; i++) {
    printf("argument: %s\n", argv[i]);
  }
  for (int c = getchar(); c != EOF; c = getchar()) {
    putchar(c);
  }
  return argc > 1 ? atoi(argv[1]) : 0;
}
