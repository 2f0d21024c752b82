// Scope: its tasks, and the queue of those who were woken by another's call.
#include "spate/coro/scope.h"

#include "spate/coro/until_stop.h"

namespace spate::coro {

// Notices when the scope is destroyed, by what is called meanwhile.
class Scope::Guard {
 public:
  // Not inline: g++ 12 warns of the address, as if it stayed in the scope.
  [[gnu::noinline]] explicit Guard(Scope& scope) : scope_(&scope), outer_(scope.guards_) {
    scope.guards_ = this;
  }
  ~Guard() {
    if (scope_ != nullptr) scope_->guards_ = outer_;
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  bool is_gone() const { return scope_ == nullptr; }
  static void tell_all(Guard* innermost) {
    for (Guard* guard = innermost; guard != nullptr; guard = guard->outer_) guard->scope_ = nullptr;
  }

 private:
  Scope* scope_;
  Guard* outer_;
};

Scope::Scope(Loop& loop)
    : queue_(loop, bind<&Scope::call_woken>(this)),
      cleanup_(loop, bind<&Scope::end_with_loop>(this)) {
  cleanup_.start();
}

Scope::~Scope() {
  Guard::tell_all(std::exchange(guards_, nullptr));
  is_stopping_ = true;
  cancel();
  while (newest_ != nullptr) {  // They run.
    Promise& root = *newest_;
    unlink(root);
    root.scope_ = nullptr;
  }
  while (stop_points_ != nullptr) stop_points_->disarm();
  end_joins();
}

bool Scope::spawn(Task<void> task) { return begin(task.release(), false); }
bool Scope::spawn(Task<Result<void>> task) { return begin(task.release(), true); }

bool Scope::begin(Promise* root, bool gives_error) noexcept {
  if (root == nullptr) return false;
  if (is_stopping_ || is_cancelling_ || (!cleanup_.is_active() && !cleanup_.start())) {
    root->handle().destroy();
    return false;
  }
  root->is_first_ = true;
  root->scope_ = this;
  root->gives_error_ = gives_error;
  root->newer_ = nullptr;
  root->older_ = newest_;
  if (newest_ != nullptr) newest_->newer_ = root;
  newest_ = root;
  ++size_;
  root->resume(Then(*root));
  return true;
}

void Scope::unlink(Promise& root) {
  (root.newer_ != nullptr ? root.newer_->older_ : newest_) = root.older_;
  if (root.older_ != nullptr) root.older_->newer_ = root.newer_;
  --size_;
}

// It has ended, or was cancelled, or was to be resumed while it ran.
void Promise::settle() {
  if ((marks_ & (kEnded | kDoomed)) == 0) {
    marks_ = 0;
    return scope_->feed();
  }
  if (scope_ != nullptr) return scope_->retire(*this);
  handle().destroy();
}

void Scope::retire(Promise& root) {
  std::error_code error;
  if (root.gives_error_) error = static_cast<TaskPromise<Result<void>>&>(root).error();
  unlink(root);
  const Guard guard(*this);
  root.handle().destroy();
  if (!guard.is_gone() && error) tell(error);
  if (!guard.is_gone() && empty()) end_joins();
}

void Scope::on_error(std::move_only_function<void(std::error_code error)> callback) {
  on_error_ = std::move(callback);
}

// The callback may be replaced, or destroyed with the scope, while it is called.
void Scope::tell(std::error_code error) {
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
  give_up_stop_points();
}

// Those whose chains run stay until these wait: nobody destroys a coroutine that runs.
void Scope::give_up_stop_points() {
  const Guard guard(*this);
  for (StopPoint* point = stop_points_; point != nullptr;) {
    const bool is_given_up = point->give_up_(*point);
    if (guard.is_gone()) return;
    point = is_given_up ? stop_points_ : point->next_;
  }
}

void Scope::cancel() {
  const Guard guard(*this);
  const bool was_cancelling = std::exchange(is_cancelling_, true);
  for (Promise* root = newest_; root != nullptr;) {
    if (root->is_running_) {
      root->marks_ |= Promise::kDoomed;
      root = root->older_;
      continue;
    }
    unlink(*root);
    root->handle().destroy();
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

// ---- those who were woken

// Those whose chains run stay until these have returned.
Place* Scope::next_woken() const {
  for (Place* place = woken_.first(); place != nullptr; place = woken_.behind(*place)) {
    if (!place->then().chain().is_busy()) return place;
  }
  return nullptr;
}

// Those who are there now: who comes meanwhile has his turn after the other events.
void Scope::call_woken() {
  const Guard guard(*this);
  if (is_stopping_) give_up_stop_points();
  if (guard.is_gone()) return;
  const Place* const last = woken_.last();
  for (Place* place = next_woken(); place != nullptr; place = next_woken()) {
    const bool is_last = place == last;
    place->then().go();
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
    std::exchange(join.then_, Then()).wake();
  }
}

bool Scope::Join::start(Promise&, Then then) {
  then_ = then;
  next_ = scope_->joins_;
  if (next_ != nullptr) next_->previous_ = this;
  scope_->joins_ = this;
  is_linked_ = true;
  return true;
}

void Scope::Join::cancel() {
  then_.leave();
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

bool Scope::JoinWithin::start(Promise& chain, Then then) {
  timer_.emplace(chain.loop(), bind<&JoinWithin::on_timer>(this));
  if (!timer_->start(grace_)) is_over_ = true;
  join_.start(chain, then);
  if (is_over_) scope_.cancel();
  return true;
}

void Scope::JoinWithin::cancel() {
  timer_.reset();
  join_.cancel();
}

void Scope::JoinWithin::on_timer() {
  is_over_ = true;
  scope_.cancel();
}

}  // namespace spate::coro
