// Fifo: its order, whatever is added and removed.
#include "base/fifo.h"

#include <gtest/gtest.h>

#include <vector>

namespace spate {
namespace {

struct QueuedItem : Linked<QueuedItem> {};

class FifoTest : public ::testing::Test {
 protected:
  void push_all() {
    for (QueuedItem& item : items_) fifo_.push(item);
  }
  // Empties it.
  std::vector<QueuedItem*> popped() {
    std::vector<QueuedItem*> order;
    while (QueuedItem* item = fifo_.pop()) {
      EXPECT_FALSE(item->is_linked());
      order.push_back(item);
    }
    EXPECT_TRUE(fifo_.empty());
    EXPECT_EQ(fifo_.size(), 0u);
    return order;
  }
  std::vector<QueuedItem*> at(std::initializer_list<int> places) {
    std::vector<QueuedItem*> items;
    for (const int place : places) items.push_back(&items_[place]);
    return items;
  }

  QueuedItem items_[3];
  Fifo<QueuedItem> fifo_;
};

TEST_F(FifoTest, PopsInOrderOfPushes) {
  EXPECT_TRUE(fifo_.empty());
  push_all();
  EXPECT_EQ(fifo_.size(), 3u);
  EXPECT_TRUE(items_[1].is_linked());
  EXPECT_EQ(popped(), at({0, 1, 2}));
}

TEST_F(FifoTest, RemoveWorksAtEveryPosition) {
  push_all();
  fifo_.remove(items_[0]);
  EXPECT_EQ(popped(), at({1, 2}));
  push_all();
  fifo_.remove(items_[1]);
  EXPECT_EQ(popped(), at({0, 2}));
  push_all();
  fifo_.remove(items_[2]);
  EXPECT_EQ(popped(), at({0, 1}));
}

TEST_F(FifoTest, RemovedItemMayBePushedAgain) {
  push_all();
  fifo_.remove(items_[2]);
  fifo_.remove(items_[0]);
  fifo_.push(items_[0]);
  fifo_.push(items_[2]);
  EXPECT_EQ(popped(), at({1, 0, 2}));
}

TEST_F(FifoTest, EmptiedFifoAcceptsItemsAgain) {
  push_all();
  EXPECT_EQ(popped().size(), 3u);
  fifo_.push(items_[1]);
  EXPECT_EQ(popped(), at({1}));
}

TEST_F(FifoTest, TakeOverMovesItemsAndTheirNumber) {
  Fifo<QueuedItem> other;
  fifo_.push(items_[1]);
  other.push(items_[2]);
  fifo_.push_front(items_[0]);
  fifo_.take_over(other);
  EXPECT_EQ(other.size(), 0u);
  EXPECT_EQ(fifo_.size(), 3u);
  EXPECT_EQ(popped(), at({0, 1, 2}));
}

}  // namespace
}  // namespace spate
