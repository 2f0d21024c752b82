#include <string>

#include "base/immortal.h"
#include "spate/net/resolver.h"

namespace spate {

namespace {

class NameCategory final : public std::error_category {
 public:
  constexpr NameCategory() = default;
  const char* name() const noexcept override { return "spate.names"; }
  std::string message(int value) const override {
    switch (static_cast<NameError>(value)) {
      case NameError::no_such_host:
        return "the host does not exist";
      case NameError::no_address:
        return "the host has no address of that kind";
      case NameError::server_failure:
        return "the name servers failed";
      case NameError::bad_answer:
        return "a name server's response is malformed";
      case NameError::unreachable:
        return "no name server can be reached";
      case NameError::timeout:
        return "no name server has answered in time";
      case NameError::bad_name:
        return "not a valid host name";
    }
    return "unknown error";
  }
};

constinit Immortal<NameCategory> names;

}  // namespace

const std::error_category& name_category() { return names.object; }

std::error_code make_error_code(NameError error) {
  return {static_cast<int>(error), name_category()};
}

}  // namespace spate
