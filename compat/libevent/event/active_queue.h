// ActiveQueue: the events that are due, in one list for each priority, first come first served.
//
// Semantics: event2/event.h (event_base_priority_init); the order within a priority: probes.
//
// The lists run through the events' own first two words. There may be 255 of them; the loop starts
// its search at the most urgent one. One more list has the events that are put off until the next
// turn, which have EVLIST_ACTIVE_LATER.
#pragma once

#include "compat/libevent/event/event_layout.h"
#include "compat/libevent/memory.h"

namespace spate::libevent {

class ActiveQueue {
 public:
  ActiveQueue() = default;
  ActiveQueue(const ActiveQueue&) = delete;
  ActiveQueue& operator=(const ActiveQueue&) = delete;
  ~ActiveQueue() { release(lines_); }

  // Must be called only while nothing is queued. Returns false when memory runs out, without any
  // change.
  [[nodiscard]] bool set_priorities(int count) {
    const int all = count + 1;
    auto* lines = static_cast<Line*>(allocate(sizeof(Line) * static_cast<std::size_t>(all)));
    if (lines == nullptr) return false;
    for (int i = 0; i < all; ++i) lines[i] = {nullptr, &lines[i].first};
    release(lines_);
    lines_ = lines;
    priorities_ = count;
    return true;
  }
  int priorities() const { return priorities_; }

  // The priority may have been set when the base had more of them.
  void push(event_callback& callback) {
    if (callback.evcb_pri >= priorities_) {
      callback.evcb_pri = static_cast<ev_uint8_t>(priorities_ - 1);
    }
    append(lines_[callback.evcb_pri], callback);
  }
  // Puts the event off until admit_later().
  void push_later(event_callback& callback) {
    callback.evcb_flags = static_cast<short>(callback.evcb_flags | EVLIST_ACTIVE_LATER);
    append(lines_[priorities_], callback);
  }
  // Queues an event that was put off.
  void admit(event_callback& callback) {
    remove(callback);
    push(callback);
  }
  // Returns the first event that was put off, or null.
  event_callback* first_later() const { return lines_[priorities_].first; }
  void remove(event_callback& callback) {
    const auto place = callback.evcb_active_next;
    if (place.tqe_next != nullptr) {
      place.tqe_next->evcb_active_next.tqe_prev = place.tqe_prev;
    } else {
      line_of(callback).end = place.tqe_prev;
    }
    *place.tqe_prev = place.tqe_next;
    callback.evcb_flags = static_cast<short>(callback.evcb_flags & ~EVLIST_ACTIVE_LATER);
  }

  event_callback* first(int priority) const { return lines_[priority].first; }
  static event_callback* after(const event_callback& callback) {
    return callback.evcb_active_next.tqe_next;
  }

 private:
  struct Line {
    event_callback* first;
    event_callback** end;  // The pointer that the next one is stored in.
  };

  static void append(Line& line, event_callback& callback) {
    callback.evcb_active_next.tqe_next = nullptr;
    callback.evcb_active_next.tqe_prev = line.end;
    *line.end = &callback;
    line.end = &callback.evcb_active_next.tqe_next;
  }
  Line& line_of(const event_callback& callback) {
    const bool is_later = (callback.evcb_flags & EVLIST_ACTIVE_LATER) != 0;
    return lines_[is_later ? priorities_ : callback.evcb_pri];
  }

  Line* lines_ = nullptr;
  int priorities_ = 0;
};

}  // namespace spate::libevent
