// FdTable: the watchers of each descriptor, and its registration with the kernel.
//
// For each descriptor it holds the mask that the watchers want and the mask that the kernel has.
// Starting and stopping change the former and put the descriptor on a list. reconcile(), just
// before the loop waits, makes system calls for those whose two masks differ. The generation of a
// descriptor changes with each registration and is returned with each event, so that events for a
// file that previously had the number are recognized.
#pragma once

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <vector>

#include "backend/backend.h"
#include "base/array.h"
#include "spate/layer/node.h"

namespace spate {

class FdTable {
 public:
  // Receives the results of the table; calls no user code.
  class Sink {
   public:
    virtual void on_ready(FdNode& node, Events events) = 0;
    virtual void on_refused(FdNode& node, int error) = 0;  // The node was stopped.

   protected:
    ~Sink() = default;
  };

  // Makes room for a descriptor. Errors: ENOMEM, EBADF for a number that no open file has.
  bool holds(int fd) const { return static_cast<std::size_t>(fd) < slots_.size(); }
  std::error_code ensure(int fd) { return holds(fd) ? std::error_code() : grow(fd); }
  // Both need a slot: call ensure() first. The node must be inactive for start(), active for
  // stop().
  void start(FdNode& node) {
    if ((node.events & kFdIsNewUnlessWatched) != 0) settle_newness(node);
    enter(node);
  }
  // As start(), for a node without kFdIsNewUnlessWatched.
  void enter(FdNode& node) {
    Slot& slot = slots_[static_cast<std::size_t>(node.fd)];
    FdNode* newest = slot.newest();
    const bool is_same = newest != nullptr || slot.left_last() == &node;
    if ((node.events & kFdIsNew) != 0 || !is_same) slot.flags |= kRenewed;
    node.events &= ~kFdIsNew;
    node.next = newest;
    slot.set_newest(&node);
    slot.wanted |= static_cast<std::uint8_t>(wanted_by(node));
    node.head.active = 1;
    mark_dirty(node.fd, slot);
    slot.flags |= kFresh;
  }
  void stop(FdNode& node) {
    Slot& slot = slots_[static_cast<std::size_t>(node.fd)];
    node.head.active = 0;
    mark_dirty(node.fd, slot);
    if (slot.newest() != &node || node.next != nullptr) return unlink(slot, node);
    slot.set_left_last(&node);
    slot.wanted = 0;
  }
  // Changes the events of an active node, which keeps its position.
  void modify(FdNode& node, Events events) {
    Slot& slot = slots_[static_cast<std::size_t>(node.fd)];
    node.events = static_cast<std::uint32_t>(events);
    slot.flags |= kShared;
    mark_dirty(node.fd, slot);
  }
  // Returns whether an active node shares its descriptor with others.
  bool is_shared(const FdNode& node) const {
    return node.next != nullptr || slots_[static_cast<std::size_t>(node.fd)].newest() != &node;
  }
  bool is_watched(int fd) const {
    return holds(fd) && slots_[static_cast<std::size_t>(fd)].newest() != nullptr;
  }
  // Returns whether the descriptor has no watchers, and this node was the last one.
  bool was_last_watched_by(const FdNode& node) const {
    if (!holds(node.fd)) return false;
    const Slot& slot = slots_[static_cast<std::size_t>(node.fd)];
    return slot.newest() == nullptr && slot.left_last() == &node;
  }
  // Called before the descriptor is closed, which removes it from the kernel's set.
  void forget(Backend& backend, int fd) {
    Slot& slot = slots_[static_cast<std::size_t>(fd)];
    if (slot.has != 0) backend.closing(fd, static_cast<Events>(slot.has));
    slot.has = 0;
    ++slot.generation;
    if (slot.flags & kAlwaysReady) set_always_ready(fd, slot, false);
  }

  // Passes the changes since the last call to the backend. The watchers of a refused descriptor are
  // stopped.
  void reconcile(Backend& backend, Sink& sink);
  bool has_changes() const { return !dirty_.empty(); }
  // As reconcile() for one descriptor, now, without stopping watchers. Returns 0, or the backend's
  // error, -EPERM included.
  long reconcile_now(Backend& backend, int fd);

  // Prefetches a slot, and then its watchers, before deliver() needs them: with many descriptors,
  // cache misses are most of the cost of an event.
  // Returns whether slots and watchers are likely to be out of the cache.
  bool is_large() const { return slots_.size() > kLarge; }
  void prefetch_slot(int fd) const { __builtin_prefetch(slots_.begin() + fd); }
  void prefetch_watcher(int fd) const {
    if (!holds(fd)) return;
    const FdNode* node = slots_[static_cast<std::size_t>(fd)].left_last();
    __builtin_prefetch(node);
    __builtin_prefetch(&node->events);
  }

  // Passes an event to the watchers that want it. False if it is for a previous registration of the
  // descriptor. S is a Sink, passed by its own type so that the calls are direct.
  template <class S>
  bool deliver(const Ready& ready, S& sink);

  // For an event that has waited while callbacks changed watchers. Fast path: returns the watcher
  // if there is exactly one, and nothing has changed; otherwise nullptr, and look() decides.
  FdNode* plain_watcher(const Ready& ready) const {
    if (!holds(ready.fd)) return nullptr;
    const Slot& slot = slots_[static_cast<std::size_t>(ready.fd)];
    if (slot.generation != ready.generation || slot.flags != 0) return nullptr;
    FdNode* node = slot.newest();
    if (node == nullptr || node->next != nullptr) return nullptr;
    return (node->head.pending | static_cast<std::uint32_t>(node->head.priority)) == 0 ? node
                                                                                       : nullptr;
  }
  struct Found {
    enum What { nobody, one, several, stale } what;
    FdNode* node = nullptr;  // With `one`: the watcher,
    Events events{};         // and the events for it.
  };
  Found look(const Ready& ready) const;
  static Events plain_events(const FdNode& node, const Ready& ready) {
    return wanted_by(node) & ready.events;
  }

  // Descriptors without readiness, which are treated as always ready.
  bool has_always_ready() const { return !always_ready_.empty(); }
  template <class S>
  void deliver_always_ready(S& sink);

  // Visits every started node until `show` returns false; returns the last result.
  template <class F>
  bool for_each(const F& show) const;

  // Registers everything again, after the backend was reopened.
  void register_all_again();
  void stop_all();
  std::size_t active_fds() const;
  bool reserve(std::size_t fds) { return fds <= slots_.size() || resize(fds); }

 private:
  enum Flag : std::uint8_t {
    kDirty = 1,        // In the list for reconcile().
    kRenewed = 2,      // May be another file than the one registered with the kernel.
    kAlwaysReady = 4,  // The backend returned EPERM: a regular file.
    kShared = 8,       // One of several watchers has left: `wanted` must be recomputed.
    kFresh = 16,       // Started since the last wait: events of that wait are not for it.
  };
  static constexpr std::size_t kLarge = 2048;
  struct Slot {
    // The watchers, newest first. An empty list remembers the last one: if that one is started
    // again, the file is the same.
    std::uintptr_t link;
    std::uint32_t generation;
    std::uint8_t wanted;
    std::uint8_t has;
    std::uint8_t flags;

    FdNode* newest() const { return (link & 1) != 0 ? nullptr : reinterpret_cast<FdNode*>(link); }
    const FdNode* left_last() const { return reinterpret_cast<const FdNode*>(link & ~1ull); }
    void set_newest(FdNode* node) { link = reinterpret_cast<std::uintptr_t>(node); }
    void set_left_last(const FdNode* node) { link = reinterpret_cast<std::uintptr_t>(node) | 1; }
  };
  static_assert(sizeof(Slot) <= 16);

  static Events wanted_by(const FdNode& node) {
    return static_cast<Events>(node.events) & (kIoEvents | kEdge);
  }
  std::error_code grow(int fd);
  bool resize(std::size_t size);
  void mark_dirty(int fd, Slot& slot) {
    if (slot.flags & kDirty) return;
    slot.flags |= kDirty;
    dirty_.push_reserved(fd);  // The list grows with the slots, and contains each descriptor once.
  }
  void settle_newness(FdNode& node) {
    Slot& slot = slots_[static_cast<std::size_t>(node.fd)];
    update_wanted(slot);
    const bool is_new = (static_cast<std::uint32_t>(wanted_by(node)) & ~slot.wanted) != 0;
    node.events = (node.events & ~kFdIsNewUnlessWatched) | (is_new ? kFdIsNew : 0);
  }
  static void unlink(Slot& slot, FdNode& node);
  static void update_wanted(Slot& slot) {
    if ((slot.flags & kShared) != 0) work_out_wanted(slot);
  }
  [[gnu::noinline]] static void work_out_wanted(Slot& slot);
  [[gnu::always_inline]] long apply(Backend& backend, int fd, Slot& slot);
  [[gnu::noinline]] long apply_without_readiness(Backend& backend, int fd, Slot& slot);
  [[gnu::noinline]] void on_failure(long result, int fd, Slot& slot, Sink& sink);
  template <class S>
  static void deliver_to_all(const Slot& slot, Events events, S& sink);
  static Events share_of(Events wanted, Events events) {
    // An error without a matching interest would be reported for ever, so it is passed to all
    // watchers.
    const Events share = wanted & events;
    return !any(share) && any(events & Events::error) ? wanted : share;
  }
  void set_always_ready(int fd, Slot& slot, bool on);
  void refuse(Slot& slot, int error, Sink& sink);

  Array<Slot> slots_;
  Array<int> dirty_;
  Array<int> reconciling_;  // Swapped with dirty_.
  Array<int> always_ready_;
};

// ---- reconciliation

inline long FdTable::reconcile_now(Backend& backend, int fd) {
  Slot& slot = slots_[static_cast<std::size_t>(fd)];
  update_wanted(slot);
  if (slot.wanted == slot.has && (slot.flags & kRenewed) == 0) return 0;
  return apply(backend, fd, slot);
}

inline long FdTable::apply(Backend& backend, int fd, Slot& slot) {
  if (slot.flags & kAlwaysReady) [[unlikely]]
    return apply_without_readiness(backend, fd, slot);
  const bool renewed = (slot.flags & kRenewed) != 0;
  slot.flags &= static_cast<std::uint8_t>(~kRenewed);
  if (slot.wanted == 0 && slot.has == 0) return 0;
  const bool is_new = slot.has == 0 || slot.wanted == 0 || renewed;
  const std::uint32_t generation = slot.generation + (is_new ? 1 : 0);
  const long result = backend.modify(fd, static_cast<Events>(slot.has),
                                     static_cast<Events>(slot.wanted), generation);
  if (result == -EEXIST) return 0;  // Its events keep the old generation.
  slot.generation = generation;
  if (result < 0 && slot.has != 0) {
    backend.modify(fd, static_cast<Events>(slot.has), Events::none, slot.generation);
  }
  slot.has = result < 0 ? std::uint8_t{0} : slot.wanted;
  return result;
}

template <class S>
bool FdTable::deliver(const Ready& ready, S& sink) {
  const auto number = static_cast<std::size_t>(ready.fd);
  if (number >= slots_.size()) return false;
  Slot& slot = slots_[number];
  if (slot.has == 0 || slot.generation != ready.generation) return false;
  if (ready.error != 0) {
    mark_dirty(ready.fd, slot);  // The backend must remove it as well.
    refuse(slot, ready.error, sink);
    return true;
  }
  deliver_to_all(slot, ready.events, sink);
  return true;
}

template <class S>
void FdTable::deliver_to_all(const Slot& slot, Events events, S& sink) {
  FdNode* next;
  for (FdNode* node = slot.newest(); node != nullptr; node = next) {
    next = node->next;  // A direct node may stop itself.
    const Events share = share_of(wanted_by(*node), events);
    if (any(share)) sink.on_ready(*node, share);
  }
}

template <class S>
void FdTable::deliver_always_ready(S& sink) {
  for (const int fd : always_ready_) {
    deliver_to_all(slots_[static_cast<std::size_t>(fd)], Events::read | Events::write, sink);
  }
}

template <class F>
bool FdTable::for_each(const F& show) const {
  for (const Slot& slot : slots_) {
    for (FdNode* node = slot.newest(); node != nullptr; node = node->next) {
      if (!show(*node)) return false;
    }
  }
  return true;
}

}  // namespace spate
