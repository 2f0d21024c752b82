#include "core/fd_table.h"

#include <cerrno>

#include "sys/descriptor.h"

namespace spate {

namespace {

Events events_of(std::uint8_t mask) { return static_cast<Events>(mask); }

}  // namespace

// A number beyond the table is checked before memory is allocated for it: it may be garbage.
std::error_code FdTable::grow(int fd) {
  if (fd < 0 || !sys::is_open(fd)) return {EBADF, std::system_category()};
  if (!resize(static_cast<std::size_t>(fd) + 1)) return {ENOMEM, std::system_category()};
  return {};
}

bool FdTable::resize(std::size_t size) {
  const std::size_t room = Array<Slot>::with_reserve(size);
  return slots_.reserve_exactly(room) && dirty_.reserve_exactly(slots_.capacity()) &&
         reconciling_.reserve_exactly(slots_.capacity()) &&
         slots_.grow_with_zeros(slots_.capacity());
}

void FdTable::unlink(Slot& slot, FdNode& node) {
  FdNode* newest = slot.newest();
  if (newest == &node) {
    slot.set_newest(node.next);
  } else {
    while (newest->next != &node) newest = newest->next;
    newest->next = node.next;
  }
  slot.flags |= kShared;
}

// If a descriptor was changed since the wait, its generation may differ, although the event was
// expected when it arrived. The kernel's mask is that of the watchers at the wait.
FdTable::Found FdTable::look(const Ready& ready) const {
  if (!holds(ready.fd)) return {Found::stale};
  const Slot& slot = slots_[static_cast<std::size_t>(ready.fd)];
  if (slot.has == 0 || slot.generation != ready.generation)
    return {(slot.flags & kDirty) != 0 ? Found::nobody : Found::stale};
  FdNode* node = slot.newest();
  if (node == nullptr || (slot.flags & kFresh) != 0) return {Found::nobody};
  if (node->next != nullptr || ready.error != 0) return {Found::several};
  const Events share = share_of(events_of(slot.has), ready.events) & wanted_by(*node);
  return {any(share) ? Found::one : Found::nobody, node, share};
}

// Computes the union of the watchers' masks; when it is needed, not at each stop.
void FdTable::work_out_wanted(Slot& slot) {
  slot.flags &= static_cast<std::uint8_t>(~kShared);
  Events wanted = Events::none;
  for (const FdNode* node = slot.newest(); node != nullptr; node = node->next)
    wanted |= wanted_by(*node);
  slot.wanted = static_cast<std::uint8_t>(wanted);
}

// Two passes, because a refusal may make a layer start another descriptor. No more, because that
// one may be refused too.
void FdTable::reconcile(Backend& backend, Sink& sink) {
  for (int pass = 0; pass < 2 && has_changes(); ++pass) {
    reconciling_.swap(dirty_);
    // By index: a refusal may make the tables grow.
    for (std::size_t i = 0; i < reconciling_.size(); ++i) {
      const int fd = reconciling_[i];
      Slot& slot = slots_[static_cast<std::size_t>(fd)];
      slot.flags &= static_cast<std::uint8_t>(~(kDirty | kFresh));
      if (slot.flags == 0 && slot.wanted == slot.has) continue;
      update_wanted(slot);
      if (slot.flags == 0 && slot.wanted == slot.has) continue;
      if (const long result = apply(backend, fd, slot)) on_failure(result, fd, slot, sink);
    }
    reconciling_.clear();
  }
}

void FdTable::on_failure(long result, int fd, Slot& slot, Sink& sink) {
  if (result != -EPERM) return refuse(slot, static_cast<int>(-result), sink);
  const bool is_ready = any(events_of(slot.wanted) & (Events::read | Events::write));
  if (is_ready && !always_ready_.reserve(always_ready_.size() + 1))
    return refuse(slot, ENOMEM, sink);
  set_always_ready(fd, slot, is_ready);
}

// For a descriptor that was refused with EPERM: it may be another file by now.
long FdTable::apply_without_readiness(Backend& backend, int fd, Slot& slot) {
  if (slot.wanted != 0 && (slot.flags & kRenewed) == 0) return -EPERM;
  set_always_ready(fd, slot, false);
  return apply(backend, fd, slot);
}

void FdTable::set_always_ready(int fd, Slot& slot, bool on) {
  if (((slot.flags & kAlwaysReady) != 0) == on) return;
  slot.flags = static_cast<std::uint8_t>(slot.flags ^ kAlwaysReady);
  if (on) {
    always_ready_.push_reserved(fd);
    return;
  }
  for (int& entry : always_ready_) {
    if (entry == fd) entry = always_ready_.back();
  }
  always_ready_.pop();
}

// The kernel refuses the descriptor: stops its watchers, and forgets their interest.
void FdTable::refuse(Slot& slot, int error, Sink& sink) {
  FdNode* node = slot.newest();
  slot.set_newest(nullptr);
  slot.wanted = 0;
  while (node != nullptr) {
    FdNode* next = node->next;
    node->head.active = 0;
    sink.on_refused(*node, error);
    node = next;
  }
}

void FdTable::register_all_again() {
  for (std::size_t fd = 0; fd < slots_.size(); ++fd) {
    Slot& slot = slots_[fd];
    slot.has = 0;
    ++slot.generation;
    if (slot.newest() != nullptr) mark_dirty(static_cast<int>(fd), slot);
  }
}

void FdTable::stop_all() {
  for (Slot& slot : slots_) {
    for (FdNode* node = slot.newest(); node != nullptr; node = node->next) node->head.active = 0;
    slot.set_newest(nullptr);
  }
}

std::size_t FdTable::active_fds() const {
  std::size_t count = 0;
  for (const Slot& slot : slots_) count += slot.newest() != nullptr;
  return count;
}

}  // namespace spate
