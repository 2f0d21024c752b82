// ev_io, and embedded loops. ev(3): ev_io, ev_embed, ev_feed_fd_event.
//
// Nothing is printed that depends on the order of descriptors that are ready at once: the kernel
// chooses it, depending on the library's earlier calls.

#include "libev_turns.h"

enum { kWatchers = 8, kMany = 900 };

static ev_io watchers[kWatchers];

static void on_io(struct ev_loop* of, ev_io* watcher, int revents) {
  (void)of;
  printf("io %d revents %x\n", (int)(watcher - watchers), (unsigned)revents);
  seen++;
}

static void start(int number, int fd, int events) {
  ev_io_init(&watchers[number], on_io, fd, events);
  ev_io_start(loop, &watchers[number]);
}

static void masks(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  start(0, fds[0], EV_READ);
  start(1, fds[0], EV_WRITE);
  start(2, fds[0], EV_READ | EV_WRITE);
  start(3, fds[0], 0);
  turn();
  put(fds[1]);
  turn();
  ev_io_stop(loop, &watchers[1]);
  ev_io_stop(loop, &watchers[2]);
  turn();
  drain(fds[0]);
  turn();
  ev_io_start(loop, &watchers[2]);
  turn();
}

static void priorities_on_one_fd(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  for (int i = 0; i < kWatchers; i++) {
    ev_io_init(&watchers[i], on_io, fds[0], EV_WRITE);
    ev_set_priority(&watchers[i], i % 5 - 2);
    ev_io_start(loop, &watchers[i]);
  }
  turn();
  for (int i = 0; i < kWatchers; i += 3) {
    ev_io_stop(loop, &watchers[i]);
    ev_io_start(loop, &watchers[i]);
  }
  turn();
}

static void modify(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  put(fds[1]);
  start(0, fds[0], EV_READ);
  turn();
  ev_io_stop(loop, &watchers[0]);
  ev_io_modify(&watchers[0], EV_WRITE);
  ev_io_start(loop, &watchers[0]);
  turn();
  ev_io_stop(loop, &watchers[0]);
  ev_io_modify(&watchers[0], EV_READ | EV_WRITE);
  ev_io_start(loop, &watchers[0]);
  turn();
  printf("wants %d\n", watchers[0].events & (EV_READ | EV_WRITE));
}

static void ends(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  start(0, fds[0], EV_READ);
  start(1, fds[0], EV_WRITE);
  shutdown(fds[1], SHUT_WR);
  printf("the other side is shut\n");
  turn();
  close(fds[1]);
  printf("the other side is closed\n");
  turn();
  int pipe_fds[2];
  make_pipe(pipe_fds);
  ev_io_stop(loop, &watchers[0]);
  ev_io_stop(loop, &watchers[1]);
  start(2, pipe_fds[1], EV_WRITE);
  turn();
  close(pipe_fds[0]);
  printf("nobody reads\n");
  turn();
  start(3, pipe_fds[1], EV_READ);
  turn();
}

// The number now names another file; ev_io_set() informs the loop.
static void number_used_again(void) {
  int first[2];
  int second[2];
  new_loop();
  make_pair(first);
  start(0, first[0], EV_READ);
  put(first[1]);
  turn();
  for (int i = 0; i < 3; i++) {
    ev_io_stop(loop, &watchers[0]);
    make_pair(second);
    dup2(second[0], first[0]);
    close(second[0]);
    ev_io_set(&watchers[0], first[0], EV_READ);
    ev_io_start(loop, &watchers[0]);
    printf("another file\n");
    turn();
    put(second[1]);
    turn();
  }
}

static void on_close(struct ev_loop* of, ev_io* watcher, int revents) {
  on_io(of, watcher, revents);
  ev_io_stop(of, watcher);
  close(watcher->fd);
}

static void closed_in_the_callback(void) {
  int fds[2];
  for (int i = 0; i < 4; i++) {
    if (i == 0) {
      new_loop();
    }
    make_pair(fds);
    put(fds[1]);
    ev_io_init(&watchers[0], on_close, fds[0], EV_READ);
    ev_io_start(loop, &watchers[0]);
    turn();
    turn();
    close(fds[1]);
  }
}

static void two_numbers_for_one_file(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  const int copy = dup(fds[0]);
  start(0, fds[0], EV_READ);
  start(1, copy, EV_READ);
  put(fds[1]);
  seen = 0;
  turn();
  ev_io_stop(loop, &watchers[0]);
  turn();
  printf("%d calls\n", seen);
}

static void on_stop_all(struct ev_loop* of, ev_io* watcher, int revents) {
  on_io(of, watcher, revents);
  for (int i = 0; i < kWatchers; i++) {
    ev_io_stop(of, &watchers[i]);
  }
}

static void stopped_by_another(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  for (int i = 0; i < kWatchers; i++) {
    ev_io_init(&watchers[i], i == 3 ? on_stop_all : on_io, fds[0], EV_WRITE);
    ev_io_start(loop, &watchers[i]);
  }
  turn();
  turn();
}

static void on_feed(struct ev_loop* of, ev_io* watcher, int revents) {
  on_io(of, watcher, revents);
  if (seen < 4) {
    ev_feed_fd_event(of, watcher->fd, EV_READ);
  }
}

static void fed(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  ev_feed_fd_event(loop, fds[0], EV_READ);
  start(0, fds[0], EV_READ);
  start(1, fds[0], EV_WRITE);
  turn();
  ev_feed_fd_event(loop, fds[0], EV_READ | EV_WRITE);
  turn();
  ev_io_stop(loop, &watchers[1]);
  ev_set_cb(&watchers[0], on_feed);
  seen = 0;
  ev_feed_fd_event(loop, fds[0], EV_READ);
  turn();
}

static int on_many_calls;

static void on_many(struct ev_loop* of, ev_io* watcher, int revents) {
  (void)of;
  (void)revents;
  on_many_calls++;
  drain(watcher->fd);
}

static void many(void) {
  static ev_io many_watchers[kMany / 2];
  static int fds[kMany / 2][2];
  new_loop();
  for (int i = 0; i < kMany / 2; i++) {
    make_pair(fds[i]);
    ev_io_init(&many_watchers[i], on_many, fds[i][0], EV_READ);
    ev_io_start(loop, &many_watchers[i]);
  }
  for (int turns = 0; turns < 5; turns++) {
    for (int i = 0; i < kMany / 2; i += turns + 1) {
      put(fds[i][1]);
    }
    // How many descriptors one poll returns differs between the backends.
    for (int i = 0; i < 20; i++) {
      ev_run(loop, EVRUN_NOWAIT);
    }
    printf("%d calls\n", on_many_calls);
  }
}

static void stopped_and_closed(void) {
  int fds[2];
  new_loop();
  for (int i = 0; i < 50; i++) {
    make_pair(fds);
    put(fds[1]);
    start(0, fds[0], EV_READ);
    if (i % 2 == 0) {
      ev_run(loop, EVRUN_NOWAIT);
    }
    ev_io_stop(loop, &watchers[0]);
    close(fds[0]);
    close(fds[1]);
  }
  turn();
}

// --- Embedded loops. ---

static ev_embed embed;
static struct ev_loop* inner;

static void on_embed(struct ev_loop* of, ev_embed* watcher, int revents) {
  printf("embed revents %x other %d\n", (unsigned)revents, watcher->other == inner);
  ev_embed_sweep(of, watcher);
}

static void on_embed_only(struct ev_loop* of, ev_embed* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("embed revents %x, not swept\n", (unsigned)revents);
}

static void on_inner(struct ev_loop* of, ev_io* watcher, int revents) {
  printf("inner %d io %d revents %x depth %u\n", of == inner, (int)(watcher - watchers),
         (unsigned)revents, ev_depth(of));
  drain(watcher->fd);
}

static void embedding(void (*callback)(struct ev_loop*, ev_embed*, int)) {
  int fds[2];
  new_loop();
  inner = ev_loop_new(ev_embeddable_backends() & ev_recommended_backends());
  printf("embeddable %d\n", inner != NULL && (ev_backend(inner) & ev_embeddable_backends()) != 0);
  make_pair(fds);
  ev_embed_init(&embed, callback, inner);
  ev_embed_start(loop, &embed);
  turn();
  ev_io_init(&watchers[0], on_inner, fds[0], EV_READ);
  ev_io_start(inner, &watchers[0]);
  turn();
  put(fds[1]);
  turn();
  turn();
  put(fds[1]);
  ev_embed_stop(loop, &embed);
  turn();
  ev_embed_sweep(loop, &embed);
  put(fds[1]);
  ev_embed_start(loop, &embed);
  turn();
  turn();
  printf("active %d\n", ev_is_active(&embed) != 0);
}

static void embedded_by_itself(void) { embedding(NULL); }
static void embedded_with_callback(void) { embedding(on_embed); }
static void embedded_not_swept(void) { embedding(on_embed_only); }

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"masks", masks},
      {"priorities on one fd", priorities_on_one_fd},
      {"modify", modify},
      {"ends", ends},
      {"number used again", number_used_again},
      {"closed in the callback", closed_in_the_callback},
      {"two numbers for one file", two_numbers_for_one_file},
      {"stopped by another", stopped_by_another},
      {"fed", fed},
      {"many", many},
      {"stopped and closed", stopped_and_closed},
      {"embedded by itself", embedded_by_itself},
      {"embedded with callback", embedded_with_callback},
      {"embedded, not swept", embedded_not_swept},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
