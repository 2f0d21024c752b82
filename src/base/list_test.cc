// Tests of List: its items after additions and removals in any order.
#include "base/list.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace spate {
namespace {

struct First;
struct Second;
struct Item : Linked<Item, First>, Linked<Item, Second> {};
using Items = List<Item, First>;

class ListTest : public ::testing::Test {
 protected:
  void push_all() {
    for (Item& item : items_) list_.push_back(item);
  }
  static std::vector<const Item*> in(const Items& list) {
    std::vector<const Item*> found;
    list.for_each([&](const Item& item) { found.push_back(&item); });
    return found;
  }
  std::vector<const Item*> at(std::initializer_list<int> places) const {
    std::vector<const Item*> items;
    for (const int place : places) items.push_back(&items_[place]);
    return items;
  }

  Item items_[3];
  Items list_;
};

TEST_F(ListTest, PushAddsAtEitherEnd) {
  EXPECT_TRUE(list_.empty());
  EXPECT_EQ(list_.first(), nullptr);
  EXPECT_EQ(list_.pop_front(), nullptr);
  list_.push_back(items_[1]);
  list_.push_front(items_[0]);
  list_.push_back(items_[2]);
  EXPECT_FALSE(list_.empty());
  EXPECT_EQ(in(list_), at({0, 1, 2}));
  EXPECT_EQ(list_.after(items_[0]), &items_[1]);
  EXPECT_EQ(list_.after(items_[2]), nullptr);
}

TEST_F(ListTest, RemoveWorksAtEveryPosition) {
  for (const int gone : {0, 1, 2}) {
    push_all();
    EXPECT_TRUE(Items::is_linked(items_[gone]));
    Items::remove(items_[gone]);
    EXPECT_FALSE(Items::is_linked(items_[gone]));
    list_.push_front(items_[gone]);  // Added again, at the front.
    EXPECT_EQ(list_.pop_front(), &items_[gone]);
    EXPECT_EQ(in(list_), at({gone == 0 ? 1 : 0, gone == 2 ? 1 : 2}));
    while (list_.pop_front() != nullptr) {
    }
    EXPECT_TRUE(list_.empty());
  }
}

TEST_F(ListTest, VisitedItemMayLeave) {
  push_all();
  list_.for_each([&](Item& item) { Items::remove(item); });
  EXPECT_TRUE(list_.empty());
}

TEST_F(ListTest, TakeOverAppendsAllItems) {
  Items other;
  other.take_over(list_);  // It is empty.
  EXPECT_TRUE(other.empty());
  other.push_back(items_[2]);
  list_.push_back(items_[0]);
  list_.push_back(items_[1]);
  list_.take_over(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(in(list_), at({0, 1, 2}));
  Items moved = std::move(list_);
  Items::remove(items_[1]);  // It leaves the list that has it now.
  EXPECT_EQ(in(moved), at({0, 2}));
}

TEST_F(ListTest, TagsAreSeparateLists) {
  List<Item, Second> second;
  push_all();
  second.push_back(items_[1]);
  Items::remove(items_[1]);
  EXPECT_EQ(second.first(), &items_[1]);
  EXPECT_FALSE(Items::is_linked(items_[1]));
  EXPECT_EQ(in(list_), at({0, 2}));
}

}  // namespace
}  // namespace spate
