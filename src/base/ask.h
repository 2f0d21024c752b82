// Calls of a member function of the object that a handle refers to. If the handle is empty, ask()
// returns the default, and its counterpart without a result does nothing.
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
