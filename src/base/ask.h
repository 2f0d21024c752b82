// ask() and tell(): for handles that may be empty. An empty one does nothing, and answers with what
// is given, or with nothing at all.
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
