// Loop: each function forwards to LoopCore, which every Loop is.
#include "spate/loop.h"

#include <new>

#include "core/loop_core.h"
#include "core/ownership.h"
#include "spate/layer/layer.h"

namespace spate {

LoopLocals& locals_of(Loop& loop) { return core_of(loop).locals(); }
bool may_touch(const Loop& loop) { return core_of(loop).may_touch(); }
bool is_foreign(const Loop& loop) { return core_of(loop).is_foreign(); }

void end_loop(Loop& loop) { core_of(loop).end(); }

Result<std::unique_ptr<Loop>> Loop::create(const LoopOptions& options) {
  return NodeLoop::create({.loop = options});
}

std::vector<std::string_view> Loop::backends() { return backend_names(); }

void* Loop::operator new(std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return ::operator new(bytes, nothrow);
}

void Loop::operator delete(Loop* loop, std::destroying_delete_t) {
  LoopCore* whole = &core_of(*loop);
  whole->~LoopCore();
  ::operator delete(whole, sizeof(LoopCore));
}

std::error_code Loop::run(Run mode) { return own(*this).run(mode); }
std::error_code Loop::run_for(Nanos span) { return own(*this).run_for(span); }
bool Loop::has_work() const { return own_whole(*this).has_work(); }
void Loop::stop() { own(*this).leave(false); }
void Loop::stop_all() { own(*this).leave(true); }
void Loop::ref() { own(*this).ref(); }
void Loop::unref() { own(*this).unref(); }
Loop* Loop::current() { return LoopCore::current(); }

bool Loop::is_mine() const { return core_of(*this).may_touch(); }
void Loop::update_now() { own(*this).update_now(); }
WallTime Loop::wall_now() { return own(*this).wall_now(); }
void Loop::suspend() { own(*this).suspend(); }
void Loop::resume() { own(*this).resume(); }

Loop::PostPlace Loop::begin_post() {
  PostQueue::Lane* lane = core_of(*this).posts_.lane_of_this_thread();
  return {lane == nullptr ? nullptr : PostQueue::place_in(*lane), lane};
}

void Loop::end_post(PostPlace place) {
  core_of(*this).posts_.publish(*static_cast<PostQueue::Lane*>(place.lane));
  core_of(*this).wakeup_.wake();
}

void Loop::wake() noexcept { core_of(*this).wakeup_.wake(); }

std::error_code Loop::once(int fd, Events events, Nanos timeout, OnceCallback callback) {
  SPATE_ASSERT(callback != nullptr, "there is nothing to call");
  return own(*this).one_shots_.once(fd, events, timeout, std::move(callback));
}

std::error_code Loop::after(Nanos delay, Job task) {
  SPATE_ASSERT(task != nullptr, "there is nothing to call");
  return own(*this).one_shots_.after(delay, std::move(task));
}

bool Loop::defer(Job task) {
  SPATE_ASSERT(task != nullptr, "there is nothing to call");
  return own(*this).one_shots_.defer(std::move(task));
}

std::error_code Loop::on_signal(int signum, Job callback) {
  SPATE_ASSERT(callback != nullptr, "there is nothing to call");
  return own(*this).one_shots_.on_signal(signum, std::move(callback));
}

Result<int> Loop::poll_fd() {
  if (own(*this).is_foreign()) return std::unexpected(make_error_code(Error::loop_forked));
  return own(*this).backend_->poll_fd();
}

Nanos Loop::prepare_to_wait() { return own(*this).prepare_to_wait(); }
std::error_code Loop::after_fork() { return own(*this).after_fork(); }

std::int64_t Loop::active_count() const { return own(*this).active_count(); }
std::size_t Loop::pending_count() const { return own_whole(*this).pending_count(); }
int Loop::depth() const { return own(*this).depth_; }
std::uint64_t Loop::iteration() const { return own(*this).metrics_.turns; }
BackendInfo Loop::backend_info() const {
  return {own(*this).backend_->name(), own(*this).backend_reason_};
}
Metrics Loop::metrics() const { return own_whole(*this).metrics(); }
void Loop::measure_waits(bool on) { own(*this).measure_waits(on); }
void Loop::measure_callbacks(bool on) { own(*this).measure_callbacks(on); }
bool Loop::is_measuring_waits() const { return own(*this).measuring_waits_; }
bool Loop::is_measuring_callbacks() const { return own(*this).measuring_; }
std::optional<RunningCallback> Loop::running_callback() const {
  return core_of(*this).running_callback();
}

bool Loop::reserve(std::size_t fds, std::size_t timers) {
  return own(*this).fds_.reserve(fds) && own(*this).timers_.reserve(timers);
}

}  // namespace spate
