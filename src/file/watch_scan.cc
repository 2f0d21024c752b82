#include "file/watch_scan.h"

#include <string_view>
#include <utility>

#include "sys/directory.h"
#include "sys/inotify.h"

namespace spate {

namespace {

// A scan is ended after this many entries, so that the loop reads events in between.
constexpr std::size_t kEntriesInScan = 4096;

long list(const ScanTarget& target, Listing& listing, const Cancelled& is_cancelled) {
  sys::Descriptor opened(sys::open_to_list(target.path.c_str(), target.is_root));
  if (!opened.is_open()) return opened.get();
  sys::Directory directory(std::move(opened));
  if (!directory.is_open()) return -ENOMEM;
  while (const char* name = directory.next()) {
    if (is_cancelled) return 0;
    const std::string_view text = name;
    if (text != "." && text != "..") listing.add(text, directory.is_at_directory());
  }
  return 0;
}

}  // namespace

std::vector<ScannedDirectory> run_scan(const Scan& scan, const Cancelled& is_cancelled) {
  const int inotify = scan.inotify->get();
  for (const int watch : scan.unwanted) sys::inotify_remove(inotify, watch);
  std::vector<ScannedDirectory> results;
  std::size_t entries = 0;
  for (const ScanTarget& target : scan.targets) {
    if (is_cancelled || entries > kEntriesInScan) break;
    ScannedDirectory& result = results.emplace_back();
    result.id = target.id;
    result.watch = sys::inotify_watch(inotify, target.path.c_str(), scan.mask,
                                      target.is_root ? sys::Follow::yes : sys::Follow::no);
    if (result.watch >= 0) result.error = list(target, result.listing, is_cancelled);
    entries += result.listing.size();
  }
  return results;
}

}  // namespace spate
