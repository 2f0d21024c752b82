#include "file/watch_tree.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace spate {

namespace {

// How many entries of listings, and directories, are handled in one turn.
constexpr std::size_t kEntriesInTurn = 1024;
// How many directories one scan is asked for.
constexpr std::size_t kTargets = 512;

constexpr std::uint32_t kNameChanges = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr std::uint32_t kRootEnds = IN_DELETE_SELF | IN_MOVE_SELF;

bool is_set(std::uint32_t mask, std::uint32_t bits) { return (mask & bits) != 0; }

// A directory that is not there any more, or is no directory: a record says so, too.
bool is_missing(long error) { return error == -ENOENT || error == -ENOTDIR || error == -ELOOP; }

}  // namespace

struct WatchTree::Directory {
  std::uint64_t id = 0;
  int watch = -1;
  bool is_queued = false;
  bool is_listed = false;  // Its entries were reported.
  bool is_silent = false;  // They exist at the start, and are not reported.
  bool is_seen = false;    // In the listing of its parent that is being read.
  bool is_doubtful = false;  // The program may know entries of it that were removed unwatched.
  bool is_repeated = false;  // The next listing reports its entries again.
  Directory* parent = nullptr;
  std::string name;
  std::map<std::string, std::unique_ptr<Directory>, std::less<>> children;
};

struct WatchTree::Record : sys::InotifyRecord {
  std::size_t other = kNone;  // In the first half of a move: the index of the second.
  bool is_used = false;       // The second half was reported with the first.
};

WatchTree::WatchTree(std::string root, std::string file, const WatchOptions& options)
    : root_path_(std::move(root)),
      file_(std::move(file)),
      options_(options),
      root_(std::make_unique<Directory>()) {
  root_->id = next_id_++;
  root_->is_silent = !options_.existing;
  by_id_[root_->id] = root_.get();
}

WatchTree::~WatchTree() = default;

std::uint32_t WatchTree::mask() const {
  return kNameChanges | kRootEnds | IN_CLOSE_WRITE | IN_EXCL_UNLINK |
         (options_.changed ? IN_MODIFY : 0u) | (options_.attributes ? IN_ATTRIB : 0u);
}

void WatchTree::start(int watch) {
  set_watch(*root_, watch);
  if (options_.scope == WatchScope::tree || options_.existing) queue(*root_);
}

void WatchTree::restart(int watch, WatchBatch& batch) {
  by_watch_.clear();
  unwanted_.clear();
  results_.clear();
  scanning_.clear();
  has_begun_ = false;
  for (const auto& [id, directory] : by_id_) {
    directory->watch = -1;
    directory->is_listed = false;
  }
  doubt_unlisted();
  set_watch(*root_, watch);
  if (options_.scope == WatchScope::tree || options_.existing) queue(*root_);
  report_overflow(*root_, batch);
}

// The root's entries are listed in every scope, because the record of the root's end may be lost.
void WatchTree::begin_again(WatchBatch& batch) {
  has_overflowed_ = false;
  report_overflow(*root_, batch);
  doubt_unlisted();
  root_->is_repeated = options_.existing;
  queue(*root_);
}

void WatchTree::complete(WatchBatch& batch) {
  is_complete_ = true;
  batch.add_root(Change::ready);
}

// ---- the directories

WatchTree::Directory* WatchTree::find(int watch) const {
  const auto place = by_watch_.find(watch);
  return place == by_watch_.end() ? nullptr : place->second;
}

WatchTree::Directory& WatchTree::ensure(Directory& parent, std::string_view name) {
  if (const auto place = parent.children.find(name); place != parent.children.end())
    return *place->second;
  auto made = std::make_unique<Directory>();
  Directory& directory = *made;
  directory.id = next_id_++;
  directory.parent = &parent;
  directory.name = name;
  by_id_[directory.id] = &directory;
  parent.children.emplace(directory.name, std::move(made));
  return directory;
}

// Removes a directory with all below it.
void WatchTree::drop(Directory& directory) {
  forget(directory);
  directory.parent->children.erase(directory.parent->children.find(directory.name));
}

// Removes it from the tables.
void WatchTree::forget(Directory& directory) {
  if (directory.watch >= 0) {
    by_watch_.erase(directory.watch);
    unwanted_.push_back(directory.watch);
  }
  by_id_.erase(directory.id);
  for (const auto& [name, child] : directory.children) forget(*child);
}

// The kernel has one watch for a directory. If it is found at a second path, it was moved there.
void WatchTree::set_watch(Directory& directory, int watch) {
  if (directory.watch == watch) return;
  if (directory.watch >= 0) {
    by_watch_.erase(directory.watch);
    unwanted_.push_back(directory.watch);
  }
  directory.watch = watch;
  if (watch < 0) return;
  Directory*& place = by_watch_[watch];
  if (place != nullptr) place->watch = -1;
  place = &directory;
}

void WatchTree::queue(Directory& directory) {
  if (!std::exchange(directory.is_queued, true)) queue_.push_back(directory.id);
}

void WatchTree::append_path(const Directory& directory, std::string& text) const {
  if (directory.parent == nullptr) return;
  append_path(*directory.parent, text);
  if (directory.parent->parent != nullptr) text += '/';
  text += directory.name;
}

// ---- records

// Finds the second half of each move.
void WatchTree::pair_moves() {
  if (options_.scope == WatchScope::file) return;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (!is_set(records_[i].mask, IN_MOVED_FROM)) continue;
    for (std::size_t j = i + 1; j < records_.size(); ++j) {
      if (!is_set(records_[j].mask, IN_MOVED_TO) || records_[j].cookie != records_[i].cookie)
        continue;
      records_[i].other = j;
      break;
    }
  }
}

// Returns how many records can be read before the rest is there. A move must not be cut in two.
std::size_t WatchTree::count_readable() const {
  if (options_.scope == WatchScope::file) return records_.size();
  std::size_t count = 0;
  while (count < records_.size() && !lacks_second_half(records_[count])) ++count;
  for (std::size_t i = count; i-- > 0;) {
    if (records_[i].other != kNone && records_[i].other >= count) count = i;
  }
  return count;
}

bool WatchTree::lacks_second_half(const Record& record) const {
  return is_set(record.mask, IN_MOVED_FROM) && record.other == kNone &&
         find(record.watch) != nullptr;
}

std::size_t WatchTree::read_records(std::span<const char> bytes, bool is_complete,
                                    WatchBatch& batch) {
  records_.clear();
  std::size_t end = 0;
  for (Record record; !has_overflowed_ && sys::read_record(bytes, end, record); end = record.end) {
    has_overflowed_ = is_set(record.mask, IN_Q_OVERFLOW);
    if (!has_overflowed_) records_.push_back(record);
  }
  pair_moves();
  const bool is_last = is_complete || has_overflowed_;  // A half that is missing is lost.
  const std::size_t count = is_last ? records_.size() : count_readable();
  for (std::size_t i = 0; i < count && !end_; ++i) {
    if (!records_[i].is_used) read_one(records_[i], batch);
  }
  if (count == records_.size()) return bytes.size();
  return count == 0 ? 0 : records_[count - 1].end;
}

void WatchTree::read_one(const Record& record, WatchBatch& batch) {
  Directory* directory = find(record.watch);
  if (directory == nullptr) return;
  if (record.name.empty()) return on_directory_record(*directory, record.mask, batch);
  Record* other = record.other == kNone ? nullptr : &records_[record.other];
  Directory* to = other == nullptr ? nullptr : find(other->watch);
  if (to == nullptr) return on_name_record(*directory, record, batch);
  other->is_used = true;
  on_move(*directory, record, *to, *other, batch);
}

// After an overflow the program looks at directories that are not watched yet. The root always is.
void WatchTree::doubt_unlisted() {
  for (const auto& [id, directory] : by_id_)
    directory->is_doubtful = !directory->is_listed && directory != root_.get();
}

// A record of the watched directory itself. The parent's watch reports the removal and the
// attributes of those below the root.
void WatchTree::on_directory_record(Directory& directory, std::uint32_t mask, WatchBatch& batch) {
  if (is_set(mask, IN_IGNORED)) {
    by_watch_.erase(directory.watch);
    directory.watch = -1;
  }
  if (&directory == root_.get()) {
    if (is_set(mask, IN_UNMOUNT)) {
      end_ = sys::error_code(-ENODEV);
    } else if (is_set(mask, kRootEnds | IN_IGNORED)) {
      end_ = sys::error_code(-ENOENT);
    } else if (is_set(mask, IN_ATTRIB) && file_.empty()) {
      report_directory({.change = Change::attributes, .is_directory = true}, directory, batch);
    }
  } else if (is_set(mask, IN_UNMOUNT)) {
    report_overflow(directory, batch);
    queue(directory);
  }
}

// A created directory that is known was found by a listing after its creation: its removal in
// between would have been read first.
void WatchTree::on_name_record(Directory& directory, const Record& record, WatchBatch& batch) {
  const bool is_directory = is_set(record.mask, IN_ISDIR);
  const auto report_as = [&](Change change) {
    report({.change = change, .is_directory = is_directory}, directory, record.name, batch);
  };
  if (is_set(record.mask, IN_CREATE | IN_MOVED_TO)) {
    const bool was_moved = is_set(record.mask, IN_MOVED_TO);
    if (!was_moved && is_directory && directory.children.contains(record.name)) return;
    report_as(Change::created);
    if (was_moved && !is_directory) report_as(Change::written);
    on_arrival(directory, record.name, is_directory);
  } else if (is_set(record.mask, IN_DELETE | IN_MOVED_FROM)) {
    report_as(Change::removed);
    on_departure(directory, record.name);
  } else if (is_set(record.mask, IN_MODIFY)) {
    report_as(Change::changed);
  } else if (is_set(record.mask, IN_CLOSE_WRITE)) {
    report_as(Change::written);
  } else if (is_set(record.mask, IN_ATTRIB)) {
    report_as(Change::attributes);
  }
}

// All entries of a directory are reported after its arrival.
void WatchTree::on_arrival(Directory& directory, std::string_view name, bool is_directory) {
  if (options_.scope != WatchScope::tree) return;
  on_departure(directory, name);
  if (is_directory) queue(ensure(directory, name));
}

void WatchTree::on_departure(Directory& directory, std::string_view name) {
  const auto place = directory.children.find(name);
  if (place != directory.children.end()) drop(*place->second);
}

void WatchTree::on_move(Directory& from, const Record& old, Directory& to, const Record& record,
                        WatchBatch& batch) {
  if (is_below(to, from, old.name)) {
    // A listing was newer than the records. The next one finds the entries that are left.
    report({.change = Change::removed, .is_directory = true}, from, old.name, batch);
    on_departure(from, old.name);  // It destroys `to` as well.
    return queue(*root_);
  }
  std::string& text = batch.text();
  const std::size_t old_path = text.size();
  append_name(from, old.name, text);
  const std::size_t path = text.size();
  append_name(to, record.name, text);
  const bool is_directory = is_set(record.mask, IN_ISDIR);
  batch.add({.change = Change::moved, .is_directory = is_directory}, old_path, path);
  if (options_.scope != WatchScope::tree) return;
  if (is_directory) return move_directory(from, old.name, to, record.name);
  on_departure(from, old.name);
  on_departure(to, record.name);
}

// Returns whether a directory is `name` in `above`, or below it.
bool WatchTree::is_below(const Directory& directory, const Directory& above,
                         std::string_view name) {
  for (const Directory* each = &directory; each->parent != nullptr; each = each->parent) {
    if (each->parent == &above && each->name == name) return true;
  }
  return false;
}

// The moved directory is scanned with all below it: a scan of its old path may have found another
// one.
void WatchTree::move_directory(Directory& from, std::string_view old_name, Directory& to,
                               std::string_view name) {
  const auto place = from.children.find(old_name);
  if (place == from.children.end()) return on_arrival(to, name, true);
  auto node = from.children.extract(place);
  on_departure(to, name);
  Directory& directory = *node.mapped();
  directory.parent = &to;
  directory.name = name;
  node.key() = directory.name;
  to.children.insert(std::move(node));
  queue(directory);
}

// ---- scans

// A watch that a directory lost may be the one of another path by now.
void WatchTree::fill(Scan& scan) {
  scan.mask = mask();
  scan.unwanted = std::exchange(unwanted_, {});
  std::erase_if(scan.unwanted, [this](int watch) { return find(watch) != nullptr; });
  scanning_.clear();
  while (!queue_.empty() && scan.targets.size() < kTargets) {
    const std::uint64_t id = queue_.front();
    queue_.pop_front();
    const auto place = by_id_.find(id);
    if (place == by_id_.end()) continue;
    place->second->is_queued = false;
    ScanTarget& target = scan.targets.emplace_back();
    target.id = id;
    target.is_root = place->second == root_.get();
    target.path = root_path_ + '/';
    append_path(*place->second, target.path);
    scanning_.push_back(id);
  }
}

void WatchTree::take(std::vector<ScannedDirectory> results) {
  for (std::size_t i = scanning_.size(); i-- > results.size();) {
    const auto place = by_id_.find(scanning_[i]);
    if (place == by_id_.end() || std::exchange(place->second->is_queued, true)) continue;
    queue_.push_front(scanning_[i]);
  }
  scanning_.clear();
  for (ScannedDirectory& result : results) results_.push_back(std::move(result));
}

void WatchTree::read_results(WatchBatch& batch) {
  for (std::size_t left = kEntriesInTurn; left > 0 && !results_.empty() && !end_; --left) {
    const ScannedDirectory& result = results_.front();
    const auto place = by_id_.find(result.id);
    if (place == by_id_.end()) {
      if (result.watch >= 0 && find(static_cast<int>(result.watch)) == nullptr)
        unwanted_.push_back(static_cast<int>(result.watch));
      end_result();
      continue;
    }
    Directory& directory = *place->second;
    if (!std::exchange(has_begun_, true) && !begin_result(directory, result, batch)) {
      end_result();
    } else if (next_entry_ < result.listing.size()) {
      read_entry(directory, result.listing.at(next_entry_++), batch);
    } else {
      remove_unseen(directory, batch);
      end_result();
    }
  }
}

void WatchTree::end_result() {
  results_.pop_front();
  next_entry_ = 0;
  has_begun_ = false;
}

// Returns false if there is no listing.
bool WatchTree::begin_result(Directory& directory, const ScannedDirectory& result,
                             WatchBatch& batch) {
  if (result.watch < 0 || result.error < 0) {
    on_scan_error(directory, result, batch);
    return false;
  }
  const int watch = static_cast<int>(result.watch);
  const bool is_same = directory.watch == watch;
  set_watch(directory, watch);
  const bool is_doubtful = std::exchange(directory.is_doubtful, false);
  if (directory.is_listed && !is_same) {
    replace(directory, batch);
  } else if (is_doubtful) {
    report_directory({.change = Change::created, .is_directory = true, .is_found = true}, directory,
                     batch);
  }
  const bool is_repeated = std::exchange(directory.is_repeated, false);
  is_news_ = is_repeated || (!directory.is_silent && (!directory.is_listed || !is_same));
  directory.is_listed = true;
  for (const auto& [name, child] : directory.children) child->is_seen = false;
  return true;
}

// Another directory has the path: the entries that were reported may be those of the first one.
void WatchTree::replace(Directory& directory, WatchBatch& batch) {
  drop_children(directory);
  if (&directory == root_.get()) {
    report_overflow(directory, batch);
    return;
  }
  for (const Change change : {Change::removed, Change::created})
    report_directory({.change = change, .is_directory = true, .is_found = true}, directory, batch);
}

void WatchTree::on_scan_error(Directory& directory, const ScannedDirectory& result,
                              WatchBatch& batch) {
  const long error = result.watch < 0 ? result.watch : result.error;
  set_watch(directory, result.watch < 0 ? -1 : static_cast<int>(result.watch));
  set_watch(directory, -1);
  directory.is_silent = false;
  drop_children(directory);
  if (is_missing(error)) {
    if (&directory == root_.get()) end_ = sys::error_code(-ENOENT);
    return;
  }
  const WatchEvent event{
      .change = Change::unwatched, .is_directory = true, .error = sys::error_code(error)};
  report_directory(event, directory, batch);
}

void WatchTree::drop_children(Directory& directory) {
  while (!directory.children.empty()) drop(*directory.children.begin()->second);
}

// Removes a directory that a listing does not contain.
void WatchTree::remove_found(Directory& child, WatchBatch& batch) {
  report({.change = Change::removed, .is_directory = true, .is_found = true}, *child.parent,
         child.name, batch);
  drop(child);
}

void WatchTree::read_entry(Directory& directory, const Listing::Entry& entry, WatchBatch& batch) {
  const auto place = directory.children.find(entry.name);
  const bool is_known = place != directory.children.end();
  const bool is_child = entry.is_directory && options_.scope == WatchScope::tree;
  const bool was_replaced = is_known && !is_child;
  if (was_replaced) remove_found(*place->second, batch);
  if (is_news_ || was_replaced || (is_child && !is_known && !directory.is_silent)) {
    report({.change = Change::created, .is_directory = entry.is_directory, .is_found = true},
           directory, entry.name, batch);
  }
  if (!is_child) return;
  Directory& child = is_known ? *place->second : ensure(directory, entry.name);
  if (!is_known) child.is_silent = directory.is_silent;
  child.is_repeated |= is_news_;  // A directory that is reported counts as empty.
  child.is_seen = true;
  queue(child);
}

// Drops the directories that are not in the listing.
void WatchTree::remove_unseen(Directory& directory, WatchBatch& batch) {
  directory.is_silent = false;
  for (auto place = directory.children.begin(); place != directory.children.end();) {
    Directory& child = *place++->second;
    if (!child.is_seen) remove_found(child, batch);
  }
}

// ---- events

void WatchTree::append_name(const Directory& directory, std::string_view name,
                            std::string& text) const {
  append_path(directory, text);
  if (directory.parent != nullptr) text += '/';
  text += name;
}

void WatchTree::report(WatchEvent event, const Directory& directory, std::string_view name,
                       WatchBatch& batch) const {
  if (!file_.empty() && name != file_) return;
  const std::size_t path = batch.text().size();
  append_name(directory, name, batch.text());
  batch.add(event, path, path);
}

void WatchTree::report_overflow(const Directory& directory, WatchBatch& batch) {
  is_complete_ = false;
  report_directory({.change = Change::overflow, .is_directory = true}, directory, batch);
}

void WatchTree::report_directory(WatchEvent event, const Directory& directory,
                                 WatchBatch& batch) const {
  const std::size_t path = batch.text().size();
  append_path(directory, batch.text());
  batch.add(event, path, path);
}

}  // namespace spate
