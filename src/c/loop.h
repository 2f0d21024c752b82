// spate_loop: a local of a Loop, made when C first uses it, and destroyed with the loop.
#pragma once

#include <cstdint>

#include "c/code.h"
#include "c/watcher.h"
#include "core/loop_core.h"
#include "core/loop_local.h"
#include "spate.h"

struct spate_loop final : spate::LoopLocal {
  explicit spate_loop(spate::Loop& loop) : LoopLocal(loop) { spate::c::name_watchers(); }

  // Asserts that the calling thread may use the loop.
  spate::LoopCore& core() { return spate::own(loop()); }

  spate::Dispatcher* wait_hooks = nullptr;  // Owned; needed until the loop is destroyed.
  void* data = nullptr;
};

namespace spate::c {

inline int out_of_memory_unless(bool done) { return done ? 0 : to_code(sys::error_code(-ENOMEM)); }

}  // namespace spate::c
