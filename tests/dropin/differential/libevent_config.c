// The configuration of a base: methods, features and flags, and how they are chosen; versions.
#include <time.h>

#include "libevent_cases.h"

static const char* const kVariables[kMethods] = {"EVENT_NOEPOLL", "EVENT_NOPOLL", "EVENT_NOSELECT"};

static void print_base(const struct event_config* config) {
  struct event_base* base = event_base_new_with_config(config);
  if (!base) {
    printf("no base\n");
    return;
  }
  printf("%s, features %#x\n", event_base_get_method(base), event_base_get_features(base));
  event_base_free(base);
}

// ---- versions, methods, features

static void versions(void) {
  show_text("version", event_get_version());
  show_hex("number", event_get_version_number());
  show("size", (long)event_get_struct_event_size());
  const char** names = event_get_supported_methods();
  for (int i = 0; names[i]; i++) show_text("supported", names[i]);
}

static void avoided_methods(void) {
  event_set_log_callback(on_log);
  for (int avoided = 0; avoided < 1 << kMethods; avoided++) {
    struct event_config* config = event_config_new();
    for (int i = 0; i < kMethods; i++) {
      if (avoided & 1 << i) show("avoid", event_config_avoid_method(config, kMethodNames[i]));
    }
    print_base(config);
    event_config_free(config);
  }
  struct event_config* config = event_config_new();
  show("avoid", event_config_avoid_method(config, "kqueue"));
  show("avoid", event_config_avoid_method(config, "EPOLL"));
  print_base(config);
  event_config_free(config);
  print_base(NULL);
}

static void methods_by_environment(void) {
  event_set_log_callback(on_log);
  for (int refused = 0; refused < 1 << kMethods; refused++) {
    for (int i = 0; i < kMethods; i++) {
      unsetenv(kVariables[i]);
      if (refused & 1 << i) setenv(kVariables[i], i == 1 ? "" : "1", 1);
    }
    struct event_config* config = event_config_new();
    print_base(config);
    event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
    print_base(config);
    event_config_free(config);
  }
  unsetenv(kVariables[0]);
  unsetenv(kVariables[2]);
  setenv("EVENT_SHOW_METHOD", "1", 1);
  printf("shown\n");
  print_base(NULL);
}

static void required_features(void) {
  event_set_log_callback(on_log);
  for (int avoided = 0; avoided < kMethods; avoided++) {
    for (int features = 0; features < 16; features++) {
      struct event_config* config = event_config_new();
      for (int i = 0; i < avoided; i++) event_config_avoid_method(config, kMethodNames[i]);
      show_hex("require", event_config_require_features(config, features));
      print_base(config);
      event_config_free(config);
    }
  }
}

static void flags_and_hints(void) {
  static const int flags[] = {EVENT_BASE_FLAG_NOLOCK,        EVENT_BASE_FLAG_STARTUP_IOCP,
                              EVENT_BASE_FLAG_NO_CACHE_TIME, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST,
                              EVENT_BASE_FLAG_PRECISE_TIMER, 0x3f};
  for (int i = 0; i < 6; i++) {
    struct event_config* config = event_config_new();
    show("flag", event_config_set_flag(config, flags[i]));
    show("cpus", event_config_set_num_cpus_hint(config, i - 1));
    print_base(config);
    event_config_free(config);
  }
  show("no config", event_config_set_flag(NULL, 0));
  show("no config", event_config_set_num_cpus_hint(NULL, 1));
  show("no config", event_config_require_features(NULL, 1));
  setenv("EVENT_EPOLL_USE_CHANGELIST", "1", 1);
  setenv("EVENT_PRECISE_TIMER", "1", 1);
  print_base(NULL);
}

// ---- flags that change how a base waits

static int64_t monotonic_micros(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static int64_t added_at;

static void say_in_time(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  const long wanted = strtol(self->name, NULL, 10);
  show("  not early", monotonic_micros() - added_at >= wanted);
}

static void precise_timers(void) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = base_with(method, EVENT_BASE_FLAG_PRECISE_TIMER);
    // Added in the order of their expiry, so that a pause between two adds does not change it.
    Subject timers[] = {
        {"2345", 0, say_in_time, 0}, {"6789", 0, say_in_time, 0}, {"12345", 0, say_in_time, 0}};
    printf("%s\n", event_base_get_method(base));
    added_at = monotonic_micros();
    for (int i = 0; i < 3; i++) {
      add_in(open_subject(&timers[i], base, -1, 0), strtol(timers[i].name, NULL, 10));
    }
    show("loop", event_base_loop(base, 0));
    for (int i = 0; i < 3; i++) free_subject(&timers[i]);
    event_base_free(base);
  }
}

static void notifiable(void) {
  struct event_base* base = event_base_new();
  show("without threads", evthread_make_base_notifiable(base));
  event_base_free(base);
  show("no base", evthread_make_base_notifiable(NULL));
  show("use", evthread_use_pthreads());
  show("again", evthread_use_pthreads());
  base = event_base_new();
  show("with threads", evthread_make_base_notifiable(base));
  show("again", evthread_make_base_notifiable(base));
  event_base_free(base);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"versions", versions},
      {"methods: avoided", avoided_methods},
      {"methods: by environment", methods_by_environment},
      {"methods: required features", required_features},
      {"flags and hints", flags_and_hints},
      {"precise timers", precise_timers},
      {"notifiable", notifiable},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
