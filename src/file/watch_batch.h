// WatchBatch: the events of one call, and their paths. Its memory is used again by the next one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spate/watch.h"

namespace spate {

class WatchBatch {
 public:
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }

  // The paths, one after the other. A path is appended before its event is added.
  std::string& text() { return text_; }

  // Adds an event whose path is the text from `path` on. `old_path` up to there is the old one.
  void add(WatchEvent event, std::size_t old_path, std::size_t path) {
    entries_.push_back({event, old_path, path, text_.size()});
  }

  // Adds an event of the root.
  void add_root(Change change) {
    add({.change = change, .is_directory = true}, text_.size(), text_.size());
  }

  // Returns the events, which are valid until clear().
  std::span<const WatchEvent> events() {
    events_.clear();
    const std::string_view text = text_;
    for (const Entry& entry : entries_) {
      WatchEvent& event = events_.emplace_back(entry.event);
      event.old_path = text.substr(entry.old_path, entry.path - entry.old_path);
      event.path = text.substr(entry.path, entry.end - entry.path);
    }
    return events_;
  }

  void clear() {
    constexpr std::size_t kKept = std::size_t{64} << 10;
    if (text_.capacity() > kKept || entries_.capacity() * sizeof(Entry) > kKept) {
      *this = WatchBatch();
    } else {
      text_.clear();
      entries_.clear();
    }
  }

 private:
  struct Entry {
    WatchEvent event;
    std::size_t old_path;
    std::size_t path;
    std::size_t end;
  };

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<WatchEvent> events_;
};

}  // namespace spate
