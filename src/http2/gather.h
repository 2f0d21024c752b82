// Gather: makes the next bytes of an input contiguous. Nothing is copied if they are already.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/array.h"

namespace spate::http {

class Gather {
 public:
  // Takes `size` bytes from the input, and returns true if `taken` has them; it is valid until the
  // next call. Otherwise the input is used up, and the next call, for the same size, continues.
  // If memory runs out, `has_failed` is set.
  bool take(std::string_view& input, std::size_t size, std::string_view& taken) {
    if (is_whole_) kept_.clear();
    is_whole_ = false;
    if (kept_.empty() && input.size() >= size) {
      taken = input.substr(0, size);
      input.remove_prefix(size);
      return true;
    }
    const std::size_t added = std::min(size - kept_.size(), input.size());
    if (!kept_.reserve(size)) return has_failed_ = true, false;
    std::ranges::copy(input.substr(0, added), kept_.end());
    kept_.grow_reserved(added);
    input.remove_prefix(added);
    is_whole_ = kept_.size() == size;
    if (is_whole_) taken = {kept_.begin(), size};
    return is_whole_;
  }
  bool has_failed() const { return has_failed_; }

 private:
  Array<char> kept_;
  bool is_whole_ = false;
  bool has_failed_ = false;
};

}  // namespace spate::http
