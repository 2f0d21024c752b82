// The original's C++ header, and exceptions that leave a callback. ev(3): "C++ SUPPORT", "C API
// (and other languages)"; the loop may be left by an exception and run again.

#include <ev++.h>

#include "libev_turns.h"

namespace {

struct Thrown {
  int number;
};

ev_idle idles[6];

int number_of(const ev_idle* watcher) { return static_cast<int>(watcher - idles); }

void on_idle(struct ev_loop* of, ev_idle* watcher, int revents) {
  printf("idle %d revents %x depth %u\n", number_of(watcher), static_cast<unsigned>(revents),
         ev_depth(of));
}

void on_idle_throw(struct ev_loop* of, ev_idle* watcher, int revents) {
  on_idle(of, watcher, revents);
  throw Thrown{number_of(watcher)};
}

void on_idle_nested(struct ev_loop* of, ev_idle* watcher, int revents) {
  on_idle(of, watcher, revents);
  ev_idle_stop(of, watcher);
  ev_run(of, EVRUN_NOWAIT);
  printf("nested run ended\n");
}

template <typename Call>
void catching(const char* what, Call call) {
  try {
    call();
    printf("%s: nothing thrown", what);
  } catch (const Thrown& thrown) {
    printf("%s: thrown by %d", what, thrown.number);
  }
  printf(", depth %u pending %d\n", ev_depth(loop), ev_pending_count(loop) != 0);
}

void start_idles(int thrower) {
  for (int i = 0; i < 6; i++) {
    ev_idle_init(&idles[i], i == thrower ? on_idle_throw : on_idle);
    ev_idle_start(loop, &idles[i]);
  }
}

void run() { ev_run(loop, EVRUN_NOWAIT); }

void thrown_out_of_run() {
  new_loop();
  start_idles(3);
  catching("run", run);
  catching("run again", run);
  ev_idle_stop(loop, &idles[3]);
  catching("without it", run);
}

void thrown_out_of_two_runs() {
  new_loop();
  start_idles(3);
  ev_set_cb(&idles[5], on_idle_nested);
  catching("run", run);
  ev_idle_stop(loop, &idles[3]);
  catching("without it", run);
}

void thrown_out_of_invoke() {
  new_loop();
  start_idles(3);
  catching("invoke", [] { ev_invoke(loop, &idles[3], EV_CUSTOM); });
  ev_feed_event(loop, &idles[2], EV_CUSTOM);
  ev_feed_event(loop, &idles[3], EV_CUSTOM);
  catching("invoke pending", [] { ev_invoke_pending(loop); });
  catching("invoke what is left", [] { ev_invoke_pending(loop); });
}

void on_prepare_throw(struct ev_loop*, ev_prepare*, int) { throw Thrown{-1}; }

void thrown_out_of_prepare() {
  ev_prepare prepare;
  new_loop();
  start_idles(-1);
  ev_prepare_init(&prepare, on_prepare_throw);
  ev_prepare_start(loop, &prepare);
  catching("run", run);
  ev_prepare_stop(loop, &prepare);
  catching("without it", run);
}

// --- ev++.h. ---

struct Machine {
  explicit Machine(struct ev_loop* of) : io{of}, timer{of}, async{of}, idle{of} {}

  void on_io(ev::io& watcher, int revents) {
    printf("io revents %x active %d\n", static_cast<unsigned>(revents), watcher.is_active());
    drain(watcher.fd);
    watcher.stop();
    timer.start(0.002);
  }
  void on_timer(ev::timer& watcher, int revents) {
    printf("timer revents %x active %d\n", static_cast<unsigned>(revents), watcher.is_active());
    async.send();
  }
  void on_async(ev::async&, int) {
    printf("async\n");
    idle.start();
  }
  void on_idle(ev::idle& watcher, int) {
    printf("idle\n");
    watcher.loop.break_loop(ev::ALL);
  }

  ev::io io;
  ev::timer timer;
  ev::async async;
  ev::idle idle;
};

void classes() {
  int fds[2];
  make_pair(fds);
  ev::dynamic_loop own;
  Machine machine{own};
  machine.io.set<Machine, &Machine::on_io>(&machine);
  machine.io.start(fds[0], ev::READ);
  machine.timer.set<Machine, &Machine::on_timer>(&machine);
  machine.async.set<Machine, &Machine::on_async>(&machine);
  machine.async.start();
  machine.idle.set<Machine, &Machine::on_idle>(&machine);
  put(fds[1]);
  own.run();
  printf("iterations counted %d depth %u\n", own.iteration() > 0, own.depth());
}

void started_watchers_stop_themselves() {
  int fds[2];
  make_pair(fds);
  ev::dynamic_loop own;
  {
    Machine machine{own};
    machine.io.set<Machine, &Machine::on_io>(&machine);
    machine.io.start(fds[1], ev::WRITE);
    machine.timer.set<Machine, &Machine::on_timer>(&machine);
    machine.timer.start(0., 0.001);
    machine.timer.feed_event(ev::TIMER);
  }
  own.run(ev::NOWAIT);
  printf("done\n");
}

}  // namespace

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"thrown out of run", thrown_out_of_run},
      {"thrown out of two runs", thrown_out_of_two_runs},
      {"thrown out of invoke", thrown_out_of_invoke},
      {"thrown out of prepare", thrown_out_of_prepare},
      {"classes", classes},
      {"started watchers stop themselves", started_watchers_stop_themselves},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
