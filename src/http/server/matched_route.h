// MatchedRoute: the route that a router chose for a request: its pattern, and the parameters that
// were found in the path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spate::http {

class MatchedRoute {
 public:
  // A pattern has at most as many names.
  static constexpr std::size_t kMostParams = 8;

  // The pattern is never destroyed.
  void set_pattern(std::string_view pattern) { pattern_ = pattern; }
  std::string_view pattern() const { return pattern_; }

  // Adds a parameter: `size` bytes at `offset` in the path. The name is never destroyed. Returns
  // false if there are kMostParams.
  bool add_param(std::string_view name, std::size_t offset, std::size_t size);
  // Removes the parameter that was added last.
  void drop_param() { --count_; }
  // Returns the percent-decoded value of a parameter; empty if it was not added.
  std::string param(std::string_view name, std::string_view path) const;

  void clear() {
    pattern_ = {};
    count_ = 0;
  }

 private:
  struct Param {
    std::string_view name;
    std::size_t offset;
    std::size_t size;
  };

  Param params_[kMostParams];
  std::size_t count_ = 0;
  std::string_view pattern_;
};

}  // namespace spate::http
