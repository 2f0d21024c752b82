// WatchTree: the watched directories, and the translation of records and listings to events.
//
// Only directories are stored. The tree follows the records of the kernel, which are older than the
// disk, and the listings, which may be newer than the records. It becomes right because each change
// of a directory is followed by a scan of it: the last scan of a path happens after the last change
// of it. Duplicate reports are the price.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "file/watch_batch.h"
#include "file/watch_scan.h"
#include "spate/watch.h"
#include "sys/inotify.h"

namespace spate {

class WatchTree {
 public:
  // `root` is the absolute path of a directory. `file` is the name of the only file that is
  // reported, in WatchScope::file.
  WatchTree(std::string root, std::string file, const WatchOptions& options);
  ~WatchTree();
  WatchTree(const WatchTree&) = delete;
  WatchTree& operator=(const WatchTree&) = delete;

  const std::string& root() const { return root_path_; }
  // Returns the events to watch for.
  std::uint32_t mask() const;

  // Begins with the watch of the root.
  void start(int watch);
  // Begins again with a new inotify instance, in which only the root is watched.
  void restart(int watch, WatchBatch& batch);

  // Returns whether read_records() found that the kernel's queue has overflowed: the bytes behind
  // the record were dropped, and begin_again() must follow.
  bool has_overflowed() const { return has_overflowed_; }
  void begin_again(WatchBatch& batch);
  // Returns whether everything is watched, and was reported as such.
  bool is_complete() const { return is_complete_; }
  void complete(WatchBatch& batch);

  // Translates records to events. Returns how many of the bytes were used. If the first half of a
  // move is left at the end, the second may follow: it stays, unless `is_complete`.
  std::size_t read_records(std::span<const char> bytes, bool is_complete, WatchBatch& batch);

  // Returns whether directories wait to be scanned.
  bool has_scan() const { return !queue_.empty() || !unwanted_.empty(); }
  // Fills in the watches to remove and the targets.
  void fill(Scan& scan);
  // Takes the results of a scan. Targets without a result are scanned again.
  void take(std::vector<ScannedDirectory> results);
  bool has_results() const { return !results_.empty(); }
  // Translates a part of the results to events.
  void read_results(WatchBatch& batch);

  // Returns why the watch has ended, if it has.
  std::error_code end() const { return end_; }

 private:
  struct Directory;
  struct Record;

  // ---- the directories
  Directory* find(int watch) const;
  Directory& ensure(Directory& parent, std::string_view name);
  void drop(Directory& directory);
  void forget(Directory& directory);
  void set_watch(Directory& directory, int watch);
  void queue(Directory& directory);
  void append_path(const Directory& directory, std::string& text) const;

  // ---- records
  void pair_moves();
  std::size_t count_readable() const;
  bool lacks_second_half(const Record& record) const;
  void read_one(const Record& record, WatchBatch& batch);
  void doubt_unlisted();
  void on_directory_record(Directory& directory, std::uint32_t mask, WatchBatch& batch);
  void on_name_record(Directory& directory, const Record& record, WatchBatch& batch);
  void on_arrival(Directory& directory, std::string_view name, bool is_directory);
  void on_departure(Directory& directory, std::string_view name);
  void on_move(Directory& from, const Record& old, Directory& to, const Record& record,
               WatchBatch& batch);
  static bool is_below(const Directory& directory, const Directory& above, std::string_view name);
  void move_directory(Directory& from, std::string_view old_name, Directory& to,
                      std::string_view name);

  // ---- listings
  bool begin_result(Directory& directory, const ScannedDirectory& result, WatchBatch& batch);
  void replace(Directory& directory, WatchBatch& batch);
  void on_scan_error(Directory& directory, const ScannedDirectory& result, WatchBatch& batch);
  void drop_children(Directory& directory);
  void remove_found(Directory& child, WatchBatch& batch);
  void read_entry(Directory& directory, const Listing::Entry& entry, WatchBatch& batch);
  void remove_unseen(Directory& directory, WatchBatch& batch);
  void end_result();

  // ---- events
  void append_name(const Directory& directory, std::string_view name, std::string& text) const;
  void report(WatchEvent event, const Directory& directory, std::string_view name,
              WatchBatch& batch) const;
  void report_overflow(const Directory& directory, WatchBatch& batch);
  void report_directory(WatchEvent event, const Directory& directory, WatchBatch& batch) const;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const std::string root_path_;
  const std::string file_;
  const WatchOptions options_;
  std::unique_ptr<Directory> root_;
  std::unordered_map<int, Directory*> by_watch_;
  std::unordered_map<std::uint64_t, Directory*> by_id_;
  std::deque<std::uint64_t> queue_;  // Directories to scan; some were dropped meanwhile.
  std::vector<int> unwanted_;        // Watches to remove.
  std::vector<std::uint64_t> scanning_;
  std::deque<ScannedDirectory> results_;
  std::size_t next_entry_ = 0;  // In the first result.
  bool has_begun_ = false;      // The first result.
  bool is_news_ = false;        // The entries of the first result are reported.
  bool has_overflowed_ = false;
  bool is_complete_ = false;
  std::uint64_t next_id_ = 1;
  std::vector<Record> records_;  // Used during one call.
  std::error_code end_;
};

}  // namespace spate
