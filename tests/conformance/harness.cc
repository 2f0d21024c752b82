#include "tests/conformance/harness.h"

#include <sys/prctl.h>

namespace spate::testing {

int fork_sleeper() {
  return fork_child([] {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
    return 0;
  });
}

}  // namespace spate::testing
