// Tests of StackGuard: each of nested calls notices that the object was destroyed.
#include "base/guard.h"

#include <gtest/gtest.h>

#include <memory>

namespace spate {
namespace {

struct Object {
  class Guard : public StackGuard<Guard> {
   public:
    explicit Guard(Object& object) : StackGuard(object.innermost) {}
  };

  ~Object() { Guard::detach(innermost); }

  Guard* innermost = nullptr;
};

TEST(StackGuardTest, NestedGuardsLeaveInOrder) {
  Object object;
  {
    const Object::Guard outer(object);
    {
      const Object::Guard inner(object);
      EXPECT_EQ(object.innermost, &inner);
      EXPECT_FALSE(inner.is_gone());
    }
    EXPECT_EQ(object.innermost, &outer);
    EXPECT_FALSE(outer.is_gone());
  }
  EXPECT_EQ(object.innermost, nullptr);
}

TEST(StackGuardTest, EveryGuardIsGoneWhenObjectIsDestroyed) {
  auto object = std::make_unique<Object>();
  const Object::Guard outer(*object);
  const Object::Guard inner(*object);
  object.reset();
  EXPECT_TRUE(inner.is_gone());
  EXPECT_TRUE(outer.is_gone());
}

}  // namespace
}  // namespace spate
