#include "sim/kernel/file.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

namespace spate::sim {

File::~File() {
  while (!watches_.empty()) watches_.back()->set->forget(*watches_.back());
}

long File::write_all(std::span<const iovec> pieces) {
  long written = 0;
  for (const iovec& piece : pieces) {
    if (piece.iov_len == 0) continue;
    const long result = write({static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
    if (result < 0) return written > 0 ? written : result;
    written += result;
    if (static_cast<std::size_t>(result) < piece.iov_len) break;
  }
  return written;
}

int File::access() const { return O_RDWR; }

void File::changed() {
  for (Watch* watch : watches_) watch->set->queue(*watch);
}

std::uint32_t EventCounter::ready() const {
  return (count_ != 0 ? EPOLLIN : 0u) | (count_ < kMost ? EPOLLOUT : 0u);
}

long EventCounter::read(std::span<std::byte> room) {
  if (room.size() < sizeof(count_)) return -EINVAL;
  if (count_ == 0) return -EAGAIN;
  std::memcpy(room.data(), &count_, sizeof(count_));
  count_ = 0;
  changed();
  return sizeof(count_);
}

long EventCounter::write(std::span<const std::byte> bytes) {
  std::uint64_t more = 0;
  if (bytes.size() < sizeof(more)) return -EINVAL;
  std::memcpy(&more, bytes.data(), sizeof(more));
  if (more > kMost) return -EINVAL;
  if (more > kMost - count_) return -EAGAIN;
  count_ += more;
  changed();
  return sizeof(more);
}

long TextFile::read(std::span<std::byte> room) {
  const std::size_t size = std::min(room.size(), text_.size() - read_);
  std::memcpy(room.data(), text_.data() + read_, size);
  read_ += size;
  return static_cast<long>(size);
}

EpollSet::~EpollSet() {
  for (auto& [fd, watches] : watches_) {
    for (const std::unique_ptr<Watch>& watch : watches)
      std::erase(watch->file->watches_, watch.get());
  }
}

std::uint32_t EpollSet::ready(const Watch& watch) {
  return watch.file->ready() & watch.interest.events;
}

std::uint32_t EpollSet::ready() const {
  const bool any = std::ranges::any_of(queued_, [](Watch* watch) { return ready(*watch) != 0; });
  return any ? EPOLLIN : 0u;
}

void EpollSet::queue(Watch& watch) {
  if (!std::exchange(watch.is_queued, true)) watch.place = queued_.insert(queued_.end(), &watch);
  changed();
}

void EpollSet::drop(Watch& watch) {
  if (std::exchange(watch.is_queued, false)) queued_.erase(watch.place);
}

void EpollSet::forget(Watch& watch) {
  drop(watch);
  std::erase(watch.file->watches_, &watch);
  const auto found = watches_.find(watch.fd);
  std::erase_if(found->second, [&](const auto& own) { return own.get() == &watch; });
  if (found->second.empty()) watches_.erase(found);
}

long EpollSet::control(int operation, int fd, File& file, epoll_event interest) {
  if (&file == this) return -EINVAL;
  interest.events |= EPOLLERR | EPOLLHUP;
  std::vector<std::unique_ptr<Watch>>& those = watches_[fd];
  const auto found = std::ranges::find(those, &file, [](const auto& watch) { return watch->file; });
  if (operation == EPOLL_CTL_ADD && found != those.end()) return -EEXIST;
  if (operation == EPOLL_CTL_ADD) {
    Watch& made = *those.emplace_back(std::make_unique<Watch>(fd, &file, this, interest));
    file.watches_.push_back(&made);
    return queue(made), 0;
  }
  if (found == those.end()) {
    if (those.empty()) watches_.erase(fd);
    return -ENOENT;
  }
  if (operation == EPOLL_CTL_DEL) return forget(**found), 0;
  (*found)->interest = interest;
  return queue(**found), 0;
}

std::size_t EpollSet::take(std::span<epoll_event> room) {
  std::size_t count = 0;
  for (std::size_t left = queued_.size(); left > 0 && count < room.size(); --left) {
    Watch& watch = *queued_.front();
    drop(watch);
    const std::uint32_t events = ready(watch);
    if (events == 0) continue;
    room[count++] = {.events = events, .data = watch.interest.data};
    const bool is_last = (watch.interest.events & EPOLLONESHOT) != 0;
    if (is_last) watch.interest.events = EPOLLONESHOT;
    if (is_last || (watch.interest.events & EPOLLET) != 0) continue;
    watch.place = queued_.insert(queued_.end(), &watch);
    watch.is_queued = true;
  }
  return count;
}

}  // namespace spate::sim
