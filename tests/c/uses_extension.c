// Uses the library and an extension with a private copy of it; exits with 0 if each uses its own
// copy.
#include <spate.h>
#include <stddef.h>

int extension_count(void);
const void* extension_copy(void);

int main(void) {
  union {
    int (*function)(spate_loop*, spate_run_mode);
    const void* address;
  } run;
  spate_loop* loop;
  run.function = spate_loop_run;
  if (spate_loop_create(&loop, NULL) != 0) return 1;
  spate_loop_destroy(loop);
  if (extension_count() != 10) return 2;
  return extension_copy() == run.address ? 3 : 0;
}
