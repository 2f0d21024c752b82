// Bufferevents in pairs: data written to one is read from the other.
//
// Semantics: event2/bufferevent.h (bufferevent_pair_new); probed: callbacks are always deferred;
// the effect of a flush.
//
// Both ends share one lock, which belongs to the one that is freed last.
#include "compat/libevent/bufferevent/connection.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

struct PairEnd : Connection {
  PairEnd* other;  // Until it is destroyed.
};

enum class Marks { heed, ignore };

// Returns null once the other end is finalized.
PairEnd* partner_of(Connection& connection) {
  PairEnd* other = static_cast<PairEnd&>(connection).other;
  return other != nullptr && !other->is_finalized ? other : nullptr;
}

bool can_flow(const Connection& from, const Connection* to) {
  return to != nullptr && (from.enabled & EV_WRITE) != 0 && from.output_size() != 0 &&
         (to->enabled & EV_READ) != 0 && to->reading_rests == 0;
}

// Moves data up to the high watermark, or regardless of it if the input is full already. Returns
// whether this counts as a read.
bool move_bytes(Connection& from, Connection& to, Marks marks) {
  const std::size_t before = to.input_size();
  to.input->freeze(false, false);
  from.output->freeze(true, false);
  const bool has_room = before < to.wm_read.high;
  if (has_room) {
    evbuffer_remove_buffer(from.output, to.input, to.wm_read.high - before);
  } else if (to.wm_read.high == 0 || marks == Marks::ignore) {
    evbuffer_add_buffer(to.input, from.output);
  }
  from.output->freeze(true, true);
  to.input->freeze(false, true);
  return has_room || to.input_size() != before;
}

// As in libevent, restarts the timeouts of the end that reads, whatever is enabled there, and not
// those of the end that writes.
void restart_all_timeouts(Connection& to) {
  restart_timeouts(to, EV_READ);
  if (to.output_size() != 0) {
    restart_timeouts(to, EV_WRITE);
  } else {
    stop_timeouts(to, EV_WRITE);
  }
}

void flow(Connection& from, Connection& to, Marks marks) {
  const bool has_read = move_bytes(from, to, marks);
  if (has_read) restart_all_timeouts(to);
  to.trigger(EV_READ, 0);
  from.trigger(EV_WRITE, 0);
}

int start(Connection& connection, short what) {
  const bool has_output = connection.output_size() != 0;
  restart_timeouts(connection, static_cast<short>(has_output ? what : what & ~EV_WRITE));
  PairEnd* partner = partner_of(connection);
  if (partner == nullptr) return 0;
  if ((what & EV_READ) != 0 && can_flow(*partner, &connection)) {
    flow(*partner, connection, Marks::heed);
  }
  if ((what & EV_WRITE) != 0 && can_flow(connection, partner)) {
    flow(connection, *partner, Marks::heed);
  }
  return 0;
}

void output_added(Connection& connection, const evbuffer_cb_info&) {
  PairEnd* partner = partner_of(connection);
  if (can_flow(connection, partner)) flow(connection, *partner, Marks::heed);
}

int flush(Connection& connection, short what, bufferevent_flush_mode mode) {
  PairEnd* partner = partner_of(connection);
  if (partner == nullptr) return -1;
  if (mode == BEV_NORMAL) return 0;
  short event = BEV_EVENT_EOF;
  if ((what & EV_READ) != 0) {
    flow(*partner, connection, Marks::ignore);
    event |= BEV_EVENT_WRITING;
  }
  if ((what & EV_WRITE) != 0) {
    flow(connection, *partner, Marks::ignore);
    event |= BEV_EVENT_READING;
  }
  if (mode == BEV_FINISHED) partner->call_event(event, 0);
  return 0;
}

void destroy(Connection& connection) {
  auto& end = static_cast<PairEnd&>(connection);
  if (end.other == nullptr) return;
  const Holding holding(end.lock());
  end.other->other = nullptr;
  if (!end.extras().owns_lock) return;
  end.other->make_extras()->owns_lock = true;  // The extras were made for the lock.
  end.make_extras()->owns_lock = false;
}

constexpr bufferevent_ops kPairOps = {
    .start = start,
    .stop = stop_timeouts,
    .timeouts_changed = adjust_timeouts,
    .output_added = output_added,
    .input_has_room = nullptr,
    .flush = flush,
    .set_fd = nullptr,
    .fd = nullptr,
    .underlying = nullptr,
    .socket = nullptr,
    .unlink = nullptr,
    .destroy = destroy,
};

PairEnd* make_end(event_base* base, int options) {
  auto* end = static_cast<PairEnd*>(allocate_zeroed(sizeof(PairEnd)));
  if (end == nullptr) return nullptr;
  if (!end->open(base, kPairOps, options | BEV_OPT_DEFER_CALLBACKS)) {
    end->destroy();
    return nullptr;
  }
  end->freeze_buffers();
  assign_timeouts(*end);
  return end;
}

}  // namespace

int bufferevent_pair_new(event_base* base, int options, bufferevent* pair[2]) {
  PairEnd* first = make_end(base, options);
  if (first == nullptr) return -1;
  PairEnd* second = make_end(base, options & ~BEV_OPT_THREADSAFE);
  if (second == nullptr || !second->share_lock(first->lock())) {
    if (second != nullptr) second->destroy();
    first->destroy();
    return -1;
  }
  first->other = second;
  second->other = first;
  pair[0] = first;
  pair[1] = second;
  return 0;
}

bufferevent* bufferevent_pair_get_partner(bufferevent* bev) {
  if (bev->be_ops != &kPairOps) return nullptr;
  const Holding holding(connection_of(bev).lock());
  return partner_of(connection_of(bev));
}
