// An EV_COMMON that is not libev's: it begins with an int, like that of Perl's EV, and has the
// `data` that programs use.
#pragma once

#define EV_COMMON \
  int first;      \
  void* second;   \
  void* data;     \
  double last;
