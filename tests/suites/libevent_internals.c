// Functions of libevent that only its own tests call, for a `regress` that runs on any library.
//
// The tests are linked to the public functions of a library, and to these instead of its internal
// ones. They are hidden, so that no library calls them. Tests of an internal function end here by
// a signal on every library, and so are not compared (suites.py).
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/thread.h>
#include <event2/util.h>

// ---- memory: the tests do not replace the allocator where they use these

void* event_mm_malloc_(size_t size) { return malloc(size); }
void* event_mm_calloc_(size_t count, size_t size) { return calloc(count, size); }
void* event_mm_realloc_(void* memory, size_t size) { return realloc(memory, size); }
char* event_mm_strdup_(const char* text) { return strdup(text); }
void event_mm_free_(void* memory) { free(memory); }

size_t event_strlcpy_(char* to, const char* from, size_t size) {
  const size_t length = strlen(from);
  if (size != 0) {
    const size_t kept = length < size ? length : size - 1;
    memcpy(to, from, kept);
    to[kept] = 0;
  }
  return length;
}

// ---- locks of the tests' own

static void* make_lock(unsigned type) {
  pthread_mutex_t* lock = malloc(sizeof *lock);
  pthread_mutexattr_t attributes;
  (void)type;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(lock, &attributes);
  return lock;
}

static void free_lock(void* lock, unsigned type) {
  (void)type;
  pthread_mutex_destroy(lock);
  free(lock);
}

static int take_lock(unsigned mode, void* lock) {
  return mode & EVTHREAD_TRY ? pthread_mutex_trylock(lock) : pthread_mutex_lock(lock);
}

static int release_lock(unsigned mode, void* lock) {
  (void)mode;
  return pthread_mutex_unlock(lock);
}

struct evthread_lock_callbacks evthread_lock_fns_ = {
    EVTHREAD_LOCK_API_VERSION, EVTHREAD_LOCKTYPE_RECURSIVE, make_lock, free_lock, take_lock,
    release_lock};

struct evthread_lock_callbacks* evthread_get_lock_callbacks(void) { return &evthread_lock_fns_; }

static void* make_condition(unsigned type) {
  pthread_cond_t* condition = malloc(sizeof *condition);
  (void)type;
  pthread_cond_init(condition, NULL);
  return condition;
}

static void free_condition(void* condition) {
  pthread_cond_destroy(condition);
  free(condition);
}

static int signal_condition(void* condition, int all) {
  return all ? pthread_cond_broadcast(condition) : pthread_cond_signal(condition);
}

static int wait_condition(void* condition, void* lock, const struct timeval* most) {
  if (!most) return pthread_cond_wait(condition, lock);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  const int64_t nanos = until.tv_nsec + (int64_t)most->tv_usec * 1000;
  until.tv_sec += most->tv_sec + nanos / 1000000000;
  until.tv_nsec = nanos % 1000000000;
  return pthread_cond_timedwait(condition, lock, &until) == 0 ? 0 : 1;
}

struct evthread_condition_callbacks evthread_cond_fns_ = {
    EVTHREAD_CONDITION_API_VERSION, make_condition, free_condition, signal_condition,
    wait_condition};

// ---- time and numbers

void evutil_usleep_(const struct timeval* time) {
  const struct timespec length = {time->tv_sec, time->tv_usec * 1000};
  nanosleep(&length, NULL);
}

int evutil_configure_monotonic_time_(void* timer, int flags) {
  (void)timer;
  (void)flags;
  return 0;
}

int evutil_gettime_monotonic_(void* timer, struct timeval* now) {
  struct timespec time;
  (void)timer;
  clock_gettime(CLOCK_MONOTONIC, &time);
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return 0;
}

struct weakrand {
  uint32_t seed;
};

uint32_t evutil_weakrand_seed_(struct weakrand* state, uint32_t seed) {
  state->seed = seed ? seed : 1;
  return state->seed;
}

int32_t evutil_weakrand_(struct weakrand* state) {
  state->seed = state->seed * 22695477 + 1;
  return (int32_t)(state->seed >> 1);
}

int32_t evutil_weakrand_range_(struct weakrand* state, int32_t bound) {
  return evutil_weakrand_(state) % bound;
}

// ---- logs: those of the tests themselves

static void print_line(const char* format, va_list arguments) {
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
}

#define LOG(name)                    \
  void name(const char* format, ...) { \
    va_list arguments;               \
    va_start(arguments, format);     \
    print_line(format, arguments);   \
    va_end(arguments);               \
  }
LOG(event_warn)
LOG(event_warnx)
LOG(event_msgx)
LOG(event_debugx_)
uint32_t event_debug_logging_mask_ = 0;

// ---- text

int EVUTIL_ISDIGIT_(char c) { return c >= '0' && c <= '9'; }
char EVUTIL_TOLOWER_(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
char EVUTIL_TOUPPER_(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 32) : c; }

// ---- the header section of a response, as a client of the tests reads it: 1 if it is complete,
// otherwise 0

int evhttp_parse_firstline_(struct evhttp_request* request, struct evbuffer* input) {
  char* line = evbuffer_readln(input, NULL, EVBUFFER_EOL_CRLF);
  (void)request;
  free(line);
  return line != NULL;
}

int evhttp_parse_headers_(struct evhttp_request* request, struct evbuffer* input) {
  struct evkeyvalq* headers = evhttp_request_get_input_headers(request);
  char* line;
  while ((line = evbuffer_readln(input, NULL, EVBUFFER_EOL_CRLF)) != NULL && *line) {
    char* colon = strchr(line, ':');
    if (colon) {
      *colon = 0;
      evhttp_add_header(headers, line, colon + 1 + strspn(colon + 1, " "));
    }
    free(line);
  }
  const int is_whole = line != NULL;
  free(line);
  return is_whole;
}

// ---- sockets

int evutil_socket_connect_(evutil_socket_t* fd, const struct sockaddr* address, int size) {
  if (*fd < 0) *fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (*fd < 0) return -1;
  if (connect(*fd, address, (socklen_t)size) == 0) return 1;
  if (errno == EINPROGRESS || errno == EINTR) return 0;
  return errno == ECONNREFUSED ? 2 : -1;
}

const char* evutil_format_sockaddr_port_(const struct sockaddr* address, char* text, size_t size) {
  char host[64] = "?";
  if (address->sa_family == AF_INET) {
    const struct sockaddr_in* in = (const struct sockaddr_in*)(const void*)address;
    evutil_inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    evutil_snprintf(text, size, "%s:%d", host, ntohs(in->sin_port));
  } else if (address->sa_family == AF_INET6) {
    const struct sockaddr_in6* in = (const struct sockaddr_in6*)(const void*)address;
    evutil_inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
    evutil_snprintf(text, size, "[%s]:%d", host, ntohs(in->sin6_port));
  } else {
    evutil_snprintf(text, size, "<addr with socktype %d>", (int)address->sa_family);
  }
  return text;
}

// ---- state that no public function shows

void* event_global_current_base_ = NULL;
void event_base_assert_ok_(void* base) { (void)base; }

// ---- functions that are tested directly

static void untested(const char* name) {
  fprintf(stderr, "%s is internal\n", name);
  fflush(stderr);
  abort();
}

#define INTERNAL(name) \
  int name(void) {     \
    untested(#name);   \
    return 0;          \
  }
INTERNAL(event_active_later_)
INTERNAL(event_base_add_virtual_)
INTERNAL(event_base_start_iocp_)
INTERNAL(event_callback_activate_)
INTERNAL(event_callback_finalize_)
INTERNAL(event_deferred_cb_init_)
INTERNAL(event_deferred_cb_schedule_)
INTERNAL(event_err)
INTERNAL(event_errx)
INTERNAL(event_sock_err)
INTERNAL(event_sock_warn)
INTERNAL(evhttp_check_transfer_encoding_)
INTERNAL(evhttp_connection_fail_)
INTERNAL(evhttp_decode_uri_internal)
INTERNAL(evhttp_str_is_chunked_)
INTERNAL(evtag_decode_int)
INTERNAL(evtag_decode_int64)
INTERNAL(evtag_decode_tag)
INTERNAL(evtag_encode_tag)
INTERNAL(evutil_rtrim_lws_)
INTERNAL(evutil_sockaddr_is_loopback_)
INTERNAL(evutil_v4addr_is_local_)
INTERNAL(evutil_v6addr_is_local_)
