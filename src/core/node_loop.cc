// NodeLoop: each function forwards to LoopCore.
#include "spate/layer/node_loop.h"

#include <cerrno>
#include <new>

#include "core/loop_core.h"
#include "spate/layer/layer.h"

namespace spate {

namespace {

Result<std::unique_ptr<Loop>> assemble(OpenedBackend backend, const LayerOptions& options) {
  auto* core = new (std::nothrow) LoopCore(std::move(backend), options);
  std::unique_ptr<Loop> loop(core);
  if (loop == nullptr) return std::unexpected(std::error_code(ENOMEM, std::system_category()));
  if (const std::error_code error = core->open()) return std::unexpected(error);
  return loop;
}

// Starts a node of a kind that has its own object in the loop.
template <class Part, class N>
std::error_code start_with(LoopCore& loop, Part& part, N& node) {
  if (node.head.active != 0) return {};
  const std::error_code error = part.start(node);
  if (!error) loop.ref();
  return error;
}

template <class Part, class N>
void stop_with(LoopCore& loop, Part& part, N& node) {
  loop.forget_pending(node.head);
  if (node.head.active == 0) return;
  part.stop(node);
  loop.unref();
}

}  // namespace

Result<std::unique_ptr<Loop>> NodeLoop::create(const LayerOptions& options) {
  Result<OpenedBackend> backend = open_backend(options.loop.backend);
  if (!backend) return std::unexpected(backend.error());
  return assemble(std::move(*backend), options);
}

Result<std::unique_ptr<Loop>> NodeLoop::create(std::unique_ptr<Backend> backend,
                                               const LayerOptions& options) {
  if (const std::error_code error = backend->reopen()) return std::unexpected(error);
  return assemble({std::move(backend), {}}, options);
}

bool NodeLoop::start(FdNode& node) { return own(*this).start_fd(node); }
void NodeLoop::stop(FdNode& node) { own(*this).stop_fd(node); }
std::error_code NodeLoop::start_now(FdNode& node) { return own(*this).start_fd_now(node); }
void NodeLoop::stop_before_close(FdNode& node) { own(*this).stop_fd_before_close(node); }
void NodeLoop::stop_now(FdNode& node) { own(*this).stop_fd_now(node); }
void NodeLoop::modify(FdNode& node, Events events) { own(*this).modify_fd(node, events); }
bool NodeLoop::start(TimerNode& node) { return own(*this).start_timer(node); }
void NodeLoop::stop(TimerNode& node) { own(*this).stop_timer(node); }
void NodeLoop::park(TimerNode& node) { own(*this).park_timer(node); }
bool NodeLoop::restart(TimerNode& node, std::int64_t deadline) {
  return own(*this).restart_timer(node, deadline);
}
bool NodeLoop::start(Hook hook, Node& node) { return own(*this).start_hook(hook, node); }
void NodeLoop::stop(Hook hook, Node& node) { own(*this).stop_hook(hook, node); }
bool NodeLoop::start(AsyncNode& node) { return own(*this).start_async(node); }
void NodeLoop::stop(AsyncNode& node) { own(*this).stop_async(node); }
void NodeLoop::send(AsyncNode& node) noexcept { core_of(*this).send(node); }

bool NodeLoop::start(PeriodicNode& node) {
  return !start_with(own(*this), own(*this).periodics_, node);
}
std::error_code NodeLoop::start(SignalNode& node) {
  return start_with(own(*this), own(*this).signals_, node);
}
std::error_code NodeLoop::start(ChildNode& node) {
  return start_with(own(*this), own(*this).children_, node);
}
std::error_code NodeLoop::start(StatNode& node) {
  return start_with(own(*this), own(*this).paths_, node);
}
void NodeLoop::stop(PeriodicNode& node) { stop_with(own(*this), own(*this).periodics_, node); }
void NodeLoop::stop(SignalNode& node) { stop_with(own(*this), own(*this).signals_, node); }
void NodeLoop::stop(ChildNode& node) { stop_with(own(*this), own(*this).children_, node); }
void NodeLoop::stop(StatNode& node) { stop_with(own(*this), own(*this).paths_, node); }

void NodeLoop::refresh(StatNode& node) {
  SPATE_ASSERT(core_of(*this).may_touch(), kWrongThread);
  PathWatch::refresh(node);
}

bool NodeLoop::for_each(bool (*show)(void* context, FdNode& node), void* context) const {
  return own(*this).for_each_fd(show, context);
}
bool NodeLoop::for_each(bool (*show)(void* context, TimerNode& node), void* context) const {
  return own(*this).for_each_timer(show, context);
}

bool NodeLoop::feed(Node& node, Events events) { return own(*this).feed(node, events); }
Events NodeLoop::clear_pending(Node& node) { return own(*this).clear_pending(node); }
Events NodeLoop::clear_pending(FdNode& node) { return own(*this).clear_pending(node); }
bool NodeLoop::is_pending(const FdNode& node) { return own(*this).is_pending(node); }
bool NodeLoop::take(Due& due) { return own(*this).take(due); }

std::error_code NodeLoop::collect(Nanos longest) { return own(*this).collect(longest); }
std::size_t NodeLoop::take(Due* batch, std::size_t most, bool (*wants)(const Node& node)) {
  return own(*this).take(batch, most, wants);
}
Node* NodeLoop::claim(Due& entry) { return own(*this).pending_.claim(entry); }
bool NodeLoop::give_back() { return own(*this).pending_.give_back(); }

void NodeLoop::default_expiry(TimerNode& node) { own(*this).default_expiry(node); }
void NodeLoop::default_dispatch() { own(*this).default_dispatch(); }

}  // namespace spate
