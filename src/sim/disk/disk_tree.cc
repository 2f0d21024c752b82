#include "sim/disk/disk_tree.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "sim/kernel/kernel.h"

namespace spate::sim {

namespace {

// Removes the first component of a path, and returns it; empty at the end.
std::string_view next_component(std::string_view& path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  const std::string_view name = path.substr(0, path.find('/'));
  path.remove_prefix(name.size());
  return name;
}

bool is_beneath(const DiskNode* node, const DiskNode& directory) {
  for (; node != nullptr; node = node->parent) {
    if (node == &directory) return true;
  }
  return false;
}

}  // namespace

DiskTree::DiskTree(Kernel& kernel, int host, std::string path,
                   std::shared_ptr<InotifyLimits> limits)
    : kernel_(kernel), host_(host), path_(std::move(path)), limits_(std::move(limits)) {
  root_ = make(true, 0755);
  root_->is_root = true;
}

DiskTree::~DiskTree() = default;

void DiskTree::set_options(const DiskOptions& options) {
  options_ = options;
  limits_->max_instances = options.max_user_instances;
  limits_->max_watches = options.max_user_watches;
  limits_->max_queued = options.max_queued_events;
}

DiskTree::NodePointer DiskTree::make(bool is_directory, mode_t permissions) {
  auto node = std::make_shared<DiskNode>();
  node->inode = ++inodes_;
  node->is_directory = is_directory;
  node->permissions = permissions & 0777;
  touch(*node);
  return node;
}

// ---- names

DiskTree::Found DiskTree::find(const NodePointer& from, std::string_view path) const {
  if (!is_on_ && kernel_.host == host_) return std::unexpected(-EIO);
  NodePointer node = from;
  const bool must_be_directory = path.ends_with('/');
  for (std::string_view name = next_component(path); !name.empty(); name = next_component(path)) {
    if (name.size() > NAME_MAX) return std::unexpected(-ENAMETOOLONG);
    if (!node->is_directory) return std::unexpected(-ENOTDIR);
    if (name == "..") {
      if (node->parent != nullptr) node = node->parent->shared_from_this();
    } else if (name != ".") {
      const auto entry = node->entries.find(name);
      if (entry == node->entries.end()) return std::unexpected(-ENOENT);
      node = entry->second;
    }
  }
  if (must_be_directory && !node->is_directory) return std::unexpected(-ENOTDIR);
  return node;
}

std::expected<DiskTree::Place, long> DiskTree::place(const NodePointer& from,
                                                     std::string_view path) const {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  const std::string_view name = path.substr(slash + 1);  // All of it without a slash.
  const std::string_view directory = slash == path.npos ? "" : path.substr(0, slash);
  const Found found = find(from, directory);
  if (!found) return std::unexpected(found.error());
  if (!(*found)->is_directory) return std::unexpected(-ENOTDIR);
  if (!(*found)->is_linked()) return std::unexpected(-ENOENT);
  if (name.empty() || name == "." || name == "..") return std::unexpected(-EBUSY);
  if (name.size() > NAME_MAX) return std::unexpected(-ENAMETOOLONG);
  return Place{.directory = *found, .name = std::string(name)};
}

DiskTree::Found DiskTree::open(const NodePointer& from, std::string_view path, int flags,
                               mode_t permissions) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const Found found = find(from, path);
  if (found) {
    const bool is_exclusive = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
    if (is_exclusive) return std::unexpected(-EEXIST);
    const bool is_directory = (*found)->is_directory;
    if (is_directory && (writes || (flags & O_CREAT) != 0)) return std::unexpected(-EISDIR);
    if (!is_directory && (flags & O_DIRECTORY) != 0) return std::unexpected(-ENOTDIR);
    if (writes && (flags & O_TRUNC) != 0) resize(**found, 0);
    return found;
  }
  if (found.error() != -ENOENT || (flags & O_CREAT) == 0) return found;
  if (path.ends_with('/')) return std::unexpected(-EISDIR);
  auto where = place(from, path);
  if (!where) return std::unexpected(where.error());
  const NodePointer made = make(false, permissions);
  set({{{.directory = where->directory, .name = where->name, .node = made}}});
  report_name(*where->directory, where->name, *made, IN_CREATE, 0);
  return made;
}

long DiskTree::make_directory(const NodePointer& from, std::string_view path, mode_t permissions) {
  if (const Found found = find(from, path); found || found.error() != -ENOENT)
    return found ? -EEXIST : found.error();
  auto where = place(from, path);
  if (!where) return where.error();
  const NodePointer made = make(true, permissions);
  set({{{.directory = where->directory, .name = where->name, .node = made}}});
  report_name(*where->directory, where->name, *made, IN_CREATE, 0);
  return 0;
}

long DiskTree::remove(const NodePointer& from, std::string_view path, bool is_directory) {
  const auto where = place(from, path);
  if (!where) return where.error();
  const auto entry = where->directory->entries.find(where->name);
  if (entry == where->directory->entries.end()) return -ENOENT;
  const NodePointer node = entry->second;
  if (is_directory && !node->is_directory) return -ENOTDIR;
  if (!is_directory && (node->is_directory || path.ends_with('/')))
    return node->is_directory ? -EISDIR : -ENOTDIR;
  if (!node->entries.empty()) return -ENOTEMPTY;
  set({{{.directory = where->directory, .name = where->name, .node = nullptr}}});
  report_name(*where->directory, where->name, *node, IN_DELETE, 0);
  if (!is_directory) report_to(*node, IN_ATTRIB);
  unlink(node);
  return 0;
}

long DiskTree::rename(const NodePointer& from, std::string_view path, const NodePointer& to,
                      std::string_view new_path) {
  const auto old_place = place(from, path);
  if (!old_place) return old_place.error();
  const auto new_place = place(to, new_path);
  if (!new_place) return new_place.error();
  const auto entry = old_place->directory->entries.find(old_place->name);
  if (entry == old_place->directory->entries.end()) return -ENOENT;
  const NodePointer node = entry->second;
  const bool is_directory = node->is_directory;
  if (!is_directory && (path.ends_with('/') || new_path.ends_with('/'))) return -ENOTDIR;
  if (is_directory && is_beneath(new_place->directory.get(), *node)) return -EINVAL;
  const auto target = new_place->directory->entries.find(new_place->name);
  const NodePointer replaced =
      target == new_place->directory->entries.end() ? nullptr : target->second;
  if (replaced == node) return 0;
  if (replaced != nullptr) {
    if (is_beneath(old_place->directory.get(), *replaced)) return -ENOTEMPTY;
    if (is_directory && !replaced->is_directory) return -ENOTDIR;
    if (!is_directory && replaced->is_directory) return -EISDIR;
    if (!replaced->entries.empty()) return -ENOTEMPTY;
  }
  set({{{.directory = old_place->directory, .name = old_place->name, .node = nullptr},
        {.directory = new_place->directory, .name = new_place->name, .node = node}}});
  const std::uint32_t cookie = ++cookies_;
  report_name(*old_place->directory, old_place->name, *node, IN_MOVED_FROM, cookie);
  report_name(*new_place->directory, new_place->name, *node, IN_MOVED_TO, cookie);
  if (replaced != nullptr) {
    report_to(*replaced, IN_ATTRIB);  // Linux does so for a directory, too.
    unlink(replaced);
  }
  report_to(*node, IN_MOVE_SELF);
  return 0;
}

// Applies a change, which is lost at a power cut unless it was committed before.
void DiskTree::set(Change change) {
  for (const Change::Entry& entry : change.entries) {
    DiskNode& directory = *entry.directory;
    if (const auto old = directory.entries.find(entry.name); old != directory.entries.end()) {
      old->second->parent = nullptr;
      directory.entries.erase(old);
    }
    if (entry.node != nullptr) {
      directory.entries[entry.name] = entry.node;
      entry.node->parent = &directory;
      entry.node->name = entry.name;
    }
    touch(directory);
  }
  changes_.push_back(std::move(change));
}

// A removed node exists while it is open.
void DiskTree::unlink(const NodePointer& node) {
  if (node->opens == 0) forget(*node);
}

void DiskTree::forget(DiskNode& node) {
  report_to(node, IN_DELETE_SELF);
  while (!node.marks.empty()) {
    const InotifyMark mark = node.marks.back();
    node.marks.pop_back();
    mark.owner->end(mark.watch);
  }
}

// ---- events

void DiskTree::report_to(DiskNode& node, std::uint32_t mask) {
  for (const InotifyMark& mark : node.marks) {
    if ((mark.mask & mask) != 0) mark.owner->report(mark.watch, mask, 0, {});
  }
}

void DiskTree::report_name(DiskNode& directory, std::string_view name, const DiskNode& node,
                           std::uint32_t mask, std::uint32_t cookie) {
  const std::uint32_t kind = node.is_directory ? std::uint32_t{IN_ISDIR} : 0;
  for (const InotifyMark& mark : directory.marks) {
    if ((mark.mask & mask) != 0) mark.owner->report(mark.watch, mask | kind, cookie, name);
  }
}

void DiskTree::report(DiskNode& node, std::uint32_t mask) {
  if (node.parent != nullptr) report_name(*node.parent, node.name, node, mask, 0);
  for (const InotifyMark& mark : node.marks) {
    if (!node.is_linked() && (mark.mask & IN_EXCL_UNLINK) != 0) continue;
    if ((mark.mask & mask) != 0) mark.owner->report(mark.watch, mask, 0, {});
  }
}

}  // namespace spate::sim
