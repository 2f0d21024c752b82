// spate: watchers in one array, as members of an array of connections would be.
#include <spate/io.h>
#include <spate/timer.h>

#include "watchers.h"

static std::unique_ptr<spate::Loop> loop;
static spate::Io* ios;
static spate::Timer* timers;

static constexpr auto invoked = [] { watchers_invoked(); };

static void watchers_open(void) { loop = spate::Loop::create().value(); }

static size_t watchers_object_bytes(void) {
  return watchers_kind == WATCHERS_IO ? sizeof(spate::Io) : sizeof(spate::Timer);
}

static void watchers_create(void) {
  const int fd = watchers_sockets[0];
  if (watchers_kind == WATCHERS_IO) {
    ios = std::allocator<spate::Io>().allocate(watchers_count);
    for (long i = 0; i < watchers_count; i++)
      std::construct_at(ios + i, *loop, fd, spate::Events::read, invoked)->start();
  } else {
    timers = std::allocator<spate::Timer>().allocate(watchers_count);
    for (long i = 0; i < watchers_count; i++)
      std::construct_at(timers + i, *loop, invoked)->start(spate::Nanos(0));
  }
}

static void watchers_pass(void) { loop->run(spate::Run::no_wait); }

static void watchers_destroy(void) {
  for (long i = watchers_count; i-- > 0;) {
    if (watchers_kind == WATCHERS_IO)
      std::destroy_at(ios + i);
    else
      std::destroy_at(timers + i);
  }
  std::allocator<spate::Io>().deallocate(ios, watchers_count);
  std::allocator<spate::Timer>().deallocate(timers, watchers_count);
}

static void watchers_version(void) { bench_version("0.1.0", nullptr); }
