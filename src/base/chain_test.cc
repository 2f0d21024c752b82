// Tests of Chain: its members after additions and removals in any order.
#include "base/chain.h"

#include <gtest/gtest.h>

namespace spate {
namespace {

struct Item : Linked<Item> {};

class ChainTest : public ::testing::Test {
 protected:
  // Empties the chain. Returns whether these were its members, in this order.
  bool holds(std::initializer_list<Item*> items) {
    for (Item* item : items) {
      if (chain_.first() != item) return false;
      chain_.remove(*item);
    }
    return chain_.first() == nullptr;
  }

  Item items_[3];
  Chain<Item> chain_;
};

TEST_F(ChainTest, AddPutsTheNewItemFirst) {
  EXPECT_EQ(chain_.first(), nullptr);
  for (Item& item : items_) chain_.add(item);
  EXPECT_TRUE(holds({&items_[2], &items_[1], &items_[0]}));
}

TEST_F(ChainTest, RemoveWorksAtEveryPosition) {
  for (Item& gone : items_) {
    for (Item& item : items_) chain_.add(item);
    chain_.remove(gone);
    chain_.add(gone);  // Added again, at the front.
    chain_.remove(gone);
    Item* left[2];
    Item** next = left;
    for (Item& item : items_) {
      if (&item != &gone) *next++ = &item;
    }
    EXPECT_TRUE(holds({left[1], left[0]}));
  }
}

TEST_F(ChainTest, RemoveRelinksTheNeighbours) {
  for (Item& item : items_) chain_.add(item);
  chain_.remove(items_[1]);
  chain_.remove(items_[0]);
  EXPECT_TRUE(holds({&items_[2]}));
}

}  // namespace
}  // namespace spate
