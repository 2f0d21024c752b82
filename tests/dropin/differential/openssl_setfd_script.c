// Random scripts over bufferevent_setfd() and bufferevent_socket_connect() of a socket, a filter,
// and TLS on a socket: descriptors are taken away, given and connected, in any order and state,
// while the bufferevent is enabled, disabled, written to and read from.
//
// TLS filters are left out: the original begins again in some states only, for which
// openssl_setfd.c has cases. Nor are filters connected: they get no event on the original.
//
// differential: --seeds 1:300
#include "setfd_kinds.h"

static const Kind script_kinds[] = {kSocket, kSocket, kFilter, kTls, kTls};

static void step_enable(void) {
  const short what = (short)(1 + random_below(3)) * EV_READ;
  const int on = random_chance(70);
  printf("%s %#x: %d\n", on ? "enable" : "disable", what,
         on ? bufferevent_enable(bev, what) : bufferevent_disable(bev, what));
}

static void step_write(void) {
  static const char bytes[3000];
  printf("write: %d\n", bufferevent_write(bev, bytes, (size_t)random_below((int)sizeof bytes)));
}

static void step(int role) {
  const int choice = random_below(100);
  if (choice < 20) {
    set_none();
  } else if (choice < 45) {
    set_other(role);
  } else if (choice < 60 && kind != kFilter) {
    connect_once(random_below(kHows - 1));
  } else if (choice < 75) {
    step_enable();
  } else if (choice < 85) {
    step_write();
  } else {
    turns(1 + random_below(3));
  }
}

static void run_script(void) {
  const Kind chosen = script_kinds[random_below((int)(sizeof script_kinds / sizeof *script_kinds))];
  const int role = random_below(2);
  begin(chosen, (State)random_below(kStates), role);
  for (int i = 2 + random_below(8); i > 0; i--) {
    step(role);
    show_state("now");
  }
  bufferevent_free(bev);
  turns(2);
}

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  return run_seeds(argc, argv, run_script);
}
