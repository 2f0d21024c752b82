// ev_stat, in a private directory. ev(3): ev_stat.
//
// Each change is one system call, and is waited for, so that how often a path is looked at does not
// show. It changes more than times, of which only whole seconds are compared.

#include <sys/stat.h>

#include "libev_turns.h"

static ev_stat watchers[4];
static char directory[64];
static unsigned flags;

// Never freed: a watcher stores the pointer to its path.
static const char* in_directory(const char* name) {
  char* path = NULL;
  if (asprintf(&path, "%s/%s", directory, name) < 0) {
    abort();
  }
  return path;
}

static void print_attributes(const char* what, const ev_statdata* data) {
  if (data->st_nlink == 0) {
    printf(" %s: missing", what);
  } else {
    printf(" %s: %o size %ld links %ld", what, data->st_mode & 0177777,
           S_ISDIR(data->st_mode) ? 0L : (long)data->st_size, (long)data->st_nlink);
  }
}

static void on_stat(struct ev_loop* of, ev_stat* watcher, int revents) {
  (void)of;
  printf("stat %d revents %x", (int)(watcher - watchers), (unsigned)revents);
  print_attributes("prev", &watcher->prev);
  print_attributes("attr", &watcher->attr);
  printf("\n");
  seen++;
}

static void watch(int number, const char* name) {
  ev_stat_init(&watchers[number], on_stat, in_directory(name), 0.);
  if (flags != 0) {
    ev_stat_set(&watchers[number], in_directory(name), 0.11);
  }
  ev_stat_start(loop, &watchers[number]);
  printf("started %d:", number);
  print_attributes("attr", &watchers[number].attr);
  printf("\n");
}

static void write_file(const char* name, const char* text) {
  const int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) {
    abort();
  }
  close(fd);
}

static void create_empty(const char* name) {
  close(open(in_directory(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static void link_to_file(const char* name) {
  if (link(in_directory("file"), in_directory(name)) != 0) {
    abort();
  }
}

static void append(const char* name) {
  const int fd = open(in_directory(name), O_WRONLY | O_APPEND | O_CLOEXEC);
  put(fd);
  close(fd);
}

static void set_up(void) {
  snprintf(directory, sizeof directory, "/tmp/spate_stat_XXXXXX");
  if (mkdtemp(directory) == NULL) {
    abort();
  }
  loop = ev_loop_new(EVFLAG_NOENV | flags);
}

static void tear_down(void) {
  ev_loop_destroy(loop);
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", directory);
  if (system(command) != 0) {
    printf("could not clean up\n");
  }
}

static void change(const char* what, int wanted) {
  printf("%s\n", what);
  run_until(wanted);
}

static void life_of_a_file(void) {
  set_up();
  watch(0, "file");
  create_empty("file");
  change("created", 1);
  append("file");
  change("appended", 2);
  chmod(in_directory("file"), 0600);
  change("chmod", 3);
  link_to_file("second");
  change("linked", 4);
  write_file("other", "some longer text");
  rename(in_directory("other"), in_directory("file"));
  change("replaced", 5);
  append("file");
  change("appended to the new one", 6);
  unlink(in_directory("file"));
  change("removed", 7);
  create_empty("file");
  change("created again", 8);
  ev_stat_stop(loop, &watchers[0]);
  append("file");
  run_for(0.05);
  printf("active %d\n", ev_is_active(&watchers[0]) != 0);
  tear_down();
}

static void polled(void) {
  flags = EVFLAG_NOINOTIFY;
  set_up();
  watch(0, "file");
  create_empty("file");
  change("created", 1);
  append("file");
  change("appended", 2);
  unlink(in_directory("file"));
  change("removed", 3);
  tear_down();
}

static void two_on_one_path(void) {
  set_up();
  create_empty("file");
  watch(0, "file");
  watch(1, "file");
  append("file");
  change("appended", 2);
  ev_stat_stop(loop, &watchers[0]);
  append("file");
  change("appended, one stopped", 3);
  tear_down();
}

static void two_links(void) {
  set_up();
  create_empty("file");
  link_to_file("second");
  watch(0, "file");
  watch(1, "second");
  append("file");
  change("appended", 2);
  tear_down();
}

static void a_directory(void) {
  set_up();
  mkdir(in_directory("inner"), 0755);
  watch(0, "inner");
  chmod(in_directory("inner"), 0700);
  change("chmod", 1);
  rmdir(in_directory("inner"));
  change("removed", 2);
  tear_down();
}

static void missing_parents(void) {
  set_up();
  watch(0, "a/b/file");
  mkdir(in_directory("a"), 0755);
  run_for(0.02);
  mkdir(in_directory("a/b"), 0755);
  run_for(0.02);
  create_empty("a/b/file");
  change("created", 1);
  tear_down();
}

static void a_link_to_a_file(void) {
  set_up();
  create_empty("file");
  if (symlink("file", in_directory("link")) != 0) {
    return;
  }
  ev_stat_init(&watchers[0], on_stat, in_directory("link"), 0.);
  ev_stat_start(loop, &watchers[0]);
  printf("a link: %d\n", S_ISLNK(watchers[0].attr.st_mode));
  unlink(in_directory("link"));
  change("the link removed", 1);
  tear_down();
}

static void looked_at_by_hand(void) {
  set_up();
  create_empty("file");
  watch(0, "file");
  append("file");
  ev_stat_stat(loop, &watchers[0]);
  print_attributes("by hand", &watchers[0].attr);
  printf("\n");
  ev_stat_stop(loop, &watchers[0]);
  ev_stat_set(&watchers[0], in_directory("missing"), 0.);
  ev_stat_stat(loop, &watchers[0]);
  print_attributes("missing", &watchers[0].attr);
  printf("\n");
  tear_down();
}

static void does_not_hold_the_loop(void) {
  set_up();
  create_empty("file");
  watch(0, "file");
  printf("turn: %d\n", ev_run(loop, EVRUN_NOWAIT));
  printf("interval %d path %d\n", (int)watchers[0].interval,
         strcmp(watchers[0].path, in_directory("file")));
  ev_stat_stop(loop, &watchers[0]);
  printf("turn: %d\n", ev_run(loop, EVRUN_NOWAIT));
  tear_down();
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"life of a file", life_of_a_file},
      {"polled", polled},
      {"two on one path", two_on_one_path},
      {"two links", two_links},
      {"a directory", a_directory},
      {"missing parents", missing_parents},
      {"a link to a file", a_link_to_a_file},
      {"looked at by hand", looked_at_by_hand},
      {"does not hold the loop", does_not_hold_the_loop},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
