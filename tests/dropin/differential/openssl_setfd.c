// bufferevent_setfd() and bufferevent_socket_connect() of each kind of bufferevent, in each state:
// without a descriptor, with one, while the handshake waits, open, and after the peer has ended.
//
// After each step the program reads and writes, which shows the connection that it uses.
//
// The original cannot do some of it, which is left out. Its TLS filter begins again only if it has
// not written yet, or is open. Its filter gets no event when the socket below has connected.
#include "setfd_kinds.h"

static int begins_again(State state, int role) {
  if (kind != kTlsFilter) return 1;
  if (role == kServes) return state != kEnded;
  return state == kShaking || state == kOpen;
}

static void run_none_then_another(void) {
  for (int each = 0; each < kRuns; each++) {
    const int role = each % 2;
    begin(each / 2 / kStates, each / 2 % kStates, role);
    set_none();
    if (begins_again(each / 2 % kStates, role)) set_other(role);
  }
}

static void run_another(void) {
  for (int each = 0; each < kRuns; each++) {
    const int role = each % 2;
    begin(each / 2 / kStates, each / 2 % kStates, role);
    if (begins_again(each / 2 % kStates, role)) set_other(role);
  }
}

static const Kind connected_kinds[] = {kSocket, kTls};

static void run_connect(void) {
  for (int each = 0; each < 2 * kHows; each++) {
    begin(connected_kinds[each / kHows], kNone, kConnects);
    connect_once(each % kHows);
  }
  begin(kFilter, kNone, kConnects);
  connect_once(kNoFamily);
}

static void run_connect_again(void) {
  for (int each = 0; each < 2 * kStates; each++) {
    begin(connected_kinds[each / kStates], each % kStates, kConnects);
    set_none();
    connect_once(kByAddress);
    set_none();
    connect_once(kByName);
  }
}

// A failed connection of TLS waits only for the enabled direction.
static void run_failed(void) {
  begin(kTls, kNone, kConnects);
  connect_once(kRefused);
  bufferevent_enable(bev, EV_READ);
  bufferevent_disable(bev, EV_READ);
  turns(3);
  show_state("read and not");
  bufferevent_enable(bev, EV_READ);
  turns(3);
  show_state("reads");
  for (int role = 0; role < 2; role++) {
    begin(kTls, kEnded, role);
    for (int i = 0; i < 3; i++) {
      bufferevent_write(bev, "more", 4);
      turns(3);
      bufferevent_enable(bev, EV_READ);
    }
    turns(3);
    show_state("has written");
  }
}

static const Case cases[] = {
    {"none then another", run_none_then_another},
    {"another", run_another},
    {"connect", run_connect},
    {"connect again", run_connect_again},
    {"failed", run_failed},
};

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
