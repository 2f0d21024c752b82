// ActiveQueue: the events that are to be called, a list for each priority, first come first served.
//
// Semantics: event2/event.h (event_base_priority_init); the order within a priority: probes.
//
// The lists run through the events' own first two words. There may be 255 of them; the loop starts
// its search at the most urgent one.
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

  // Only while nothing is queued. False when memory runs out; all is then as before.
  bool set_priorities(int count) {
    auto* lines = static_cast<Line*>(allocate(sizeof(Line) * static_cast<std::size_t>(count)));
    if (lines == nullptr) return false;
    for (int i = 0; i < count; ++i) lines[i] = {nullptr, &lines[i].first};
    release(lines_);
    lines_ = lines;
    priorities_ = count;
    return true;
  }
  int priorities() const { return priorities_; }

  // An event may have been given its priority when the base had more of them.
  void push(event_callback& callback) {
    if (callback.evcb_pri >= priorities_) {
      callback.evcb_pri = static_cast<ev_uint8_t>(priorities_ - 1);
    }
    Line& line = lines_[callback.evcb_pri];
    callback.evcb_active_next.tqe_next = nullptr;
    callback.evcb_active_next.tqe_prev = line.end;
    *line.end = &callback;
    line.end = &callback.evcb_active_next.tqe_next;
  }
  void remove(event_callback& callback) {
    const auto place = callback.evcb_active_next;
    if (place.tqe_next != nullptr) {
      place.tqe_next->evcb_active_next.tqe_prev = place.tqe_prev;
    } else {
      lines_[callback.evcb_pri].end = place.tqe_prev;
    }
    *place.tqe_prev = place.tqe_next;
  }

  event_callback* first(int priority) const { return lines_[priority].first; }
  static event_callback* after(const event_callback& callback) {
    return callback.evcb_active_next.tqe_next;
  }

 private:
  struct Line {
    event_callback* first;
    event_callback** end;  // Where the next one is to be noted.
  };

  Line* lines_ = nullptr;
  int priorities_ = 0;
};

}  // namespace spate::libevent
