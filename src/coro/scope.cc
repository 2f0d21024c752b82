// Scope: its tasks, and the queue of woken coroutines.
#include "spate/coro/scope.h"

#include "base/guard.h"
#include "spate/coro/until_stop.h"

namespace spate::coro {

// Detects that a call destroyed the scope.
class Scope::Guard : public StackGuard<Guard> {
 public:
  explicit Guard(Scope& scope) : StackGuard(scope.guards_) {}
};

Scope::Scope(Loop& loop)
    : queue_(loop, bind<&Scope::call_woken>(this)),
      cleanup_(loop, bind<&Scope::end_with_loop>(this)) {
  cleanup_.start();
}

Scope::~Scope() {
  Guard::detach(std::exchange(guards_, nullptr));
  is_stopping_ = true;
  cancel();
  // Running tasks are left. They are detached, and destroyed when they wait.
  while (newest_ != nullptr) {
    Promise& root = *newest_;
    unlink(root);
    root.scope_ = nullptr;
  }
  while (stop_points_ != nullptr) stop_points_->disarm();
  end_joins();
}

bool Scope::spawn(Task<void> task) { return begin(task.release(), false); }
bool Scope::spawn(Task<Result<void>> task) { return begin(task.release(), true); }

bool Scope::begin(Promise* root, bool returns_result) noexcept {
  if (root == nullptr) return false;
  if (is_stopping_ || is_cancelling_ || (!cleanup_.is_active() && !cleanup_.start())) {
    root->handle().destroy();
    return false;
  }
  root->is_root_ = true;
  root->scope_ = this;
  root->returns_result_ = returns_result;
  root->newer_ = nullptr;
  root->older_ = newest_;
  if (newest_ != nullptr) newest_->newer_ = root;
  newest_ = root;
  ++size_;
  root->resume(Continuation(*root));
  return true;
}

void Scope::unlink(Promise& root) {
  (root.newer_ != nullptr ? root.newer_->older_ : newest_) = root.older_;
  if (root.older_ != nullptr) root.older_->newer_ = root.newer_;
  --size_;
}

// Called when the fiber stops running with flags: it has ended, was cancelled, or a waiter could
// not be resumed meanwhile.
void Promise::settle() {
  if ((flags_ & (kEnded | kCancelled)) == 0) {
    flags_ = 0;
    return scope_->feed();
  }
  if (scope_ != nullptr) return scope_->retire(*this);
  destroy();
}

void Promise::destroy() {
  is_running_ = true;
  flags_ |= kCancelled;
  handle().destroy();
}

void Scope::retire(Promise& root) {
  std::error_code error;
  if (root.returns_result_) error = static_cast<TaskPromise<Result<void>>&>(root).error();
  unlink(root);
  const Guard guard(*this);
  root.destroy();
  if (!guard.is_gone() && error) report(error);
  if (!guard.is_gone() && empty()) end_joins();
}

void Scope::on_error(Function<void(std::error_code error)> callback) {
  on_error_.swap(callback);  // The destructor of the old one may use the scope.
}

// The callback may be replaced, or destroyed with the scope, during its call.
void Scope::report(std::error_code error) {
  if (!on_error_) {
    if (!first_error_) first_error_ = error;
    return;
  }
  const Guard guard(*this);
  auto callback = std::move(on_error_);
  on_error_ = nullptr;
  callback(error);
  if (!guard.is_gone() && !on_error_) on_error_ = std::move(callback);
}

void Scope::stop() {
  is_stopping_ = true;
  trigger_stop_points();
}

// Stop points of running fibers stay until these wait: a running coroutine must not be destroyed.
void Scope::trigger_stop_points() {
  const Guard guard(*this);
  for (StopPoint* point = stop_points_; point != nullptr;) {
    const bool was_triggered = point->trigger_(*point);
    if (guard.is_gone()) return;
    point = was_triggered ? stop_points_ : point->next_;
  }
}

void Scope::cancel() {
  const Guard guard(*this);
  const bool was_cancelling = std::exchange(is_cancelling_, true);
  if (!empty()) {
    for (Join* join = joins_; join != nullptr; join = join->next_) join->has_cancelled_ = true;
  }
  for (Promise* root = newest_; root != nullptr;) {
    if (root->is_running_) {
      root->flags_ |= Promise::kCancelled;
      root = root->older_;
      continue;
    }
    unlink(*root);
    root->destroy();
    if (guard.is_gone()) return;
    root = newest_;
  }
  is_cancelling_ = was_cancelling;
  if (empty()) end_joins();
}

void Scope::end_with_loop() {
  is_stopping_ = true;
  cancel();
}

// ---- woken coroutines

// Returns the first one whose fiber is not running. The others stay until their fibers return.
WaitNode* Scope::next_woken() const {
  for (WaitNode* node = woken_.first(); node != nullptr; node = woken_.after(*node)) {
    if (!node->as_continuation().fiber().defer_if_running()) return node;
  }
  return nullptr;
}

// Resumes the coroutines that are woken now. Coroutines that they wake are resumed after other
// events, so that they cannot starve these.
void Scope::call_woken() {
  const Guard guard(*this);
  if (is_stopping_) trigger_stop_points();
  if (guard.is_gone()) return;
  const WaitNode* const last = woken_.last();
  for (WaitNode* node = next_woken(); node != nullptr; node = next_woken()) {
    const bool is_last = node == last;
    node->as_continuation().resume();
    if (guard.is_gone() || is_last) return;
  }
}

// ---- stopping

void StopPoint::arm(Scope& scope) {
  scope_ = &scope;
  next_ = scope.stop_points_;
  if (next_ != nullptr) next_->previous_ = this;
  scope.stop_points_ = this;
}

void StopPoint::disarm() {
  if (scope_ == nullptr) return;
  (previous_ != nullptr ? previous_->next_ : scope_->stop_points_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  scope_ = nullptr;
}

// ---- joining

void Scope::end_joins() {
  while (joins_ != nullptr) {
    Join& join = *joins_;
    join.error_ = std::exchange(first_error_, {});
    join.scope_ = nullptr;
    joins_ = join.next_;
    if (joins_ != nullptr) joins_->previous_ = nullptr;
    join.is_linked_ = false;
    std::exchange(join.continuation_, Continuation()).wake();
  }
}

bool Scope::Join::start(Promise&, Continuation continuation) {
  continuation_ = continuation;
  next_ = scope_->joins_;
  if (next_ != nullptr) next_->previous_ = this;
  scope_->joins_ = this;
  is_linked_ = true;
  return true;
}

void Scope::Join::cancel() {
  continuation_.cancel();
  if (!is_linked_) return;
  (previous_ != nullptr ? previous_->next_ : scope_->joins_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  is_linked_ = false;
}

Result<void> Scope::Join::await_resume() {
  if (scope_ != nullptr) error_ = std::exchange(scope_->first_error_, {});
  if (error_) return std::unexpected(error_);
  return {};
}

bool Scope::JoinWithin::start(Promise& fiber, Continuation continuation) {
  timer_.emplace(fiber.loop(), bind<&JoinWithin::on_timer>(this));
  join_.start(fiber, continuation);
  if (!timer_->start(grace_)) scope_.cancel();
  return true;
}

void Scope::JoinWithin::cancel() {
  timer_.reset();
  join_.cancel();
}

// The scope's tasks may have ended meanwhile, or the scope may be destroyed.
void Scope::JoinWithin::on_timer() {
  if (join_.is_linked_) scope_.cancel();
}

}  // namespace spate::coro
