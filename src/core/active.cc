// for_each_active(): the loop's own lists, and those of the layers above.
#include "spate/active.h"

#include <algorithm>
#include <string>

#include "core/active_list.h"
#include "core/loop_core.h"
#include "spate/named_callback.h"
#include "spate/stat.h"

namespace spate {

namespace {

constexpr std::string_view kKindNames[] = {
    "io",         "timer",         "periodic",     "signal",        "child",     "stat",
    "watch",      "async",         "prepare",      "check",         "idle",      "once",
    "after",      "deferred call", "posted task",  "stream",        "listener",  "datagram",
    "connecting", "reconnecting",  "name look-up", "TLS handshake", "relay",     "offload",
    "sleep",      "HTTP server",   "HTTP request", "HTTP client",   "HTTP call", "WebSocket",
    "inspector",  "reference"};
static_assert(std::size(kKindNames) == static_cast<std::size_t>(ActiveKind::reference) + 1);

}  // namespace

std::string_view name_of(ActiveKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

// ---- the list

void ActiveList::add(ActiveInfo info) {
  total_ += info.count;
  const auto [place, is_new] = entries_.try_emplace({info.kind, info.id}, info);
  if (is_new) return;
  ActiveInfo& entry = place->second;
  entry.count += info.count;
  if (entry.fd < 0) entry.fd = info.fd;
  if (entry.label.empty()) entry.label = std::move(info.label);
  if (info.due && (!entry.due || *info.due < *entry.due)) entry.due = info.due;
}

void ActiveList::add(const Node& node, ActiveInfo info) {
  info.id = &node;
  NamedCallback::apply(node, info);
  if (info.count != 0) add(std::move(info));
}

std::vector<ActiveInfo> ActiveList::take() const {
  std::vector<ActiveInfo> all;
  for (const auto& [key, info] : entries_) all.push_back(info);
  return all;
}

// ---- the loop

void LoopCore::list_hooks(ActiveList& list, Hook hook, ActiveKind kind) const {
  hooks(hook).for_each([&](const Node& node) { list.add(node, {.kind = kind}); });
}

void LoopCore::list_nodes(ActiveList& list) const {
  fds_.for_each([&](const FdNode& node) {
    if (!is_internal(node.head)) list.add(node.head, {.kind = ActiveKind::io, .fd = node.fd});
    return true;
  });
  timers_.for_each([&](const TimerNode& node) {
    if (!is_internal(node.head))
      list.add(node.head, {.kind = ActiveKind::timer, .due = Nanos{node.deadline}});
    return true;
  });
  periodics_.for_each([&](const PeriodicNode& node) {
    list.add(node.head, {.kind = ActiveKind::periodic, .due = Nanos{node.timer.deadline}});
  });
  signals_.for_each([&](const SignalNode& node) {
    if (!is_internal(node.head))
      list.add(node.head, {.kind = ActiveKind::signal, .label = std::to_string(node.signum)});
  });
  children_.for_each([&](const ChildNode& node) {
    list.add(node.head, {.kind = ActiveKind::child, .label = std::to_string(node.pid)});
  });
  paths_.for_each([&](const StatNode& node) {
    list.add(node.head, {.kind = ActiveKind::stat, .label = node.path});
  });
  asyncs_.for_each([&](const Node& node) { list.add(node, {.kind = ActiveKind::async}); });
}

std::vector<ActiveInfo> LoopCore::list_active() {
  ActiveList list;
  list_nodes(list);
  list_hooks(list, Hook::prepare, ActiveKind::prepare);
  list_hooks(list, Hook::check, ActiveKind::check);
  list_hooks(list, Hook::idle, ActiveKind::idle);
  one_shots_.list_active(list);
  if (posts_.has_posts()) list.add({.kind = ActiveKind::posted, .count = 0});
  locals_.list_active(list);
  const std::int64_t rest = active_count() - list.total();
  if (rest != 0) list.add({.kind = ActiveKind::reference, .count = rest});
  return list.take();
}

void show_active(Loop& loop, ShowActive show, void* context) {
  for (const ActiveInfo& info : own(loop).list_active()) show(context, info);
}

}  // namespace spate
