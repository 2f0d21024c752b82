#include "net/stream/connection_state.h"

#include "spate/error.h"

namespace spate {

namespace {

// Above every errno of Linux.
constexpr int kFirstOwn = 192;

}  // namespace

void Lifecycle::set_error(std::error_code error) {
  const int first = error.category() == error_category() ? kFirstOwn : 0;
  error_ = static_cast<std::uint8_t>(first + error.value());
}

std::error_code Lifecycle::error() const {
  if (error_ < kFirstOwn) return {error_, std::system_category()};
  return make_error_code(static_cast<Error>(error_ - kFirstOwn));
}

}  // namespace spate
