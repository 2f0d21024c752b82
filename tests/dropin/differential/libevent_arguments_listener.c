// Listeners with every argument that a program might pass: null pointers, sockets of each state,
// any flags. After each call a client connects.
// differential: --undefined
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "libevent_arguments.h"

static struct evconnlistener* listener;
static struct sockaddr_in address;

// ---- domains

static const Value kListenerValues[] = {
    {"NULL", 0}, {"listener", 1}, {"disabled", 2}, {"without a callback", 3}, {"of -1", 4}};
static const Domain kListeners = DOMAIN_OF(kListenerValues);

static const Value kFlagValues[] = {
    {"0", 0},
    {"LEAVE_BLOCKING", LEV_OPT_LEAVE_SOCKETS_BLOCKING},
    {"CLOSE_ON_FREE", LEV_OPT_CLOSE_ON_FREE},
    {"CLOSE_ON_EXEC", LEV_OPT_CLOSE_ON_EXEC},
    {"REUSEABLE", LEV_OPT_REUSEABLE},
    {"THREADSAFE", LEV_OPT_THREADSAFE},
    {"DISABLED", LEV_OPT_DISABLED},
    {"DEFERRED_ACCEPT", LEV_OPT_DEFERRED_ACCEPT},
    {"REUSEABLE_PORT", LEV_OPT_REUSEABLE_PORT},
    {"BIND_IPV6ONLY", LEV_OPT_BIND_IPV6ONLY},
    {"0x1000", 0x1000},
    {"all but DEFERRED_ACCEPT", (long)(~LEV_OPT_DEFERRED_ACCEPT & 0xffffffffU)},
};
static const Domain kFlags = DOMAIN_OF(kFlagValues);

static const Value kBacklogValues[] = {{"-1", -1}, {"0", 0},         {"1", 1},
                                       {"-2", -2}, {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kBacklogs = DOMAIN_OF(kBacklogValues);

enum { kBound, kListening, kUnbound, kPipe, kUdp, kUnix };

static const Value kSocketValues[] = {
    {"bound", kBound},
    {"listening", kListening},
    {"unbound", kUnbound},
    {"pipe", kPipe},
    {"udp", kUdp},
    {"unix", kUnix},
    {"-1", -1},
    {"closed", kFarFd},
    {"min", INT_MIN},
    {"max", INT_MAX},
};
static const Domain kSockets = DOMAIN_OF(kSocketValues);

enum { kAnyPort, kIpv6, kPath, kNoFamily, kForeign, kTaken };

static const Value kAddressValues[] = {{"NULL", -1},
                                       {"any port", kAnyPort},
                                       {"IPv6", kIpv6},
                                       {"abstract path", kPath},
                                       {"family 0", kNoFamily},
                                       {"another's", kForeign},
                                       {"taken", kTaken}};
static const Domain kAddresses = DOMAIN_OF(kAddressValues);

static const Value kLengthValues[] = {{"its", 0},   {"-1", -1},   {"1", 1},        {"8", 8},
                                      {"128", 128}, {"129", 129}, {"max", INT_MAX}};
static const Domain kLengths = DOMAIN_OF(kLengthValues);

// ---- the world

static void on_connection(struct evconnlistener* of, evutil_socket_t fd, struct sockaddr* from,
                          int size, void* argument) {
  printf("  connection %d, family %d, size %d, argument %d, blocking %d, inherited %d\n",
         of == listener, from->sa_family, size, argument == &address,
         (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0, (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0);
  evutil_closesocket(fd);
  count_callback();
}

static void on_other_connection(struct evconnlistener* of, evutil_socket_t fd,
                                struct sockaddr* from, int size, void* argument) {
  (void)of, (void)from, (void)size;
  printf("  another callback, argument %d\n", argument == NULL);
  evutil_closesocket(fd);
  count_callback();
}

static void on_listener_error(struct evconnlistener* of, void* argument) {
  printf("  error %d, argument %d: %s\n", of == listener, argument == &address, strerror(errno));
  evconnlistener_disable(of);
  count_callback();
}

static void note_address(int fd) {
  socklen_t size = sizeof address;
  memset(&address, 0, sizeof address);
  if (getsockname(fd, (struct sockaddr*)&address, &size) != 0) memset(&address, 0, sizeof address);
}

static int open_socket(long kind) {
  const struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
  int ends[2];
  if (kind == kPipe) return pipe2(ends, O_NONBLOCK) == 0 ? ends[0] : -1;
  if (kind > kUnix || kind < 0) return (int)kind;
  const int fd = socket(kind == kUnix ? AF_UNIX : AF_INET,
                        (kind == kUdp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK, 0);
  if (kind == kBound || kind == kListening) bind(fd, (const struct sockaddr*)&any, sizeof any);
  if (kind == kListening) listen(fd, 5);
  return fd;
}

static void open_listener(long kind) {
  open_world(0);
  if (kind == 0) return;
  const int fd = kind == 4 ? -1 : open_socket(kBound);
  note_address(fd);
  listener = evconnlistener_new(base, kind == 3 ? NULL : on_connection, &address,
                                LEV_OPT_CLOSE_ON_FREE | (kind == 2 ? LEV_OPT_DISABLED : 0), -1, fd);
  errno = 0;
}

// On a socket that does not listen, accept() fails again and again in one turn of the loop.
static void on_listener_log(int severity, const char* text) {
  static int messages;
  on_log(severity, text);
  if (++messages < 12) return;
  printf("  endless\n");
  fflush(stdout);
  _exit(0);
}

// A client connects, and the loop runs.
static void visit(const char* when) {
  printf("%s\n", when);
  if (address.sin_family == AF_INET) {
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int result = connect(client, (const struct sockaddr*)&address, sizeof address);
    printf("  connect: %s\n", result == 0 || errno == EINPROGRESS ? "begun" : strerror(errno));
  }
  callbacks = 0;
  for (int i = 0; i < 3; i++) show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
}

static void close_listener(void) {
  visit("visit");
  if (listener != NULL) {
    const int fd = evconnlistener_get_fd(listener);
    evconnlistener_free(listener);
    show("still open", fcntl(fd, F_GETFD) >= 0);
  }
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  event_base_free(base);
}

// ---- making

static void call_new(const long* at) {
  open_world(0);
  event_set_log_callback(on_listener_log);
  const int fd = open_socket(at[3]);
  errno = 0;
  listener = evconnlistener_new(at[0] & 1 ? base : NULL, at[0] & 2 ? on_connection : NULL, &address,
                                (unsigned)at[1], (int)at[2], fd);
  show("made", listener != NULL);
  if (listener == NULL) return;
  show("its fd", evconnlistener_get_fd(listener) == fd);
  note_address(fd);
  if (at[0] & 1) close_listener();
}

static int make_address(long kind, struct sockaddr_storage* to) {
  struct sockaddr_in* in = (struct sockaddr_in*)to;
  struct sockaddr_in6* in6 = (struct sockaddr_in6*)to;
  struct sockaddr_un* un = (struct sockaddr_un*)to;
  memset(to, 0, sizeof *to);
  if (kind == kIpv6) {
    *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    return sizeof *in6;
  }
  if (kind == kPath) {
    un->sun_family = AF_UNIX;
    snprintf(un->sun_path + 1, sizeof un->sun_path - 1, "spate-arguments-%d", (int)getpid());
    return sizeof *un;
  }
  if (kind == kNoFamily) return sizeof *in;
  *in = (struct sockaddr_in){.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(kind == kForeign ? 0xc0000201 : 0x7f000001)};
  if (kind == kTaken) {
    note_address(open_socket(kListening));
    *in = address;
  }
  return sizeof *in;
}

static void call_new_bind(const long* at) {
  struct sockaddr_storage given;
  open_world(0);
  const int size = make_address(at[2] < 0 ? kAnyPort : at[2], &given);
  errno = 0;
  listener = evconnlistener_new_bind(at[0] & 1 ? base : NULL, at[0] & 2 ? on_connection : NULL,
                                     &address, (unsigned)at[1], at[4] ? (int)at[4] : -1,
                                     at[2] < 0 ? NULL : (const struct sockaddr*)&given,
                                     at[3] ? (int)at[3] : size);
  const int error = errno;
  show("made", listener != NULL);
  if (listener == NULL) {
    show_text("errno", error == 0 ? "none" : strerror(error));
    return;
  }
  const int fd = evconnlistener_get_fd(listener);
  show("inherited", (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0);
  show("blocking", (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
  note_address(fd);
  if (at[0] & 1) close_listener();
}

// ---- changing

static void call_enable(const long* at) {
  open_listener(at[0]);
  for (int i = 0; i < 2; i++) {
    show("result", at[1] ? evconnlistener_enable(listener) : evconnlistener_disable(listener));
  }
  visit("changed");
  show("result", at[1] ? evconnlistener_disable(listener) : evconnlistener_enable(listener));
  close_listener();
}

static void call_set_cb(const long* at) {
  open_listener(at[0]);
  evconnlistener_set_cb(listener, at[1] ? on_other_connection : NULL, at[2] ? &address : NULL);
  close_listener();
}

static void call_set_error_cb(const long* at) {
  open_listener(at[0]);
  evconnlistener_set_error_cb(listener, at[1] ? on_listener_error : NULL);
  visit("set");
  // A socket that does not listen: accept() fails.
  if (at[2] && listener != NULL && evconnlistener_get_fd(listener) >= 0) {
    const int other = open_socket(kUdp);
    dup2(other, evconnlistener_get_fd(listener));
    evconnlistener_disable(listener);
    evconnlistener_enable(listener);
    note_address(other);
    sendto(other, "x", 1, 0, (const struct sockaddr*)&address, sizeof address);
    address.sin_family = 0;
  }
  close_listener();
}

static void call_get(const long* at) {
  open_listener(at[0]);
  show("base", evconnlistener_get_base(listener) == base);
  show("fd", evconnlistener_get_fd(listener) >= 0);
  close_listener();
}

static void call_free(const long* at) {
  open_listener(at[0]);
  evconnlistener_free(listener);
  listener = NULL;
  close_listener();
}

// ---- the table

// A base, a callback, or both.
static const Value kGivenValues[] = {{"nothing", 0}, {"a base", 1}, {"a callback", 2}, {"both", 3}};
static const Domain kGiven = DOMAIN_OF(kGivenValues);

// Both, its own length, the default, no flags.
static const Domain kBoth = {kGivenValues + 3, 1};
static const Domain kItsLength = {kLengthValues, 1};
static const Domain kDefault = {kBacklogValues, 1};
static const Domain kNoFlags = {kFlagValues, 1};

static const Value kFewBacklogValues[] = {{"-1", -1}, {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kFewBacklogs = DOMAIN_OF(kFewBacklogValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"evconnlistener_new", call_new, {&kGiven, &kFlags, &kDefault, &kSockets}},
      {"evconnlistener_new, backlog", call_new, {&kBoth, &kNoFlags, &kBacklogs, &kSockets}},
      {"evconnlistener_new_bind",
       call_new_bind,
       {&kGiven, &kFlags, &kAddresses, &kItsLength, &kFewBacklogs}},
      {"evconnlistener_new_bind, length",
       call_new_bind,
       {&kBoth, &kNoFlags, &kAddresses, &kLengths, &kDefault}},
      {"evconnlistener_enable", call_enable, {&kListeners, &kBooleans}},
      {"evconnlistener_set_cb", call_set_cb, {&kListeners, &kBooleans, &kBooleans}},
      {"evconnlistener_set_error_cb", call_set_error_cb, {&kListeners, &kBooleans, &kBooleans}},
      {"evconnlistener_get", call_get, {&kListeners}},
      {"evconnlistener_free", call_free, {&kListeners}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
