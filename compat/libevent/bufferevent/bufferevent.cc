// The functions of event2/bufferevent.h that are the same for all kinds.
//
// Semantics: event2/bufferevent.h, event2/bufferevent_compat.h; probed: the results for kinds that
// do not support a function.
#include "compat/libevent/bufferevent/connection.h"
#include "compat/libevent/bufferevent/rate_limit.h"

using namespace spate::libevent;

// ---- lifetime and locks

void bufferevent_free(bufferevent* bev) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  bufferevent_setcb(bev, nullptr, nullptr, nullptr, nullptr);
  connection.give_up();
}

void bufferevent_incref(bufferevent* bev) {
  const Holding holding(connection_of(bev).lock());
  connection_of(bev).take();
}

int bufferevent_decref(bufferevent* bev) {
  const Holding holding(connection_of(bev).lock());
  return connection_of(bev).give_up() ? 1 : 0;
}

void bufferevent_lock(bufferevent* bev) {
  bufferevent_incref(bev);
  acquire(connection_of(bev).lock());
}

void bufferevent_unlock(bufferevent* bev) {
  void* lock = connection_of(bev).lock();
  connection_of(bev).give_up();
  give_back(lock);
}

// ---- callbacks

void bufferevent_setcb(bufferevent* bev, bufferevent_data_cb on_read, bufferevent_data_cb on_write,
                       bufferevent_event_cb on_event, void* argument) {
  const Holding holding(connection_of(bev).lock());
  bev->readcb = on_read;
  bev->writecb = on_write;
  bev->errorcb = on_event;
  bev->cbarg = argument;
}

void bufferevent_getcb(bufferevent* bev, bufferevent_data_cb* on_read,
                       bufferevent_data_cb* on_write, bufferevent_event_cb* on_event,
                       void** argument) {
  const Holding holding(connection_of(bev).lock());
  if (on_read != nullptr) *on_read = bev->readcb;
  if (on_write != nullptr) *on_write = bev->writecb;
  if (on_event != nullptr) *on_event = bev->errorcb;
  if (argument != nullptr) *argument = bev->cbarg;
}

void bufferevent_trigger(bufferevent* bev, short what, int options) {
  const Keep keep(bev);
  connection_of(bev).trigger(what, options);
}

void bufferevent_trigger_event(bufferevent* bev, short what, int options) {
  const Keep keep(bev);
  connection_of(bev).call_event(what, options);
}

// ---- data

evbuffer* bufferevent_get_input(bufferevent* bev) { return bev->input; }
evbuffer* bufferevent_get_output(bufferevent* bev) { return bev->output; }

int bufferevent_write(bufferevent* bev, const void* bytes, size_t count) {
  return evbuffer_add(bev->output, bytes, count) == -1 ? -1 : 0;
}

int bufferevent_write_buffer(bufferevent* bev, evbuffer* buffer) {
  return evbuffer_add_buffer(bev->output, buffer) == -1 ? -1 : 0;
}

size_t bufferevent_read(bufferevent* bev, void* target, size_t count) {
  const int taken = evbuffer_remove(bev->input, target, count);
  return static_cast<size_t>(taken);
}

int bufferevent_read_buffer(bufferevent* bev, evbuffer* buffer) {
  return evbuffer_add_buffer(buffer, bev->input);
}

// ---- its events

int bufferevent_enable(bufferevent* bev, short what) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  short started = what;
  if (connection.reading_rests != 0) started &= ~EV_READ;
  if (connection.writing_rests != 0) started &= ~EV_WRITE;
  bev->enabled = static_cast<short>(bev->enabled | what);
  return started != 0 && bev->be_ops->start(connection, started) < 0 ? -1 : 0;
}

int bufferevent_disable(bufferevent* bev, short what) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  bev->enabled = static_cast<short>(bev->enabled & ~what);
  return bev->be_ops->stop(connection, what) < 0 ? -1 : 0;
}

short bufferevent_get_enabled(bufferevent* bev) {
  const Holding holding(connection_of(bev).lock());
  return bev->enabled;
}

int bufferevent_set_timeouts(bufferevent* bev, const timeval* read, const timeval* write) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  bev->timeout_read = read != nullptr ? *read : timeval{};
  bev->timeout_write = write != nullptr ? *write : timeval{};
  return bev->be_ops->timeouts_changed(connection);
}

void bufferevent_settimeout(bufferevent* bev, int read, int write) {
  const timeval read_time{read, 0};
  const timeval write_time{write, 0};
  bufferevent_set_timeouts(bev, read != 0 ? &read_time : nullptr,
                           write != 0 ? &write_time : nullptr);
}

void bufferevent_setwatermark(bufferevent* bev, short what, size_t low, size_t high) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  if ((what & EV_WRITE) != 0) bev->wm_write = {low, high};
  if ((what & EV_READ) == 0) return;
  bev->wm_read = {low, high};
  connection.check_input();
}

int bufferevent_getwatermark(bufferevent* bev, short what, size_t* low, size_t* high) {
  if (what != EV_READ && what != EV_WRITE) return -1;
  const Holding holding(connection_of(bev).lock());
  const event_watermark& mark = what == EV_READ ? bev->wm_read : bev->wm_write;
  if (low != nullptr) *low = mark.low;
  if (high != nullptr) *high = mark.high;
  return 0;
}

int bufferevent_flush(bufferevent* bev, short what, bufferevent_flush_mode mode) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  return bev->be_ops->flush != nullptr ? bev->be_ops->flush(connection, what, mode) : 0;
}

// ---- its base and descriptor

event_base* bufferevent_get_base(bufferevent* bev) { return bev->ev_base; }

int bufferevent_setfd(bufferevent* bev, evutil_socket_t fd) {
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  return bev->be_ops->set_fd != nullptr ? bev->be_ops->set_fd(connection, fd) : -1;
}

evutil_socket_t bufferevent_getfd(bufferevent* bev) {
  const Holding holding(connection_of(bev).lock());
  return bev->be_ops->fd != nullptr ? bev->be_ops->fd(connection_of(bev)) : -1;
}

bufferevent* bufferevent_get_underlying(bufferevent* bev) {
  const Holding holding(connection_of(bev).lock());
  return bev->be_ops->underlying != nullptr ? bev->be_ops->underlying(connection_of(bev)) : nullptr;
}

int bufferevent_get_priority(const bufferevent* bev) {
  const Holding holding(connection_of(bev).lock());
  return event_get_priority(&bev->ev_read);
}
