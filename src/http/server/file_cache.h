// FileCache: the contents of files that were requested lately, within a budget of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "spate/net/buffer.h"
#include "spate/time.h"
#include "sys/directory.h"

namespace spate::http {

class FileCache {
 public:
  struct File {
    std::string_view type;    // Never destroyed.
    std::string_view coding;  // Empty: none.
    sys::FileStatus status;
    Buffer content;  // In one piece.
  };
  struct Entry {
    std::string key;
    std::shared_ptr<const File> file;  // nullptr: the file was requested once.
    Nanos checked{0};                  // When the file was last found to have this status.
  };

  // `max_size` limits the bytes of contents and keys. Zero keeps nothing.
  explicit FileCache(std::uint64_t max_size) : max_size_(max_size) {}

  // Returns nullptr if there is no such entry. The entry becomes the last to be dropped. Valid
  // until the next call.
  Entry* find(std::string_view key);
  // Replaces the entry with this key, and drops others until the budget suffices.
  void put(Entry entry);
  void drop(std::string_view key);

 private:
  // Memory of an entry besides its key and content, roughly.
  static constexpr std::uint64_t kOverhead = 1024;

  static std::uint64_t size_of(const Entry& entry) {
    const std::uint64_t content = entry.file == nullptr ? 0 : entry.file->content.size();
    return content + entry.key.size() + kOverhead;
  }
  void drop(std::list<Entry>::iterator entry);

  const std::uint64_t max_size_;
  std::uint64_t size_ = 0;
  std::list<Entry> entries_;  // The latest first.
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
};

}  // namespace spate::http
