#include "net/dns/name_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spate {

namespace {

// Names differ in case only for a reader.
std::string key_of(const std::string& host, Families families) {
  std::string key = host;
  for (char& each : key) {
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  }
  return key += static_cast<char>('0' + families);
}

}  // namespace

const NameCache::Answer* NameCache::find(const std::string& host, Families families, Nanos now) {
  if (most_ == 0) return nullptr;
  const auto found = by_key_.find(key_of(host, families));
  if (found == by_key_.end()) return nullptr;
  const Entries::iterator entry = found->second;
  if (entry->expiry <= now) return remove(entry), nullptr;
  entries_.splice(entries_.begin(), entries_, entry);
  return &entry->answer;
}

void NameCache::store(const std::string& host, Families families, Answer answer, Nanos expiry) {
  if (most_ == 0) return;
  std::string key = key_of(host, families);
  if (const auto known = by_key_.find(key); known != by_key_.end()) remove(known->second);
  if (entries_.size() >= most_) remove(std::prev(entries_.end()));
  entries_.push_front({key, std::move(answer), expiry});
  by_key_[std::move(key)] = entries_.begin();
}

void NameCache::clear() {
  by_key_.clear();
  entries_.clear();
}

void NameCache::remove(Entries::iterator entry) {
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace spate
