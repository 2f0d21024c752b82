// Bufferevents that transform the data to and from another one.
//
// Semantics: event2/bufferevent.h (bufferevent_filter_new); probed: when the filters are called
// with which limit, and which callbacks follow.
//
// A filter has the lock of the bufferevent below it, and a reference to that until it is freed
// itself.
#include <utility>

#include "compat/libevent/bufferevent/connection.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

struct Filter : Connection {
  Connection* below;
  bufferevent_filter_cb filter_input;
  bufferevent_filter_cb filter_output;
  void (*free_context)(void* context);
  void* context;
  bool is_filtering_output;
};

bool is_full(const evbuffer* buffer, std::size_t high) {
  return high != 0 && buffer->size() >= high;
}

ev_ssize_t room_in(const evbuffer* buffer, std::size_t high, bufferevent_flush_mode mode) {
  if (mode != BEV_NORMAL || high == 0) return -1;
  return static_cast<ev_ssize_t>(high - buffer->size());
}

// ---- towards the program

bool may_filter_input(const Filter& filter, bufferevent_flush_mode mode) {
  return mode != BEV_NORMAL ||
         ((filter.enabled & EV_READ) != 0 && !is_full(filter.input, filter.wm_read.high));
}

// Returns whether any data was filtered.
bool filter_input(Filter& filter, bufferevent_flush_mode mode) {
  evbuffer* source = filter.below->input;
  bool has_filtered = false;
  bool goes_on = may_filter_input(filter, mode);
  while (goes_on) {
    const ev_ssize_t limit = room_in(filter.input, filter.wm_read.high, mode);
    goes_on = filter.filter_input(source, filter.input, limit, mode, filter.context) == BEV_OK;
    has_filtered = has_filtered || goes_on;
    goes_on = goes_on && (filter.enabled & EV_READ) != 0 && source->size() != 0 &&
              may_filter_input(filter, mode);
  }
  if (has_filtered) restart_timeouts(filter, EV_READ);
  return has_filtered;
}

void filter_and_tell(Filter& filter) {
  if (filter_input(filter, BEV_NORMAL)) filter.trigger(EV_READ, 0);
}

// ---- away from the program

bool may_filter_output(const Filter& filter, bufferevent_flush_mode mode) {
  return mode != BEV_NORMAL || ((filter.enabled & EV_WRITE) != 0 && filter.output_size() != 0 &&
                                !is_full(filter.below->output, filter.below->wm_write.high));
}

struct Round {
  bool has_filtered;
  bool is_refused;  // Set by the last call of the filter.
};

Round filter_some_output(Filter& filter, bufferevent_flush_mode mode) {
  evbuffer* target = filter.below->output;
  Round round{false, false};
  bool goes_on = true;
  while (goes_on) {
    const ev_ssize_t limit = room_in(target, filter.below->wm_write.high, mode);
    goes_on = filter.filter_output(filter.output, target, limit, mode, filter.context) == BEV_OK;
    round.has_filtered = round.has_filtered || goes_on;
    round.is_refused = !goes_on;
    goes_on = goes_on && (filter.enabled & EV_WRITE) != 0 && filter.output_size() != 0 &&
              may_filter_output(filter, mode);
  }
  return round;
}

// The write callback may write more. That is filtered after the callback has returned, unless the
// last call of the filter failed.
bool filter_output(Filter& filter, bufferevent_flush_mode mode) {
  if (!may_filter_output(filter, mode)) return false;
  const bool was_filtering = std::exchange(filter.is_filtering_output, true);
  bool has_filtered = false;
  bool goes_on = true;
  while (goes_on) {
    const Round round = filter_some_output(filter, mode);
    if (!round.has_filtered) break;
    has_filtered = true;
    filter.trigger(EV_WRITE, 0);
    const bool has_more = (filter.enabled & EV_WRITE) != 0 && filter.output_size() != 0;
    goes_on = has_more && !round.is_refused && may_filter_output(filter, mode);
  }
  filter.is_filtering_output = was_filtering;
  if (has_filtered) restart_timeouts(filter, EV_WRITE);
  return has_filtered;
}

// ---- the callbacks of the lower bufferevent

void on_read(bufferevent*, void* argument) {
  auto* filter = static_cast<Filter*>(argument);
  const Keep keep(filter);
  filter_and_tell(*filter);
}

void on_write(bufferevent*, void* argument) {
  auto* filter = static_cast<Filter*>(argument);
  const Keep keep(filter);
  filter_output(*filter, BEV_NORMAL);
}

void on_event(bufferevent*, short what, void* argument) {
  auto* filter = static_cast<Filter*>(argument);
  const Keep keep(filter);
  filter->call_event(what, 0);
}

// ---- functions of all bufferevents

Filter& as_filter(Connection& connection) { return static_cast<Filter&>(connection); }

int start(Connection& connection, short what) {
  restart_timeouts(connection, what);
  if ((what & EV_READ) != 0) as_filter(connection).below->resume_reading(kRestFilter);
  return 0;
}

int stop(Connection& connection, short what) {
  stop_timeouts(connection, what);
  if ((what & EV_READ) != 0) as_filter(connection).below->rest_reading(kRestFilter);
  return 0;
}

void output_added(Connection& connection, const evbuffer_cb_info&) {
  const Keep keep(&connection);
  Filter& filter = as_filter(connection);
  if (!filter.is_filtering_output) filter_output(filter, BEV_NORMAL);
}

void input_has_room(Connection& connection) {
  Filter& filter = as_filter(connection);
  const Keep keep(&connection);
  if (filter.below->input_size() != 0) filter_and_tell(filter);
}

int flush(Connection& connection, short what, bufferevent_flush_mode mode) {
  Filter& filter = as_filter(connection);
  const bool has_read = (what & EV_READ) != 0 && filter_input(filter, mode);
  const bool may_write = (what & EV_WRITE) != 0 && may_filter_output(filter, mode);
  const bool has_written = may_write && filter_output(filter, mode);
  if (may_write && has_read) restart_timeouts(filter, EV_WRITE);  // As libevent.
  bufferevent_flush(filter.below, what, mode);
  return has_read || has_written ? 1 : 0;
}

int set_fd(Connection& connection, evutil_socket_t fd) {
  return bufferevent_setfd(as_filter(connection).below, fd);
}

evutil_socket_t fd_of(const Connection& connection) {
  return bufferevent_getfd(static_cast<const Filter&>(connection).below);
}

bufferevent* underlying(const Connection& connection) {
  return static_cast<const Filter&>(connection).below;
}

void unlink(Connection& connection) {
  Connection& below = *as_filter(connection).below;
  stop_timeouts(connection, EV_READ | EV_WRITE);
  if (below.errorcb == on_event) bufferevent_setcb(&below, nullptr, nullptr, nullptr, nullptr);
  if ((connection.options & BEV_OPT_CLOSE_ON_FREE) != 0) return bufferevent_free(&below);
  below.resume_reading(kRestFilter);
}

void destroy(Connection& connection) {
  Filter& filter = as_filter(connection);
  if (filter.free_context != nullptr) filter.free_context(filter.context);
  const Holding holding(filter.lock());
  filter.below->give_up();
}

constexpr bufferevent_ops kFilterOps = {
    .start = start,
    .stop = stop,
    .timeouts_changed = adjust_timeouts,
    .output_added = output_added,
    .input_has_room = input_has_room,
    .flush = flush,
    .set_fd = set_fd,
    .fd = fd_of,
    .underlying = underlying,
    .socket = nullptr,
    .unlink = unlink,
    .destroy = destroy,
};

// Moves as much as the limit allows.
bufferevent_filter_result pass_on(evbuffer* source, evbuffer* target, ev_ssize_t limit,
                                  bufferevent_flush_mode, void*) {
  const bool is_limited = limit >= 0;
  const int moved = is_limited
                        ? evbuffer_remove_buffer(source, target, static_cast<std::size_t>(limit))
                        : evbuffer_add_buffer(target, source);
  return moved < 0 || (is_limited && moved == 0) ? BEV_ERROR : BEV_OK;
}

}  // namespace

bufferevent* bufferevent_filter_new(bufferevent* below, bufferevent_filter_cb input_filter,
                                    bufferevent_filter_cb output_filter, int options,
                                    void (*free_context)(void*), void* context) {
  if (below == nullptr) return nullptr;
  const Keep keep(below);
  auto* filter = static_cast<Filter*>(allocate_zeroed(sizeof(Filter)));
  if (filter == nullptr) return nullptr;
  if (!filter->open(below->ev_base, kFilterOps, options & ~BEV_OPT_THREADSAFE) ||
      !filter->share_lock(connection_of(below).lock())) {
    filter->destroy();
    return nullptr;
  }
  filter->below = &connection_of(below);
  filter->below->take();
  filter->filter_input = input_filter != nullptr ? input_filter : pass_on;
  filter->filter_output = output_filter != nullptr ? output_filter : pass_on;
  filter->free_context = free_context;
  filter->context = context;
  assign_timeouts(*filter);
  bufferevent_setcb(below, on_read, on_write, on_event, filter);
  bufferevent_enable(below, EV_READ | EV_WRITE);
  filter->below->rest_reading(kRestFilter);
  return filter;
}
