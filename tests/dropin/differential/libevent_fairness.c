// Members of a rate-limit group that all have more to move than they may: each gets its share.
//
// The original begins with a member by chance, and the drop-in with the one that waited longest. So
// the shares are not compared, but whether each lies between a third and three times of the mean.
// Left out is select(), whose order the walk through the members does not change.
//
// differential settings: debug,locks,changelist,precise,poll
enum { kMembersMost = 40, kShare = 64, kTickMicros = 1000, kAll = 300000 };

#include "rate_limit_shares.h"

static void share(int method, int writes) {
  printf("%s, %s\n", kMethodNames[method], writes ? "writers" : "readers");
  base = base_with(method, 0);
  members = kMembersMost;
  struct bufferevent_rate_limit_group* group = make_group(members * kShare * 2 / 5, kTickMicros);
  for (int i = 0; i < members; i++) {
    join(group, i, writes);
  }
  while (moved_by_all() < kAll) {
    serve_peers(writes);
    event_base_loop(base, EVLOOP_ONCE);
  }
  show_fairness();
}

static void readers(void) {
  for (int method = 0; method < 2; method++) share(method, 0);
}

static void writers(void) {
  for (int method = 0; method < 2; method++) share(method, 1);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"readers", readers},
      {"writers", writers},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
