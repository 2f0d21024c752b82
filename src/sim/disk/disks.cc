#include "sim/disk/disks.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/kernel/kernel.h"
#include "spate/assert.h"

namespace spate::sim {

namespace {

std::error_code error_from(long result) {
  return {static_cast<int>(std::max(-result, 0L)), std::system_category()};
}

void add_paths(const DiskNode& directory, const std::string& prefix,
               std::vector<std::string>& paths) {
  for (const auto& [name, node] : directory.entries) {
    const std::string path = prefix + name + (node->is_directory ? "/" : "");
    paths.push_back(path);
    if (node->is_directory) add_paths(*node, path, paths);
  }
}

}  // namespace

Disk& Disks::mount(int host, std::string_view path, const DiskOptions& options) {
  while (path.ends_with('/')) path.remove_suffix(1);
  SPATE_ASSERT(path.starts_with('/') && path.find("//") == path.npos,
               "a disk is mounted at an absolute path, which is not the root");
  OfHost& of_host = hosts_[host];
  SPATE_ASSERT(std::ranges::none_of(of_host.trees,
                                    [path](const auto& tree) { return tree->path() == path; }),
               "a path has one disk");
  auto tree = std::make_shared<DiskTree>(kernel_, host, std::string(path), of_host.limits);
  tree->set_options(options);
  of_host.trees.push_back(tree);
  return *of_host.disks.emplace_back(std::make_unique<Disk>(std::move(tree)));
}

DiskPath Disks::find(std::string_view path) const {
  const auto of_host = hosts_.find(kernel_.host);
  if (of_host == hosts_.end()) return {};
  for (const std::shared_ptr<DiskTree>& tree : of_host->second.trees) {
    if (!path.starts_with(tree->path())) continue;
    const std::string_view rest = path.substr(tree->path().size());
    if (rest.empty() || rest.starts_with('/')) return {tree, tree->root(), std::string(rest)};
  }
  return {};
}

DiskPath Disks::find(int directory, std::string_view path) const {
  const std::shared_ptr<File> file = path.starts_with('/') ? nullptr : kernel_.find(directory);
  const std::shared_ptr<DiskFile> disk_file = file_cast<DiskFile>(file);
  if (disk_file == nullptr) return find(path);
  return {disk_file->tree(), disk_file->node(), std::string(path)};
}

std::expected<std::shared_ptr<Inotify>, long> Disks::make_inotify() {
  const auto of_host = hosts_.find(kernel_.host);
  if (of_host == hosts_.end()) return std::unexpected(-ENOSYS);
  const std::shared_ptr<InotifyLimits>& limits = of_host->second.limits;
  if (limits->instances >= limits->max_instances) return std::unexpected(-EMFILE);
  return std::make_shared<Inotify>(limits);
}

// The program's instances of inotify are gone, although its objects may still have them.
void Disks::cut_power(int host) {
  const auto of_host = hosts_.find(host);
  if (of_host == hosts_.end()) return;
  InotifyLimits fresh = *of_host->second.limits;
  fresh.instances = fresh.watches = 0;
  of_host->second.limits = std::make_shared<InotifyLimits>(fresh);
  for (const std::shared_ptr<DiskTree>& tree : of_host->second.trees) {
    tree->cut_power();
    tree->set_limits(of_host->second.limits);
  }
}

void Disks::power_on(int host) {
  const auto of_host = hosts_.find(host);
  if (of_host == hosts_.end()) return;
  for (const std::shared_ptr<DiskTree>& tree : of_host->second.trees) tree->power_on();
}

DIR* Disks::open_listing(int fd, const DiskFile& directory) {
  auto listing = std::make_unique<DiskListing>();
  listing->fd = fd;
  for (const auto& [name, node] : directory.node()->entries) {
    dirent& entry = listing->entries.emplace_back();
    entry.d_ino = node->inode;
    entry.d_type = node->is_directory ? DT_DIR : DT_REG;
    std::memcpy(entry.d_name, name.c_str(), name.size() + 1);
  }
  DiskListing* const made = listing.get();
  listings_[made] = std::move(listing);
  return reinterpret_cast<DIR*>(made);  // NOLINT: the type is the system's, and opaque.
}

DiskListing* Disks::listing_of(DIR* stream) {
  const auto found = listings_.find(stream);
  return found == listings_.end() ? nullptr : found->second.get();
}

void Disks::close_listing(DIR* stream) { listings_.erase(stream); }

// ---- Disk

Result<std::string> Disk::read(std::string_view path) const {
  const DiskTree::Found found = tree_->find(tree_->root(), path);
  if (!found) return std::unexpected(error_from(found.error()));
  if ((*found)->is_directory) return std::unexpected(error_from(-EISDIR));
  return (*found)->bytes;
}

std::error_code Disk::write(std::string_view path, std::string_view content) {
  const DiskTree::Found found =
      tree_->open(tree_->root(), path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!found) return error_from(found.error());
  tree_->note_open(**found);
  const long count = tree_->write(**found, std::as_bytes(std::span(content)), 0);
  tree_->note_close(*found, true);
  if (count < 0) return error_from(count);
  return error_from(static_cast<std::size_t>(count) < content.size() ? -ENOSPC : 0);
}

std::error_code Disk::make_directory(std::string_view path) {
  return error_from(tree_->make_directory(tree_->root(), path, 0755));
}

std::error_code Disk::rename(std::string_view from, std::string_view to) {
  return error_from(tree_->rename(tree_->root(), from, tree_->root(), to));
}

std::error_code Disk::remove(std::string_view path) {
  const DiskTree::Found found = tree_->find(tree_->root(), path);
  if (!found) return error_from(found.error());
  return error_from(tree_->remove(tree_->root(), path, (*found)->is_directory));
}

std::vector<std::string> Disk::list() const {
  std::vector<std::string> paths;
  add_paths(*tree_->root(), "", paths);
  std::ranges::sort(paths);
  return paths;
}

void Disk::sync() { tree_->sync_all(); }
void Disk::drop_caches() { tree_->drop_caches(); }
void Disk::set_options(const DiskOptions& options) { tree_->set_options(options); }
std::uint64_t Disk::used() const { return tree_->used(); }

}  // namespace spate::sim
