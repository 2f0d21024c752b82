// spate_loop: each function forwards to Loop.
#include "c/loop.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "c/child.h"
#include "c/sized.h"
#include "c/watcher.h"
#include "spate/active.h"
#include "spate/c_loop.h"
#include "spate/layer/layer.h"

using namespace spate;
using c::to_code;

namespace {

class WaitHooks final : public Dispatcher {
 public:
  explicit WaitHooks(const spate_loop_options& options) : options_(options) {}

  void before_wait(Loop&) override {
    if (options_.before_wait != nullptr) options_.before_wait(face_, options_.data);
  }
  void after_wait(Loop&) override {
    if (options_.after_wait != nullptr) options_.after_wait(face_, options_.data);
  }
  void set_face(spate_loop* face) { face_ = face; }

 private:
  spate_loop_options options_;
  spate_loop* face_ = nullptr;
};

int check(const spate_loop_options& options) {
  return options.reserved == 0 && options.spin >= 0 ? 0 : -EINVAL;
}

LayerOptions to_options(const spate_loop_options& options) {
  LayerOptions result;
  if (options.backend != nullptr) result.loop.backend = options.backend;
  if (options.budget != 0) result.loop.budget = options.budget;
  if (options.spin != 0) result.loop.spin = Spin::fixed(Nanos{options.spin});
  return result;
}

Nanos to_span(std::int64_t timeout) { return timeout < 0 ? kForever : Nanos{timeout}; }

struct Call {
  void (*task)(void* data);
  void* data;
  void operator()() const { task(data); }
};

}  // namespace

spate_loop* spate::to_c(Loop& loop) { return local_of<spate_loop>(loop); }
Loop& spate::from_c(spate_loop& loop) { return loop.loop(); }

void spate_loop_options_init(spate_loop_options* options, size_t size) {
  std::memset(options, 0, size);
  options->size = size;
}

int spate_loop_create(spate_loop** loop, const spate_loop_options* options) {
  *loop = nullptr;
  spate_loop_options known;
  if (const int code = c::copy_sized(options, known)) return code;
  if (const int code = check(known)) return code;
  LayerOptions layer = to_options(known);
  std::unique_ptr<WaitHooks> hooks;
  if (known.before_wait != nullptr || known.after_wait != nullptr) {
    hooks.reset(new (std::nothrow) WaitHooks(known));
    if (hooks == nullptr) return -ENOMEM;
    layer.dispatcher = hooks.get();
  }
  Result<std::unique_ptr<Loop>> created = NodeLoop::create(layer);
  if (!created) return to_code(created.error());
  spate_loop* const face = to_c(**created);
  if (face == nullptr) return -ENOMEM;
  face->data = known.data;
  if (hooks != nullptr) hooks->set_face(face);
  face->wait_hooks = hooks.release();
  *loop = face;
  created->release();
  return 0;
}

void spate_loop_destroy(spate_loop* loop) {
  if (loop == nullptr) return;
  const std::unique_ptr<Dispatcher> hooks(loop->wait_hooks);
  const std::unique_ptr<Loop> core(&loop->core());
}

void* spate_loop_data(const spate_loop* loop) { return loop->data; }

spate_loop* spate_loop_current(void) {
  Loop* const loop = Loop::current();
  return loop == nullptr ? nullptr : to_c(*loop);
}

const char* spate_loop_backend(const spate_loop* loop) {
  return loop->loop().backend_info().name.data();
}

int spate_loop_run(spate_loop* loop, spate_run_mode mode) {
  return to_code(loop->core().run(static_cast<Run>(mode)));
}
int spate_loop_run_for(spate_loop* loop, int64_t span) {
  return to_code(loop->core().run_for(Nanos{span}));
}
void spate_loop_stop(spate_loop* loop) { loop->core().leave(false); }
void spate_loop_stop_all(spate_loop* loop) { loop->core().leave(true); }
int spate_loop_has_work(spate_loop* loop) { return loop->core().has_work(); }
void spate_loop_ref(spate_loop* loop) { loop->core().ref(); }
void spate_loop_unref(spate_loop* loop) { loop->core().unref(); }

static_assert(sizeof(spate_event) == sizeof(Due) &&
              offsetof(spate_event, events) == offsetof(Due, events));

// Events that an earlier turn has left come first. Also returns if it only ran callbacks, since the
// program may be waiting for one of them.
int spate_loop_poll(spate_loop* loop, spate_event* due, int most, int64_t timeout) {
  if (most < 1) return -EINVAL;
  auto* const batch = reinterpret_cast<Due*>(due);
  const auto room = static_cast<std::size_t>(most);
  LoopCore& core = loop->core();
  const std::uint64_t before = core.metrics().events;
  const std::size_t left = core.take(batch, room, c::is_watcher);
  if (left > 0 || core.metrics().events != before) return static_cast<int>(left);
  if (const std::error_code error = core.collect(to_span(timeout))) return to_code(error);
  return static_cast<int>(core.take(batch, room, c::is_watcher));
}

spate_watcher* spate_event_claim(spate_loop* loop, spate_event* event) {
  Node* const node = static_cast<NodeLoop&>(loop->core()).claim(reinterpret_cast<Due&>(*event));
  auto* const watcher = reinterpret_cast<spate_watcher*>(node);
  if (node != nullptr && node->active == 0) c::settle(*watcher);
  return watcher;
}

int spate_loop_give_back(spate_loop* loop) {
  return c::out_of_memory_unless(static_cast<NodeLoop&>(loop->core()).give_back());
}

int64_t spate_loop_now(const spate_loop* loop) { return loop->loop().now().count(); }
void spate_loop_update_now(spate_loop* loop) { loop->core().update_now(); }
int64_t spate_loop_wall_now(spate_loop* loop) {
  return loop->core().wall_now().time_since_epoch().count();
}
void spate_loop_suspend(spate_loop* loop) { loop->core().suspend(); }
void spate_loop_resume(spate_loop* loop) { loop->core().resume(); }

int spate_post(spate_loop* loop, void (*task)(void* data), void* data) {
  return c::out_of_memory_unless(loop->loop().post(Call{task, data}));
}
void spate_wake(spate_loop* loop) { loop->loop().wake(); }

int spate_after(spate_loop* loop, int64_t delay, void (*task)(void* data), void* data) {
  return to_code(loop->core().after(Nanos{delay}, Call{task, data}));
}
int spate_defer(spate_loop* loop, void (*task)(void* data), void* data) {
  return c::out_of_memory_unless(loop->core().defer(Call{task, data}));
}

int spate_loop_after_fork(spate_loop* loop) {
  LoopCore& core = loop->core();
  c::count_children(core);
  const std::error_code error = core.after_fork();
  if (error) c::discount_children(core);
  return to_code(error);
}

int spate_loop_poll_fd(spate_loop* loop) {
  const Result<int> fd = loop->core().poll_fd();
  return fd ? *fd : to_code(fd.error());
}
int64_t spate_loop_prepare_to_wait(spate_loop* loop) {
  const Nanos span = loop->core().prepare_to_wait();
  return span >= kForever ? -1 : span.count();
}

int64_t spate_loop_active_count(const spate_loop* loop) { return loop->loop().active_count(); }
void spate_loop_for_each_active(spate_loop* loop,
                                void (*visit)(void* data, const spate_active* entry), void* data) {
  for_each_active(loop->core(), [=](const ActiveInfo& info) {
    const spate_active entry{.kind = name_of(info.kind).data(),  // A literal: it ends with a NUL.
                             .label = info.label.c_str(),
                             .due = info.due ? info.due->count() : -1,
                             .count = info.count,
                             .id = info.id,
                             .fd = info.fd};
    visit(data, &entry);
  });
}
size_t spate_loop_pending_count(const spate_loop* loop) { return loop->loop().pending_count(); }
int spate_loop_depth(const spate_loop* loop) { return loop->loop().depth(); }
uint64_t spate_loop_iteration(const spate_loop* loop) { return loop->loop().iteration(); }
int spate_loop_reserve(spate_loop* loop, size_t descriptors, size_t timers) {
  return c::out_of_memory_unless(loop->core().reserve(descriptors, timers));
}
