// LoopCore: dispatch of due events: to the queue, to the layer, or, if internal, to their handler.
#include "core/loop_core.h"

#include <algorithm>

namespace spate {

void LoopCore::prefetch_slots() {
  for (const Ready& ready : ready_) fds_.prefetch_slot(ready.fd);
}

void LoopCore::queue_always_ready() { fds_.deliver_always_ready(delivery_); }

// Fast path: passes an event of a single unchanged watcher directly to the layer.
inline bool LoopCore::tell(Dispatcher& layer, const Ready& ready) {
  FdNode* const node = fds_.plain_watcher(ready);
  const Events events = node == nullptr ? Events::none : FdTable::plain_events(*node, ready);
  if (!any(events) || node->head.callback == &internal) return false;
  layer.ready(*this, *node, events);
  return true;
}

void LoopCore::queue_ready() {
  if (dispatcher_ != nullptr) return call_layer(*dispatcher_);
  const bool is_out_of_cache = fds_.is_large();
  for (const Ready *ready = ready_.begin(), *end = ready_.end(); ready != end; ++ready) {
    if (is_out_of_cache && end - ready > kAhead) fds_.prefetch_watcher(ready[kAhead].fd);
    queue_for_all(*ready);
  }
}

void LoopCore::call_layer(Dispatcher& layer) {
  const bool is_out_of_cache = fds_.is_large();
  for (const Ready *ready = ready_.begin(), *end = ready_.end(); ready != end; ++ready) {
    if (is_out_of_cache && end - ready > kAhead) fds_.prefetch_watcher(ready[kAhead].fd);
    if (!tell(layer, *ready)) tell_all(layer, *ready);
  }
}

void LoopCore::tell_all(Dispatcher& layer, const Ready& ready) {
  LayerDelivery all(*this, layer);
  if (!fds_.deliver(ready, all)) note_stale();
}

void LoopCore::queue_for_all(const Ready& ready) {
  if (!fds_.deliver(ready, delivery_)) note_stale();
}

// A file whose descriptor was closed, but which has a duplicate, cannot be removed from the
// kernel's set. One stale event may be a coincidence within a batch; stale events in two
// consecutive turns indicate such a file, which would keep the loop from ever sleeping.
void LoopCore::note_stale() {
  ++metrics_.stale_events;
  if (last_stale_turn_ + 1 == metrics_.turns) {
    rebuild_ = true;
    request_slow_turn();
  }
  last_stale_turn_ = metrics_.turns;
}

// Moves the rest of the ready list to the front of the queue, preserving call order. When memory
// runs out it is dropped: level-triggered events are reported again in the next turn.
void LoopCore::queue_rest() {
  const auto count = static_cast<std::size_t>(ready_end_ - next_ready_);
  if (!pending_.begin_front(count)) {
    next_ready_ = ready_end_;
    return;
  }
  FrontDelivery front{*this};
  while (next_ready_ != ready_end_) {
    const Ready& ready = *next_ready_++;
    const FdTable::Found found = fds_.look(ready);
    switch (found.what) {
      case FdTable::Found::nobody:
        break;
      case FdTable::Found::one:
        front.on_ready(*found.node, found.events);
        break;
      case FdTable::Found::several:
        fds_.deliver(ready, front);
        break;
      case FdTable::Found::stale:
        note_stale();
    }
  }
  pending_.end_front();
}

void LoopCore::queue_timers() {
  if (!periodics_.empty()) periodics_.check_clock();
  timers_.advance(now_.count());
  if (timers_.next_deadline() > now_.count()) return;
  while (TimerNode* node = timers_.pop_due(now_.count())) on_expired(*node);
}

void LoopCore::queue_messages() {
  if (signals_.has_raised()) signals_.collect();
  queue_asyncs();
  if (posts_.has_posts()) feed(post_node_, Events::custom);
}

void LoopCore::queue_asyncs() {
  if (sent_.load(std::memory_order_relaxed) == nullptr) return;
  for (AsyncNode* node = sent_.exchange(nullptr, std::memory_order_acquire); node != nullptr;) {
    AsyncNode* next = node->next;
    // From here on it can be sent again, and its `next` belongs to the sender.
    const bool is_owed = node->sent.exchange(AsyncNode::kUnsent) == AsyncNode::kSent;
    if (is_owed && node->head.active != 0 && !deliver(node->head, Events::async)) send(*node);
    node = next;
  }
}

void LoopCore::read_wakeup() {
  ++metrics_.wakeups;
  if (!backend_->knows_edges()) wakeup_.drain();
}

bool LoopCore::deliver(Node& node, Events events) {
  if (node.priority != kDirect) return pending_.feed(node, events);
  node.callback(node.context, node, events);
  return true;
}

bool LoopCore::on_ready(FdNode& node, Events events) {
  return dispatcher_ == nullptr ? deliver(node.head, events) : dispatch_ready(node, events);
}

bool LoopCore::dispatch_ready(FdNode& node, Events events) {
  if (is_internal(node.head)) {
    return deliver(node.head, events);
  }
  dispatcher_->ready(*this, node, events);
  return true;
}

// If a refusal cannot be reported because memory ran out, the node stays, to be refused again in
// the next turn.
void LoopCore::on_refused(FdNode& node, int error) {
  node.head.extra = static_cast<std::uint32_t>(error);
  count_out(node);
  if (on_ready(node, refusal_of(node))) return;
  node.events |= kFdIsNew;
  start_fd(node);
}

void LoopCore::on_expired(TimerNode& node) {
  const bool direct = node.head.priority == kDirect;
  if (direct) ref();
  if (dispatcher_ != nullptr && !direct && node.head.callback != &internal) {
    dispatcher_->expired(*this, node);
  } else {
    default_expiry(node);
  }
}

// A timer that cannot be queued because memory ran out is due again in the next turn.
void LoopCore::default_expiry(TimerNode& node) {
  if (node.repeat > 0) {
    const std::int64_t repeat = std::min<std::int64_t>(node.repeat, kForever.count());
    const std::int64_t missed = (now_.count() - node.deadline) / repeat;
    node.deadline += (missed + 1) * repeat;
    start_timer(node);  // Cannot fail: it was linked a moment ago.
  } else {
    node.deadline = kParked;
  }
  if (node.head.priority == kDirect)
    return node.head.callback(node.head.context, node.head, Events::timer);
  if (!pending_.feed(node.head, Events::timer) && node.head.active == 0) {
    node.deadline = now_.count() + 1;  // Not in this turn again, which would never end.
    start_timer(node);
  }
}

}  // namespace spate
