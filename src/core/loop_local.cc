#include "core/loop_local.h"

#include <utility>

namespace spate {

LoopLocal* LoopLocals::add(const void* kind, LoopLocal* made) {
  if (made == nullptr) return nullptr;
  if (!made->open()) return made->leave(), nullptr;
  made->kind_ = kind;
  made->next_ = std::exchange(first_, made);
  return made;
}

void LoopLocals::end() {
  while (LoopLocal* local = first_) {
    first_ = local->next_;
    local->on_loop_end();
    local->is_alive_ = false;
    local->was_foreign_ = local->is_foreign();
    local->loop_ = nullptr;
    local->leave();
  }
}

}  // namespace spate
