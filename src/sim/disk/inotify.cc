#include "sim/disk/inotify.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spate::sim {

Inotify::Inotify(std::shared_ptr<InotifyLimits> limits) : limits_(std::move(limits)) {
  ++limits_->instances;
}

Inotify::~Inotify() {
  --limits_->instances;
  limits_->watches -= watched_.size();
  for (const auto& [watch, node] : watched_) {
    if (const std::shared_ptr<DiskNode> kept = node.lock())
      std::erase_if(kept->marks, [this](const InotifyMark& mark) { return mark.owner == this; });
  }
}

// The name is padded with zero bytes to a multiple of the record's head.
std::size_t Inotify::Record::size() const {
  constexpr std::size_t kHead = sizeof(inotify_event);
  return name.empty() ? kHead : kHead + (name.size() / kHead + 1) * kHead;
}

long Inotify::read(std::span<std::byte> room) {
  if (records_.empty()) return -EAGAIN;
  std::size_t done = 0;
  while (!records_.empty()) {
    const Record& record = records_.front();
    const std::size_t size = record.size();
    if (size > room.size() - done) break;
    const inotify_event head{.wd = record.watch,
                             .mask = record.mask,
                             .cookie = record.cookie,
                             .len = static_cast<std::uint32_t>(size - sizeof(inotify_event))};
    std::memset(room.data() + done, 0, size);
    std::memcpy(room.data() + done, &head, sizeof(head));
    std::memcpy(room.data() + done + sizeof(head), record.name.data(), record.name.size());
    done += size;
    records_.pop_front();
  }
  return done == 0 ? -EINVAL : static_cast<long>(done);
}

long Inotify::add(const std::shared_ptr<DiskNode>& node, std::uint32_t mask) {
  const std::uint32_t events = mask & IN_ALL_EVENTS;
  const std::uint32_t kept = mask & (IN_ALL_EVENTS | IN_ONESHOT | IN_EXCL_UNLINK);
  if (events == 0) return -EINVAL;
  const auto own = std::ranges::find(node->marks, this, &InotifyMark::owner);
  if (own != node->marks.end()) {
    own->mask = (mask & IN_MASK_ADD) != 0 ? own->mask | kept : kept;
    return own->watch;
  }
  if (limits_->watches >= limits_->max_watches) return -ENOSPC;
  ++limits_->watches;
  node->marks.push_back({.owner = this, .watch = ++last_watch_, .mask = kept});
  watched_[last_watch_] = node;
  return last_watch_;
}

long Inotify::remove(int watch) {
  const auto place = watched_.find(watch);
  if (place == watched_.end()) return -EINVAL;
  if (const std::shared_ptr<DiskNode> node = place->second.lock())
    std::erase_if(node->marks, [this](const InotifyMark& mark) { return mark.owner == this; });
  end(watch);
  return 0;
}

void Inotify::end(int watch) {
  if (watched_.erase(watch) == 0) return;
  --limits_->watches;
  report(watch, IN_IGNORED, 0, {});
}

// Linux merges a record with an equal one before it.
void Inotify::report(int watch, std::uint32_t mask, std::uint32_t cookie, std::string_view name) {
  Record record{.watch = watch, .mask = mask, .cookie = cookie, .name = std::string(name)};
  if (records_.size() >= limits_->max_queued)
    record = {.watch = -1, .mask = IN_Q_OVERFLOW, .cookie = 0, .name = {}};
  if (!records_.empty() && records_.back() == record) return;
  records_.push_back(std::move(record));
  changed();
}

}  // namespace spate::sim
