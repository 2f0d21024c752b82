// Random bytes: libc's arc4random, which the kernel seeds, and again after a fork.
//
// Semantics: event2/util.h; probed: as Debian's libevent, which is built on arc4random too.
#include <event2/util.h>

#include <cstdlib>

// There is no seed file, so setting one fails.
int evutil_secure_rng_set_urandom_device_file(char*) { return -1; }

int evutil_secure_rng_init() { return 0; }

void evutil_secure_rng_get_bytes(void* bytes, size_t size) { arc4random_buf(bytes, size); }

// Ignores the program's bytes: they may be guessable, and would not improve the generator.
void evutil_secure_rng_add_bytes(const char*, size_t) {}
