// What a spate_loop is: a Loop's own, made when C first asks for it, and gone with the loop.
#pragma once

#include <cstdint>

#include "c/code.h"
#include "core/loop_core.h"
#include "core/loop_local.h"
#include "spate.h"

struct spate_loop final : spate::LoopLocal {
  explicit spate_loop(spate::Loop& loop) : LoopLocal(loop) {}

  // Checked: only the thread that may touch the loop comes here.
  spate::LoopCore& core() { return spate::own(loop()); }

  spate::Dispatcher* wait_hooks = nullptr;  // Owned, and needed until the loop has gone.
  void* data = nullptr;
};

namespace spate::c {

inline int out_of_memory_unless(bool done) { return done ? 0 : to_code(sys::error_code(-ENOMEM)); }

}  // namespace spate::c
