// What a spate_loop is: a Loop's own, made when C first asks for it, and gone with the loop.
#pragma once

#include <cstdint>
#include <string_view>

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

// 0, or the negative code.
int to_code(std::error_code error);
// As much as there is room for, and a NUL; returns `text`.
const char* copy_text(std::string_view from, char* text, std::size_t size);
inline int out_of_memory_unless(bool done) { return done ? 0 : to_code(sys::error_code(-ENOMEM)); }

}  // namespace spate::c
