// invoke_callable(): calls anything callable, as std::invoke does.
//
// Programs do not need this header. The public headers use it because <functional> takes a fifth of
// the time to compile them.
//
// Threads: any.
#pragma once

#include <type_traits>
#include <utility>

#include "spate/export.h"

namespace spate {

// Calls a method of `object`, or reads a member. `object` is an object, a reference to one, a
// pointer of any kind, or a std::reference_wrapper.
template <class Class, class Member, class Object, class... Args>
constexpr decltype(auto) invoke_member(Member Class::* member, Object&& object, Args&&... args) {
  using Plain = std::remove_cvref_t<Object>;
  if constexpr (!std::is_same_v<Class, Plain> && !std::is_base_of_v<Class, Plain>) {
    if constexpr (requires { *object; }) {
      return invoke_member(member, *std::forward<Object>(object), std::forward<Args>(args)...);
    } else {
      return invoke_member(member, object.get(), std::forward<Args>(args)...);
    }
  } else if constexpr (std::is_function_v<Member>) {
    return (std::forward<Object>(object).*member)(std::forward<Args>(args)...);
  } else {
    return std::forward<Object>(object).*member;
  }
}

// Calls `callable`: a function, a function object, or a pointer to a member.
template <class F, class... Args>
  requires std::is_invocable_v<F, Args...>
constexpr decltype(auto) invoke_callable(F&& callable, Args&&... args) {
  if constexpr (std::is_member_pointer_v<std::remove_cvref_t<F>>) {
    return invoke_member(callable, std::forward<Args>(args)...);
  } else {
    return std::forward<F>(callable)(std::forward<Args>(args)...);
  }
}

}  // namespace spate
