// Random rate-limit groups: the number of members, the rate, the tick and the smallest share vary.
// Each member gets its share.
//
// The original begins with a member by chance, so that shares are compared with the mean only. On
// the clock of virtual_steps.h.
//
// differential: --seeds 1:50
enum { kMembersMost = 50 };

#include "rate_limit_shares.h"
#include "virtual_steps.h"

enum { kSharesEach = 30, kTurnsMost = 20000 };

static void on_stuck(void) { event_base_loopbreak(base); }

static void run_script(void) {
  use_steps(on_stuck);
  const int writes = random_below(2);
  const int share = 64 * (1 + random_below(4));
  const int all = 3 + random_below(kMembersMost - 3);
  const int served = 1 + random_below(all);  // So many shares a tick.
  printf("%d members, %d shares of %d, %s\n", all, served, share, writes ? "writers" : "readers");
  base = event_base_new();
  struct bufferevent_rate_limit_group* group =
      make_group(served * share, kStep * (1 + random_below(3)));
  printf("min share: %d\n", bufferevent_rate_limit_group_set_min_share(group, (size_t)share));
  for (members = 0; members < all; members++) join(group, members, writes);
  const size_t enough = (size_t)all * (size_t)share * kSharesEach;
  for (int turn = 0; turn < kTurnsMost && moved_by_all() < enough; turn++) {
    serve_peers(writes);
    event_base_loop(base, EVLOOP_ONCE);
  }
  printf("enough: %d\n", moved_by_all() >= enough);
  show_fairness();
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run_script); }
