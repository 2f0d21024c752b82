// Listeners, case by case.
#include <arpa/inet.h>
#include <event2/listener.h>
#include <netinet/in.h>

#include "libevent_cases.h"

static struct event_base* base;

static void turns(int count) {
  for (int i = 0; i < count; i++)
    show("turn", event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
}

static void show_open(int fd) { show("open", fcntl(fd, F_GETFD) >= 0); }

static void begin(int ends[2]) {
  signal(SIGPIPE, SIG_IGN);
  event_set_log_callback(on_log);
  base = event_base_new();
  open_pair(ends);
}

static void on_accept(struct evconnlistener* listener, evutil_socket_t fd, struct sockaddr* address,
                      int size, void* arg) {
  (void)listener;
  printf("  %s accepts: family %d, size %d, non-blocking %d, cloexec %d\n", (const char*)arg,
         address->sa_family, size, (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0, fcntl(fd, F_GETFD));
  close(fd);
}

static void on_accept_free(struct evconnlistener* listener, evutil_socket_t fd,
                           struct sockaddr* address, int size, void* arg) {
  on_accept(listener, fd, address, size, arg);
  evconnlistener_free(listener);
}

static void on_accept_disable(struct evconnlistener* listener, evutil_socket_t fd,
                              struct sockaddr* address, int size, void* arg) {
  on_accept(listener, fd, address, size, arg);
  evconnlistener_disable(listener);
}

static void on_accept_error(struct evconnlistener* listener, void* arg) {
  (void)listener;
  printf("  %s: %s\n", (const char*)arg, strerror(errno));
}

static void knock(struct evconnlistener* listener) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  show("knock", connect(fd, (struct sockaddr*)&address, size));
}

static struct evconnlistener* listen_on_any(unsigned flags, int backlog) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return evconnlistener_new_bind(base, on_accept, (void*)"one", flags, backlog,
                                 (struct sockaddr*)&address, sizeof address);
}

static void show_option(int fd, const char* name, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  getsockopt(fd, SOL_SOCKET, option, &value, &size);
  show(name, value != 0);
}

static void run_steps(void) {
  int ends[2];
  begin(ends);
  struct evconnlistener* listener = listen_on_any(LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, -1);
  const int fd = evconnlistener_get_fd(listener);
  show("base", evconnlistener_get_base(listener) == base);
  show_option(fd, "reuse", SO_REUSEADDR);
  show_option(fd, "keepalive", SO_KEEPALIVE);
  show("cloexec", fcntl(fd, F_GETFD));
  knock(listener);
  knock(listener);
  turns(2);
  evconnlistener_set_cb(listener, NULL, NULL);
  knock(listener);
  turns(2);
  evconnlistener_set_cb(listener, on_accept, (void*)"two");
  turns(2);
  show("disable", evconnlistener_disable(listener));
  show("again", evconnlistener_disable(listener));
  knock(listener);
  turns(1);
  show("enable", evconnlistener_enable(listener));
  turns(1);
  evconnlistener_set_cb(listener, on_accept_disable, (void*)"three");
  knock(listener);
  knock(listener);
  turns(2);
  evconnlistener_enable(listener);
  evconnlistener_set_cb(listener, on_accept_free, (void*)"four");
  turns(2);
  show_open(fd);
  show("events", event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
}

static void run_options(void) {
  int ends[2];
  begin(ends);
  struct evconnlistener* listener =
      listen_on_any(LEV_OPT_LEAVE_SOCKETS_BLOCKING | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED, 5);
  const int fd = evconnlistener_get_fd(listener);
  show("events", event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
  knock(listener);
  evconnlistener_enable(listener);
  turns(1);
  show_option(fd, "reuse", SO_REUSEADDR);
  show("cloexec", fcntl(fd, F_GETFD));
  evconnlistener_free(listener);
  show_open(fd);
  show("no backlog", listen_on_any(0, 0) != NULL);
  show("no fd", evconnlistener_new(base, on_accept, NULL, 0, 0, -1) != NULL);
  show("cannot listen", evconnlistener_new(base, on_accept, NULL, 0, 5, ends[0]) != NULL);
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = 99;
  show("no family", evconnlistener_new_bind(base, on_accept, NULL, 0, 5, (struct sockaddr*)&address,
                                            sizeof address) != NULL);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x01020304);
  show("not ours", evconnlistener_new_bind(base, on_accept, NULL, 0, 5, (struct sockaddr*)&address,
                                           sizeof address) != NULL);
}

static void run_fails(void) {
  int ends[2];
  begin(ends);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct evconnlistener* listener = evconnlistener_new(base, on_accept, (void*)"it", 0, 0, fd);
  evconnlistener_set_error_cb(listener, on_accept_error);
  turns(2);
  evconnlistener_set_error_cb(listener, NULL);
  turns(1);
  evconnlistener_free(listener);
  turns(1);
}

static const Case cases[] = {
    {"steps", run_steps},
    {"options", run_options},
    {"fails", run_fails},
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
