// An EV_COMMON that is not libev's: it begins with an int, as that of Perl's EV does, and has
// `data`, which programs use.
#pragma once

#define EV_COMMON \
  int first;      \
  void* second;   \
  void* data;     \
  double last;
