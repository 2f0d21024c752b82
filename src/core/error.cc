#include "spate/error.h"

#include <cstddef>
#include <new>
#include <string>

namespace spate {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "spate"; }
  std::string message(int value) const override {
    switch (static_cast<Error>(value)) {
      case Error::loop_forked:
        return "the loop belongs to the parent process: call after_fork() first";
      case Error::unknown_backend:
        return "no backend of that name";
      case Error::fd_out_of_range:
        return "the descriptor is beyond what select can hold";
      case Error::not_pollable:
        return "this backend has no descriptor to wait on";
      case Error::idle_timeout:
        return "the connection was idle for too long";
      case Error::read_timeout:
        return "the peer sent nothing for too long";
      case Error::write_timeout:
        return "the peer took nothing for too long";
      case Error::connect_timeout:
        return "the connection did not come about in time";
      case Error::queue_full:
        return "more was written than may wait to be sent";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& error_category() {
  // Never destroyed: other threads may still be in their loops while the process exits.
  alignas(Category) static std::byte memory[sizeof(Category)];
  static const std::error_category& category = *new (memory) Category;
  return category;
}

std::error_code make_error_code(Error error) { return {static_cast<int>(error), error_category()}; }

}  // namespace spate
