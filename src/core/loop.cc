// Loop's face: each function hands over to LoopCore, which every Loop is.
#include "spate/loop.h"

#include <cerrno>
#include <new>

#include "core/loop_core.h"

namespace spate {

namespace {

LoopCore& core(Loop& loop) { return static_cast<LoopCore&>(loop); }
const LoopCore& core(const Loop& loop) { return static_cast<const LoopCore&>(loop); }

Loop::Created assemble(OpenedBackend backend, const LoopOptions& options) {
  auto* core = new (std::nothrow) LoopCore(std::move(backend), options);
  std::unique_ptr<Loop> loop(core);
  if (loop == nullptr) return std::unexpected(std::error_code(ENOMEM, std::system_category()));
  if (const std::error_code error = core->open()) return std::unexpected(error);
  return loop;
}

// What all kinds have in common that a part of the loop looks after.
template <class Part, class N>
std::error_code start_with(LoopCore& loop, Part& part, N& node) {
  loop.check_thread();
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

std::unique_ptr<Extension>& extension_of(Loop& loop) { return core(loop).extension(); }

Loop::Created Loop::create(const LoopOptions& options) {
  std::expected<OpenedBackend, std::error_code> backend = open_backend(options.backend);
  if (!backend) return std::unexpected(backend.error());
  return assemble(std::move(*backend), options);
}

Loop::Created Loop::create(std::unique_ptr<Backend> backend, const LoopOptions& options) {
  if (const std::error_code error = backend->reopen()) return std::unexpected(error);
  return assemble({std::move(backend), {}}, options);
}

std::vector<std::string_view> Loop::backends() { return backend_names(); }

void* Loop::operator new(std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return ::operator new(bytes, nothrow);
}

void Loop::operator delete(Loop* loop, std::destroying_delete_t) {
  LoopCore* whole = &core(*loop);
  whole->~LoopCore();
  ::operator delete(whole, sizeof(LoopCore));
}

std::expected<bool, std::error_code> Loop::run(Run mode) { return core(*this).run(mode); }
void Loop::stop() { core(*this).leave(false); }
void Loop::stop_all() { core(*this).leave(true); }
void Loop::ref() { core(*this).ref(); }
void Loop::unref() { core(*this).unref(); }

void Loop::update_now() { core(*this).update_now(); }
WallTime Loop::wall_now() { return core(*this).wall_now(); }
void Loop::suspend() { core(*this).suspend(); }
void Loop::resume() { core(*this).resume(); }

Loop::PostPlace Loop::begin_post() {
  PostQueue::Lane* lane = core(*this).posts_.lane_of_this_thread();
  return {lane == nullptr ? nullptr : PostQueue::place_in(*lane), lane};
}

void Loop::end_post(PostPlace place) {
  PostQueue::publish(*static_cast<PostQueue::Lane*>(place.lane));
  core(*this).wakeup_.wake();
}

void Loop::wake() noexcept { core(*this).wakeup_.wake(); }

std::error_code Loop::once(int fd, Events events, Nanos timeout, OnceCallback callback) {
  return core(*this).onces_.add(fd, events, timeout, std::move(callback));
}

std::expected<int, std::error_code> Loop::poll_fd() { return core(*this).backend_->poll_fd(); }

Nanos Loop::prepare_to_wait() { return core(*this).prepare_to_wait(); }
std::error_code Loop::after_fork() { return core(*this).after_fork(); }

std::int64_t Loop::active_count() const { return core(*this).active_count(); }
std::size_t Loop::pending_count() const { return core(*this).pending_.size(); }
int Loop::depth() const { return core(*this).depth_; }
std::uint64_t Loop::iteration() const { return core(*this).metrics_.turns; }
BackendInfo Loop::backend_info() const {
  return {core(*this).backend_->name(), core(*this).backend_reason_};
}
Metrics Loop::metrics() const { return core(*this).metrics(); }
void Loop::measure_callbacks(bool on) { core(*this).measuring_ = on; }

bool Loop::reserve(std::size_t fds, std::size_t timers) {
  return core(*this).fds_.reserve(fds) && core(*this).timers_.reserve(timers);
}

bool Loop::start(FdNode& node) { return core(*this).start_fd(node); }
void Loop::stop(FdNode& node) { core(*this).stop_fd(node); }
std::error_code Loop::start_now(FdNode& node) { return core(*this).start_fd_now(node); }
void Loop::stop_closing(FdNode& node) { core(*this).stop_fd_closing(node); }
void Loop::stop_now(FdNode& node) { core(*this).stop_fd_now(node); }
bool Loop::start(TimerNode& node) { return core(*this).start_timer(node); }
void Loop::stop(TimerNode& node) { core(*this).stop_timer(node); }
void Loop::park(TimerNode& node) { core(*this).park_timer(node); }
bool Loop::restart(TimerNode& node, std::int64_t deadline) {
  return core(*this).restart_timer(node, deadline);
}
bool Loop::start(Hook hook, Node& node) { return core(*this).start_hook(hook, node); }
void Loop::stop(Hook hook, Node& node) { core(*this).stop_hook(hook, node); }
bool Loop::start(AsyncNode& node) { return core(*this).start_async(node); }
void Loop::stop(AsyncNode& node) { core(*this).stop_async(node); }
void Loop::send(AsyncNode& node) noexcept { core(*this).send(node); }

bool Loop::start(PeriodicNode& node) {
  return !start_with(core(*this), core(*this).periodics_, node);
}
std::error_code Loop::start(SignalNode& node) {
  return start_with(core(*this), core(*this).signals_, node);
}
std::error_code Loop::start(ChildNode& node) {
  return start_with(core(*this), core(*this).children_, node);
}
std::error_code Loop::start(StatNode& node) {
  return start_with(core(*this), core(*this).paths_, node);
}
void Loop::stop(PeriodicNode& node) { stop_with(core(*this), core(*this).periodics_, node); }
void Loop::stop(SignalNode& node) { stop_with(core(*this), core(*this).signals_, node); }
void Loop::stop(ChildNode& node) { stop_with(core(*this), core(*this).children_, node); }
void Loop::stop(StatNode& node) { stop_with(core(*this), core(*this).paths_, node); }

void Loop::refresh(StatNode& node) { PathWatch::refresh(node); }

bool Loop::each(bool (*show)(void* context, FdNode& node), void* context) const {
  return core(*this).each_fd(show, context);
}
bool Loop::each(bool (*show)(void* context, TimerNode& node), void* context) const {
  return core(*this).each_timer(show, context);
}

bool Loop::feed(Node& node, Events events) { return core(*this).feed(node, events); }
Events Loop::clear_pending(Node& node) { return core(*this).clear_pending(node); }
bool Loop::take(Due& due) { return core(*this).take(due); }

void Loop::default_expiry(TimerNode& node) { core(*this).default_expiry(node); }
void Loop::default_dispatch() { core(*this).default_dispatch(); }

}  // namespace spate
