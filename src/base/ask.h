// Two ways to call a member function of the object that a handle refers to. With an empty handle
// neither calls it, and ask() returns the default.
#pragma once

namespace spate {

template <class Object, class Owner, class Answer>
Answer ask(const Object* object, Answer (Owner::*question)() const, Answer otherwise = {}) {
  return object == nullptr ? otherwise : (object->*question)();
}

template <class Object, class Owner>
void tell(Object* object, void (Owner::*order)()) {
  if (object != nullptr) (object->*order)();
}

}  // namespace spate
