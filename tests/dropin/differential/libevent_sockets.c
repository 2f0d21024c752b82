// The settings of sockets, the clocks and the random bytes of event2/util.h: on descriptors of
// every kind, the result of each call, its effect and its warnings.
// differential: --stderr
#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "harness.h"

enum { kBadDescriptor = 999 };

static void print_result(const char* name, int result) {
  printf("%s: %d, %s\n", name, result, result == 0 ? "" : strerror(errno));
}

static void print_option(int fd, const char* name, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  const int result = getsockopt(fd, level, option, &value, &size);
  printf("  %s %d\n", name, result == 0 ? value : -1);
}

static void set_everything(const char* name, int fd) {
  printf("%s\n", name);
  for (int times = 0; times < 2; times++) {
    print_result("nonblocking", evutil_make_socket_nonblocking(fd));
    print_result("closeonexec", evutil_make_socket_closeonexec(fd));
    printf("  flags %x %x\n", fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
  }
  print_result("reuseable", evutil_make_listen_socket_reuseable(fd));
  print_option(fd, "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR);
  print_option(fd, "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE);
  print_result("reuseable_port", evutil_make_listen_socket_reuseable_port(fd));
  print_option(fd, "SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT);
  print_result("ipv6only", evutil_make_listen_socket_ipv6only(fd));
  print_option(fd, "IPV6_V6ONLY", IPPROTO_IPV6, IPV6_V6ONLY);
  print_result("deferred", evutil_make_tcp_listen_socket_deferred(fd));
  print_option(fd, "TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT);
  print_result("closesocket", evutil_closesocket(fd));
  print_result("closesocket", evutil_closesocket(fd));
}

static void settings(void) {
  set_everything("tcp", socket(AF_INET, SOCK_STREAM, 0));
  set_everything("tcp over ipv6", socket(AF_INET6, SOCK_STREAM, 0));
  set_everything("udp", socket(AF_INET, SOCK_DGRAM, 0));
  set_everything("unix", socket(AF_UNIX, SOCK_STREAM, 0));
  set_everything("file", open("/dev/null", O_RDWR));
  set_everything("none", -1);
  set_everything("closed", kBadDescriptor);
}

static void pairs(void) {
  int pair[2] = {-5, -5};
  char byte = 0;
  print_result("unix", evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  const int sent = (int)write(pair[0], "x", 1);
  const int received = (int)read(pair[1], &byte, 1);
  printf("%d %d %c\n", sent, received, byte);
  printf("%x %x\n", fcntl(pair[0], F_GETFL), fcntl(pair[1], F_GETFD));
  print_result("datagram", evutil_socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair));
  print_result("inet", evutil_socketpair(AF_INET, SOCK_STREAM, 0, pair));
  print_result("inet6", evutil_socketpair(AF_INET6, SOCK_STREAM, 0, pair));
  print_result("bad type", evutil_socketpair(AF_UNIX, 77, 0, pair));
  print_result("bad protocol", evutil_socketpair(AF_UNIX, SOCK_STREAM, 7, pair));
}

static void random_numbers(void) {
  char name[] = "/dev/urandom";
  unsigned char bytes[4096];
  int seen[256] = {0};
  int different = 0;
  print_result("set_urandom_device_file", evutil_secure_rng_set_urandom_device_file(name));
  print_result("init", evutil_secure_rng_init());
  evutil_secure_rng_add_bytes("seed", 4);
  evutil_secure_rng_get_bytes(bytes, 0);
  evutil_secure_rng_get_bytes(bytes, sizeof bytes);
  for (size_t i = 0; i < sizeof bytes; i++) {
    different += seen[bytes[i]]++ == 0;
  }
  printf("nearly every byte: %d\n", different > 250);
}

static double seconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// Prints which clock a timer uses: the one whose time, just before or just after, matches.
static void print_clock(const char* name, struct evutil_monotonic_timer* timer) {
  static const struct {
    const char* name;
    clockid_t clock;
  } clocks[] = {{"wall", CLOCK_REALTIME}, {"monotonic", CLOCK_MONOTONIC}};
  for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
    struct timeval now = {-1, -1};
    const double before = seconds_of(clocks[i].clock);
    const int result = evutil_gettime_monotonic(timer, &now);
    const double time = (double)now.tv_sec + (double)now.tv_usec / 1e6;
    const double after = seconds_of(clocks[i].clock);
    const int same = time > before - 0.1 && time < after + 0.1;
    printf("%s: %d, %s %d\n", name, result, clocks[i].name, same);
  }
}

static void clocks(void) {
  struct evutil_monotonic_timer* timer = evutil_monotonic_timer_new();
  print_clock("not configured", timer);
  static const int flags[] = {0, EV_MONOT_PRECISE, EV_MONOT_FALLBACK,
                              EV_MONOT_PRECISE | EV_MONOT_FALLBACK, 64};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    printf("configure %d: %d\n", flags[i], evutil_configure_monotonic_time(timer, flags[i]));
    print_clock("configured", timer);
  }
  evutil_monotonic_timer_free(timer);
  evutil_monotonic_timer_free(NULL);
}

static void date_of_now(void) {
  setenv("TZ", "Asia/Tokyo", 1);
  char text[64];
  char expected[64];
  const time_t now = time(NULL);
  const int length = evutil_date_rfc1123(text, sizeof text, NULL);
  strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:", gmtime(&now));
  printf("date: %d, %d\n", length, strncmp(text, expected, strlen(expected)) == 0 || now % 60 > 57);
}

static const Case kCases[] = {{"settings", settings},
                              {"pairs", pairs},
                              {"random numbers", random_numbers},
                              {"clocks", clocks},
                              {"date of now", date_of_now}};

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, sizeof kCases / sizeof *kCases);
}
