// evconnlistener: a listening socket, and a callback for each connection.
//
// Semantics: event2/listener.h; probed: the options of the socket, the errors of accept() that are
// ignored, and that connections without a callback are closed.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

#include "compat/libevent/bufferevent_api.h"
#include "compat/libevent/event/closing.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"
#include "compat/libevent/threads.h"

using namespace spate::libevent;

struct evconnlistener {
  event ev;
  void* lock;
  evconnlistener_cb callback;
  evconnlistener_errorcb error_callback;
  void* argument;
  unsigned flags;
  int references;  // The program's, and one while callbacks run.
  bool is_enabled;
  bool is_freed;
};

namespace {

constexpr int kDefaultBacklog = 128;

// The last reference frees the listener and its lock.
void give_up(evconnlistener& listener) {
  void* lock = listener.lock;
  const bool is_last = --listener.references == 0;
  if (is_last) {
    const bool closes = (listener.flags & LEV_OPT_CLOSE_ON_FREE) != 0;
    if (closes) evutil_closesocket(event_get_fd(&listener.ev));
    event_debug_unassign(&listener.ev);
    release(&listener);
  }
  give_back(lock);
  if (is_last) free_lock(lock);
}

bool is_passed_over(int error) {
  return error == EAGAIN || error == EINTR || error == ECONNABORTED;
}

// Needs the lock, and releases it while the program's callback runs.
void accepted(evconnlistener& listener, int fd, sockaddr* address, int size) {
  const evconnlistener_cb callback = listener.callback;
  void* argument = listener.argument;
  if (callback == nullptr) {
    evutil_closesocket(fd);
    return;
  }
  give_back(listener.lock);
  callback(&listener, fd, address, size, argument);
  acquire(listener.lock);
}

void failed(evconnlistener& listener) {
  const evconnlistener_errorcb callback = listener.error_callback;
  void* argument = listener.argument;
  if (callback == nullptr) {
    warn("evconnlistener: accept");
    return;
  }
  give_back(listener.lock);
  callback(&listener, argument);
  acquire(listener.lock);
}

void accept_all(evconnlistener& listener, int fd) {
  int flags = 0;
  if ((listener.flags & LEV_OPT_LEAVE_SOCKETS_BLOCKING) == 0) flags |= SOCK_NONBLOCK;
  if ((listener.flags & LEV_OPT_CLOSE_ON_EXEC) != 0) flags |= SOCK_CLOEXEC;
  while (listener.is_enabled && !listener.is_freed) {
    sockaddr_storage storage;
    socklen_t size = sizeof storage;
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    const int connection = accept4(fd, address, &size, flags);
    if (connection < 0) {
      if (!is_passed_over(errno)) failed(listener);
      return;
    }
    accepted(listener, connection, address, static_cast<int>(size));
  }
}

void on_connection(evutil_socket_t fd, short, void* argument) {
  auto& listener = *static_cast<evconnlistener*>(argument);
  acquire(listener.lock);
  ++listener.references;
  accept_all(listener, fd);
  give_up(listener);
}

// Sets the options before bind(); returns false if the kernel refuses.
bool prepare(int fd, unsigned flags) {
  const int on = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) != 0) return false;
  if ((flags & LEV_OPT_REUSEABLE) != 0 && evutil_make_listen_socket_reuseable(fd) != 0)
    return false;
  if ((flags & LEV_OPT_REUSEABLE_PORT) != 0 && evutil_make_listen_socket_reuseable_port(fd) != 0) {
    return false;
  }
  if ((flags & LEV_OPT_DEFERRED_ACCEPT) != 0 && evutil_make_tcp_listen_socket_deferred(fd) != 0) {
    return false;
  }
  return (flags & LEV_OPT_BIND_IPV6ONLY) == 0 || evutil_make_listen_socket_ipv6only(fd) == 0;
}

}  // namespace

// ---- the exported functions

evconnlistener* evconnlistener_new(event_base* base, evconnlistener_cb callback, void* argument,
                                   unsigned flags, int backlog, evutil_socket_t fd) {
  if (backlog != 0 && listen(fd, backlog > 0 ? backlog : kDefaultBacklog) != 0) return nullptr;
  auto* listener = static_cast<evconnlistener*>(allocate_zeroed(sizeof(evconnlistener)));
  if (listener == nullptr) return nullptr;
  listener->callback = callback;
  listener->argument = argument;
  listener->flags = flags;
  listener->references = 1;
  if ((flags & LEV_OPT_THREADSAFE) != 0) listener->lock = make_lock();
  event_assign(&listener->ev, base, fd, EV_READ | EV_PERSIST, on_connection, listener);
  if ((flags & LEV_OPT_DISABLED) == 0) evconnlistener_enable(listener);
  return listener;
}

evconnlistener* evconnlistener_new_bind(event_base* base, evconnlistener_cb callback,
                                        void* argument, unsigned flags, int backlog,
                                        const sockaddr* address, int size) {
  if (backlog == 0) return nullptr;
  int type = SOCK_STREAM | SOCK_NONBLOCK;
  if ((flags & LEV_OPT_CLOSE_ON_EXEC) != 0) type |= SOCK_CLOEXEC;
  const int fd = socket(address == nullptr ? AF_UNSPEC : address->sa_family, type, 0);
  if (fd < 0) return nullptr;
  evconnlistener* listener = nullptr;
  if (prepare(fd, flags) && bind(fd, address, static_cast<socklen_t>(size)) == 0) {
    listener = evconnlistener_new(base, callback, argument, flags, backlog, fd);
  }
  if (listener == nullptr) evutil_closesocket(fd);
  return listener;
}

// event_del() waits for a callback on another thread, which may wait for the lock, so it is called
// without.
void evconnlistener_free(evconnlistener* listener) {
  acquire(listener->lock);
  listener->is_freed = true;
  listener->callback = nullptr;
  listener->error_callback = nullptr;
  give_back(listener->lock);
  // Without a base, each call on the event logs a warning.
  const bool was_added = event_get_base(&listener->ev) != nullptr &&
                         event_pending(&listener->ev, EV_READ, nullptr) != 0;
  event_del(&listener->ev);
  acquire(listener->lock);
  if (was_added && (listener->flags & LEV_OPT_CLOSE_ON_FREE) != 0) {
    forget_descriptor(listener->ev);  // If it was not added, the base may have been freed before.
  }
  give_up(*listener);
}

int evconnlistener_enable(evconnlistener* listener) {
  const Holding holding(listener->lock);
  listener->is_enabled = true;
  return listener->callback != nullptr ? event_add(&listener->ev, nullptr) : 0;
}

int evconnlistener_disable(evconnlistener* listener) {
  {
    const Holding holding(listener->lock);
    listener->is_enabled = false;
  }
  return event_del(&listener->ev);
}

event_base* evconnlistener_get_base(evconnlistener* listener) {
  const Holding holding(listener->lock);
  return event_get_base(&listener->ev);
}

evutil_socket_t evconnlistener_get_fd(evconnlistener* listener) {
  const Holding holding(listener->lock);
  return event_get_fd(&listener->ev);
}

void evconnlistener_set_cb(evconnlistener* listener, evconnlistener_cb callback, void* argument) {
  const Holding holding(listener->lock);
  const bool begins = listener->callback == nullptr && callback != nullptr;
  listener->callback = callback;
  listener->argument = argument;
  if (listener->is_enabled && begins) evconnlistener_enable(listener);
}

void evconnlistener_set_error_cb(evconnlistener* listener, evconnlistener_errorcb callback) {
  const Holding holding(listener->lock);
  listener->error_callback = callback;
}
