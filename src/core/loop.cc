// Loop's face: each function hands over to LoopCore, which every Loop is.
#include "spate/loop.h"

#include <cerrno>
#include <new>

#include "core/loop_core.h"
#include "core/ownership.h"

namespace spate {

namespace {

LoopCore& core(Loop& loop) { return static_cast<LoopCore&>(loop); }
const LoopCore& core(const Loop& loop) { return static_cast<const LoopCore&>(loop); }

// For all that is not for any thread: breaking the rule is found at the door.
LoopCore& own(Loop& loop) {
  SPATE_ASSERT(core(loop).may_touch());
  return core(loop);
}
const LoopCore& own(const Loop& loop) {
  SPATE_ASSERT(core(loop).may_touch());
  return core(loop);
}

Result<std::unique_ptr<Loop>> assemble(OpenedBackend backend, const LoopOptions& options) {
  auto* core = new (std::nothrow) LoopCore(std::move(backend), options);
  std::unique_ptr<Loop> loop(core);
  if (loop == nullptr) return std::unexpected(std::error_code(ENOMEM, std::system_category()));
  if (const std::error_code error = core->open()) return std::unexpected(error);
  return loop;
}

// What all kinds have in common that a part of the loop looks after.
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

LoopLocals& locals_of(Loop& loop) { return core(loop).locals(); }
bool may_touch(const Loop& loop) { return core(loop).may_touch(); }
bool is_foreign(const Loop& loop) { return core(loop).is_foreign(); }

void end_loop(Loop& loop) { core(loop).end(); }

Result<std::unique_ptr<Loop>> Loop::create(const LoopOptions& options) {
  Result<OpenedBackend> backend = open_backend(options.backend);
  if (!backend) return std::unexpected(backend.error());
  return assemble(std::move(*backend), options);
}

Result<std::unique_ptr<Loop>> Loop::create(std::unique_ptr<Backend> backend,
                                           const LoopOptions& options) {
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

std::error_code Loop::run(Run mode) { return own(*this).run(mode); }
bool Loop::has_work() const { return own(*this).has_work(); }
void Loop::stop() { own(*this).leave(false); }
void Loop::stop_all() { own(*this).leave(true); }
void Loop::ref() { own(*this).ref(); }
void Loop::unref() { own(*this).unref(); }

bool Loop::is_mine() const { return core(*this).may_touch(); }
void Loop::update_now() { own(*this).update_now(); }
WallTime Loop::wall_now() { return own(*this).wall_now(); }
void Loop::suspend() { own(*this).suspend(); }
void Loop::resume() { own(*this).resume(); }

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
  return own(*this).onces_.add(fd, events, timeout, std::move(callback));
}

Result<int> Loop::poll_fd() {
  if (own(*this).is_foreign()) return std::unexpected(make_error_code(Error::loop_forked));
  return own(*this).backend_->poll_fd();
}

Nanos Loop::prepare_to_wait() { return own(*this).prepare_to_wait(); }
std::error_code Loop::after_fork() { return own(*this).after_fork(); }

std::int64_t Loop::active_count() const { return own(*this).active_count(); }
std::size_t Loop::pending_count() const { return own(*this).pending_.size(); }
int Loop::depth() const { return own(*this).depth_; }
std::uint64_t Loop::iteration() const { return own(*this).metrics_.turns; }
BackendInfo Loop::backend_info() const {
  return {own(*this).backend_->name(), own(*this).backend_reason_};
}
Metrics Loop::metrics() const { return own(*this).metrics(); }
void Loop::measure_callbacks(bool on) { own(*this).measuring_ = on; }

bool Loop::reserve(std::size_t fds, std::size_t timers) {
  return own(*this).fds_.reserve(fds) && own(*this).timers_.reserve(timers);
}

bool Loop::start(FdNode& node) { return own(*this).start_fd(node); }
void Loop::stop(FdNode& node) { own(*this).stop_fd(node); }
std::error_code Loop::start_now(FdNode& node) { return own(*this).start_fd_now(node); }
void Loop::stop_before_close(FdNode& node) { own(*this).stop_fd_before_close(node); }
void Loop::stop_now(FdNode& node) { own(*this).stop_fd_now(node); }
bool Loop::start(TimerNode& node) { return own(*this).start_timer(node); }
void Loop::stop(TimerNode& node) { own(*this).stop_timer(node); }
void Loop::park(TimerNode& node) { own(*this).park_timer(node); }
bool Loop::restart(TimerNode& node, std::int64_t deadline) {
  return own(*this).restart_timer(node, deadline);
}
bool Loop::start(Hook hook, Node& node) { return own(*this).start_hook(hook, node); }
void Loop::stop(Hook hook, Node& node) { own(*this).stop_hook(hook, node); }
bool Loop::start(AsyncNode& node) { return own(*this).start_async(node); }
void Loop::stop(AsyncNode& node) { own(*this).stop_async(node); }
void Loop::send(AsyncNode& node) noexcept { core(*this).send(node); }

bool Loop::start(PeriodicNode& node) {
  return !start_with(own(*this), own(*this).periodics_, node);
}
std::error_code Loop::start(SignalNode& node) {
  return start_with(own(*this), own(*this).signals_, node);
}
std::error_code Loop::start(ChildNode& node) {
  return start_with(own(*this), own(*this).children_, node);
}
std::error_code Loop::start(StatNode& node) {
  return start_with(own(*this), own(*this).paths_, node);
}
void Loop::stop(PeriodicNode& node) { stop_with(own(*this), own(*this).periodics_, node); }
void Loop::stop(SignalNode& node) { stop_with(own(*this), own(*this).signals_, node); }
void Loop::stop(ChildNode& node) { stop_with(own(*this), own(*this).children_, node); }
void Loop::stop(StatNode& node) { stop_with(own(*this), own(*this).paths_, node); }

void Loop::refresh(StatNode& node) {
  SPATE_ASSERT(core(*this).may_touch());
  PathWatch::refresh(node);
}

bool Loop::for_each(bool (*show)(void* context, FdNode& node), void* context) const {
  return own(*this).for_each_fd(show, context);
}
bool Loop::for_each(bool (*show)(void* context, TimerNode& node), void* context) const {
  return own(*this).for_each_timer(show, context);
}

bool Loop::feed(Node& node, Events events) { return own(*this).feed(node, events); }
Events Loop::clear_pending(Node& node) { return own(*this).clear_pending(node); }
bool Loop::take(Due& due) { return own(*this).take(due); }

void Loop::default_expiry(TimerNode& node) { own(*this).default_expiry(node); }
void Loop::default_dispatch() { own(*this).default_dispatch(); }

}  // namespace spate
