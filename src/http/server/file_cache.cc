#include "http/server/file_cache.h"

#include <iterator>
#include <utility>

namespace spate::http {

FileCache::Entry* FileCache::find(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &entries_.front();
}

void FileCache::put(Entry entry) {
  drop(entry.key);
  const std::uint64_t size = size_of(entry);
  if (size > max_size_) return;
  while (size > max_size_ - size_) drop(std::prev(entries_.end()));
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
  size_ += size;
}

void FileCache::drop(std::string_view key) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) drop(found->second);
}

void FileCache::drop(std::list<Entry>::iterator entry) {
  size_ -= size_of(*entry);
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace spate::http
