// Compares Buffer with a std::string on which the same operations are made.
#include "spate/net/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/fault.h"
#include "tests/support/random.h"

namespace spate {
namespace {

std::string text(const Buffer& buffer) {
  std::string all;
  for (const Bytes piece : buffer.pieces()) {
    EXPECT_FALSE(piece.empty());
    all += text_of(piece);
  }
  return all;
}

std::string pattern(std::size_t length, unsigned seed) {
  std::string made(length, ' ');
  for (std::size_t i = 0; i < length; ++i) made[i] = static_cast<char>('a' + (i * 7 + seed) % 26);
  return made;
}

void count_release(void* context) { ++*static_cast<int*>(context); }

TEST(Buffer, BeginsEmpty) {
  Buffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_TRUE(buffer.front().empty());
  EXPECT_TRUE(buffer.back().empty());
  EXPECT_EQ(buffer.pieces().begin(), buffer.pieces().end());
  EXPECT_TRUE(buffer.flat(1).empty());
  EXPECT_EQ(buffer.find("x"), std::nullopt);
  EXPECT_EQ(buffer.find(""), 0u);
  buffer.consume(0);
}

TEST(Buffer, KeepsOrderOfAppends) {
  Buffer buffer;
  std::string expected;
  for (unsigned i = 0; i < 300; ++i) {
    const std::string part = pattern(i * 5, i);
    ASSERT_TRUE(buffer.append(part));
    expected += part;
  }
  EXPECT_EQ(buffer.size(), expected.size());
  EXPECT_EQ(text(buffer), expected);
}

TEST(Buffer, MovesBlocksBetweenBuffersWithoutCopying) {
  Buffer from;
  ASSERT_TRUE(from.append(pattern(100'000, 1)));
  const std::byte* bytes = from.front().data();
  Buffer to;
  to.append(std::move(from));
  EXPECT_EQ(to.front().data(), bytes);
  EXPECT_TRUE(from.empty());
  EXPECT_EQ(text(to), pattern(100'000, 1));
}

TEST(Buffer, SharesBlockWhenPartOfItMoves) {
  Buffer from;
  ASSERT_TRUE(from.append(pattern(1000, 1)));
  const std::byte* bytes = from.front().data();
  Buffer to;
  ASSERT_TRUE(to.append(from, 400));
  EXPECT_EQ(to.front().data(), bytes);
  EXPECT_EQ(from.front().data(), bytes + 400);
  EXPECT_EQ(text(to) + text(from), pattern(1000, 1));
  // Clearing one buffer does not release the other's bytes.
  from.clear();
  EXPECT_EQ(text(to), pattern(1000, 1).substr(0, 400));
}

TEST(Buffer, AppendsToSharedBlockWithoutChangingOtherBuffer) {
  Buffer from;
  ASSERT_TRUE(from.append(pattern(200, 1)));
  Buffer to;
  ASSERT_TRUE(to.append(from, 100));
  ASSERT_TRUE(from.append("FROM"));
  ASSERT_TRUE(to.append("TO"));
  EXPECT_EQ(text(to), pattern(200, 1).substr(0, 100) + "TO");
  EXPECT_EQ(text(from), pattern(200, 1).substr(100) + "FROM");
}

TEST(Buffer, SharesMemoryOfAnotherBufferWithoutCopying) {
  Buffer from;
  ASSERT_TRUE(from.append(pattern(1000, 1)));
  Buffer to;
  ASSERT_TRUE(to.append_shared(from));
  EXPECT_EQ(to.front().data(), from.front().data());
  ASSERT_TRUE(from.append("FROM") && to.append("TO"));
  EXPECT_EQ(text(from), pattern(1000, 1) + "FROM");
  EXPECT_EQ(text(to), pattern(1000, 1) + "TO");
  from.clear();
  EXPECT_EQ(text(to), pattern(1000, 1) + "TO");
}

TEST(Buffer, MergesAdjacentSharedRanges) {
  Buffer from;
  ASSERT_TRUE(from.append(pattern(400, 1)));
  Buffer to;
  for (std::size_t i = 0; i < 400; i += 10) ASSERT_TRUE(to.append_shared(from, i, 10));
  EXPECT_EQ(text(to), pattern(400, 1));
  EXPECT_EQ(to.size(), 400u);
  EXPECT_EQ(to.front().data(), from.front().data());
  EXPECT_EQ(to.front().size(), 400u);
  EXPECT_EQ(text_of(to.back()), pattern(400, 1));
}

TEST(Buffer, SharesPartOfBufferAcrossBlocks) {
  Buffer from;
  std::string all;
  for (unsigned i = 0; i < 5; ++i) {
    Buffer piece;
    ASSERT_TRUE(piece.append(pattern(i == 2 ? 20 : 1000, i)));
    all += pattern(i == 2 ? 20 : 1000, i);
    from.append(std::move(piece));
  }
  for (const auto& [offset, count] : {std::pair<std::size_t, std::size_t>(0, SIZE_MAX),
                                      {999, 2},
                                      {1000, 0},
                                      {1000, 1020},
                                      {1500, 700},
                                      {4019, 9},
                                      {4020, 9},
                                      {5000, 9}}) {
    Buffer to;
    ASSERT_TRUE(to.append("before "));
    ASSERT_TRUE(to.append_shared(from, offset, count));
    const std::string part = offset > all.size() ? "" : all.substr(offset, count);
    EXPECT_EQ(text(to), "before " + part) << offset;
  }
  EXPECT_EQ(text(from), all);
  ASSERT_TRUE(from.append_shared(from));
  EXPECT_EQ(text(from), all + all);
}

TEST(Buffer, ReleasesReferencedBytesWithLastSharingBuffer) {
  const std::string outside = pattern(600, 3);
  int released = 0;
  Buffer second;
  {
    Buffer first;
    ASSERT_TRUE(first.append_reference(bytes_of(outside), count_release, &released));
    ASSERT_TRUE(second.append_shared(first));
  }
  EXPECT_EQ(released, 0);
  EXPECT_EQ(text_of(second.front()).data(), outside.data());
  second.clear();
  EXPECT_EQ(released, 1);
}

TEST(Buffer, ReleasesReferencedBytesAfterAllAreConsumed) {
  const std::string outside = pattern(500, 3);
  int released = 0;
  {
    Buffer first;
    Buffer second;
    ASSERT_TRUE(first.append_reference(bytes_of(outside), count_release, &released));
    EXPECT_EQ(text_of(first.front()).data(), outside.data());
    ASSERT_TRUE(second.append(first, 200));
    first.consume(300);
    EXPECT_EQ(released, 0);
    second.consume(199);
    EXPECT_EQ(released, 0);
    EXPECT_EQ(text(second), outside.substr(199, 1));
  }
  EXPECT_EQ(released, 1);
}

TEST(Buffer, ReleasesEmptyReferenceAtOnce) {
  int released = 0;
  Buffer buffer;
  ASSERT_TRUE(buffer.append_reference({}, count_release, &released));
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(buffer.empty());
}

TEST(Buffer, AppendsExactlyCommittedBytes) {
  Buffer buffer;
  ASSERT_TRUE(buffer.append("head "));
  std::span<std::byte> room = buffer.reserve(10'000);
  ASSERT_GE(room.size(), 10'000u);
  std::ranges::copy(bytes_of("body"), room.begin());
  buffer.commit(4);
  EXPECT_EQ(text(buffer), "head body");
  room = buffer.reserve(1);
  buffer.commit(0);
  EXPECT_EQ(text(buffer), "head body");
  room = buffer.reserve(100'000);
  ASSERT_GE(room.size(), 100'000u);
  room = buffer.reserve(1);
  room[0] = std::byte{'!'};
  buffer.commit(1);
  EXPECT_EQ(text(buffer), "head body!");
}

TEST(Buffer, FindsPatternAcrossBlocks) {
  Buffer buffer;
  for (const char* part : {"ab\r", "\ncd\r", "\r", "\n", "\r\n"}) {
    Buffer piece;
    ASSERT_TRUE(piece.append(std::string_view(part)));
    buffer.append(std::move(piece));
  }
  EXPECT_EQ(buffer.find("\r\n"), 2u);
  EXPECT_EQ(buffer.find("\r\n", 3), 7u);
  EXPECT_EQ(buffer.find("\r\n\r\n"), 7u);
  EXPECT_EQ(buffer.find("\r\n\r\n\r"), std::nullopt);
  EXPECT_EQ(buffer.find("\n", 11), std::nullopt);
  EXPECT_EQ(buffer.find("", 12), std::nullopt);
}

TEST(Buffer, ReturnsContiguousViewOfSeveralBlocks) {
  Buffer buffer;
  std::string expected;
  for (unsigned i = 0; i < 10; ++i) {
    Buffer piece;
    ASSERT_TRUE(piece.append(pattern(100, i)));
    expected += pattern(100, i);
    buffer.append(std::move(piece));
  }
  EXPECT_EQ(text_of(buffer.flat(50)), expected.substr(0, 50));
  EXPECT_EQ(text_of(buffer.flat(550)), expected.substr(0, 550));
  EXPECT_EQ(text_of(buffer.flat(1000)), expected);
  EXPECT_TRUE(buffer.flat(1001).empty());
  EXPECT_EQ(text(buffer), expected);
}

TEST(Buffer, ReportsThatMemoryRanOutAndChangesNothing) {
  Buffer buffer;
  Buffer other;
  ASSERT_TRUE(buffer.append(pattern(600, 1)));
  ASSERT_TRUE(other.append(pattern(600, 2)));
  int released = 0;
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  {
    FaultScope scope(plan);
    EXPECT_FALSE(buffer.append(pattern(70'000, 3)));
    EXPECT_FALSE(buffer.prepend(bytes_of("x")));
    EXPECT_FALSE(buffer.append_reference(bytes_of("x"), count_release, &released));
    EXPECT_FALSE(buffer.append(other, 300));
    EXPECT_FALSE(buffer.append_shared(other));
    EXPECT_TRUE(buffer.reserve(70'000).empty());
  }
  EXPECT_EQ(text(buffer), pattern(600, 1));
  EXPECT_EQ(text(other), pattern(600, 2));
  EXPECT_EQ(released, 0);
  ASSERT_TRUE(other.prepend(bytes_of(pattern(1000, 3))));
  FaultPlan second;
  second.fail_nth(SystemCall::allocate, 2, ENOMEM);
  {
    FaultScope scope(second);
    EXPECT_FALSE(buffer.append_shared(other));
  }
  EXPECT_EQ(second.failures(SystemCall::allocate), 1u);
  EXPECT_EQ(text(buffer), pattern(600, 1));
}

TEST(Buffer, ReservesSomeRoomWhenAskedForZeroBytes) {
  EXPECT_FALSE(Buffer().reserve(0).empty());
  for (std::size_t size = 1; size < 600; ++size) {
    Buffer buffer;
    EXPECT_TRUE(buffer.append(std::string(size, 'x')));  // One of these sizes fills its block.
    EXPECT_FALSE(buffer.reserve(0).empty());
  }
}

TEST(Buffer, IsLikeNewAfterClear) {
  Buffer buffer;
  EXPECT_TRUE(buffer.append(std::string_view("old")));
  EXPECT_FALSE(buffer.reserve(100).empty());
  buffer.clear();
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_TRUE(buffer.append(std::string_view("new")));
  EXPECT_EQ(buffer.size(), 3u);
  EXPECT_EQ(text_of(buffer.flat(3)), "new");
}

TEST(Buffer, RecycleKeepsBlocksForReservations) {
  Buffer buffer;
  std::vector<const std::byte*> blocks;
  const std::vector<std::size_t> sizes = {70'000, 3'000, 80'000};
  for (const std::size_t size : sizes) {
    blocks.push_back(buffer.reserve(size).data());
    buffer.commit(size);
  }
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope scope(plan);
  for (int round = 0; round < 3; ++round) {
    buffer.consume(100);
    buffer.recycle();
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(text(buffer), "");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::span<std::byte> room = buffer.reserve(sizes[i]);
      ASSERT_GE(room.size(), sizes[i]);
      EXPECT_EQ(room.data(), blocks[i]);
      buffer.commit(sizes[i]);
    }
    EXPECT_EQ(buffer.size(), 153'000u);
    EXPECT_TRUE(buffer.reserve(100'000).empty());
  }
}

TEST(Buffer, RecycleKeepsReservedBlocks) {
  Buffer buffer;
  const std::byte* const block = buffer.reserve(5'000).data();
  buffer.recycle();
  EXPECT_EQ(buffer.reserve(5'000).data(), block);
  buffer.commit(5'000);
  buffer.recycle();
  EXPECT_NE(buffer.reserve(6'000).size(), 0u);
  buffer.recycle();
  buffer.clear();
  EXPECT_TRUE(buffer.empty());
}

TEST(Buffer, RecycleLeavesSharedBlocksAndReleasesReferences) {
  const std::string outside = pattern(600, 3);
  int released = 0;
  Buffer buffer;
  ASSERT_TRUE(buffer.append(pattern(5'000, 1)));
  const std::byte* const block = buffer.front().data();
  Buffer second;
  ASSERT_TRUE(second.append_shared(buffer));
  ASSERT_TRUE(buffer.append_reference(bytes_of(outside), count_release, &released));
  buffer.recycle();
  EXPECT_EQ(released, 1);
  const std::span<std::byte> room = buffer.reserve(600);
  EXPECT_NE(room.data(), block);
  std::ranges::fill(room, std::byte{'!'});
  EXPECT_EQ(text(second), pattern(5'000, 1));
  EXPECT_EQ(outside, pattern(600, 3));
  // The rest of the block is a view now: it has no room.
  second.recycle();
  EXPECT_GE(second.reserve(5'000).size(), 5'000u);
}

TEST(Buffer, RefusesImpossibleReservation) {
  Buffer buffer;
  EXPECT_TRUE(buffer.reserve(SIZE_MAX).empty());
  EXPECT_TRUE(buffer.reserve(SIZE_MAX - 100).empty());
}

// Two buffers and two strings. Each operation on a buffer is repeated on its string.
class BufferModel : public ::testing::TestWithParam<unsigned> {
 protected:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_.below(limit)); }
  static void recycle(Buffer& buffer, std::string& model) {
    buffer.recycle();
    model.clear();
  }

  std::string some_pattern() {
    return pattern(below(below(4) == 0 ? 5000 : 100), unsigned(below(26)));
  }

  void step() {
    const std::size_t which = below(2);
    Buffer& buffer = buffers_[which];
    std::string& model = models_[which];
    const std::string part = some_pattern();
    switch (below(11)) {
      case 0:
        ASSERT_TRUE(buffer.append(part));
        model += part;
        break;
      case 1:
        ASSERT_TRUE(buffer.prepend(bytes_of(part)));
        model = part + model;
        break;
      case 2:
        fill(buffer, model, part);
        break;
      case 3: {
        const std::size_t count = below(model.size() + 1);
        buffer.consume(count);
        model.erase(0, count);
        break;
      }
      case 4:
        move_some(which);
        break;
      case 5:
        refer(buffer, model, part);
        break;
      case 6: {
        const std::size_t count = below(model.size() + 1);
        ASSERT_EQ(text_of(buffer.flat(count)), model.substr(0, count));
        break;
      }
      case 7:
        look(buffer, model, part);
        break;
      case 8:
        share(which);
        break;
      case 9:
        if (below(4) == 0) recycle(buffer, model);
        break;
      default:
        take(buffer, model);
    }
    ASSERT_EQ(buffer.size(), model.size());
    ASSERT_EQ(text(buffer), model);
  }

  void fill(Buffer& buffer, std::string& model, const std::string& part) {
    const std::span<std::byte> room = buffer.reserve(part.size());
    ASSERT_GE(room.size(), part.size());
    std::ranges::copy(bytes_of(part), room.begin());
    const std::size_t used = below(part.size() + 1);
    buffer.commit(used);
    model += part.substr(0, used);
  }
  void move_some(std::size_t which) {
    std::string& from = models_[which];
    std::string& to = models_[1 - which];
    const std::size_t count = below(from.size() + 10);
    ASSERT_TRUE(buffers_[1 - which].append(buffers_[which], count));
    to += from.substr(0, count);
    from.erase(0, count);
  }
  // Appends a part of one buffer to a buffer, and then the bytes after it.
  void share(std::size_t which) {
    const std::size_t size = models_[which].size();
    if (size > 20'000) return;
    const std::size_t to = below(4) == 0 ? which : 1 - which;
    const std::size_t offset = below(3) == 0 ? size : below(size + 1);
    const std::size_t middle = offset + below(size - offset + 1);
    share(which, to, offset, middle - offset);
    share(which, to, middle, below(2) == 0 ? SIZE_MAX : below(size + 10));
  }
  void share(std::size_t which, std::size_t to, std::size_t offset, std::size_t count) {
    ASSERT_TRUE(buffers_[to].append_shared(buffers_[which], offset, count));
    models_[to] += std::string(models_[which], offset, count);
  }
  void refer(Buffer& buffer, std::string& model, const std::string& part) {
    auto* outside = new std::string(part);
    ASSERT_TRUE(buffer.append_reference(
        bytes_of(*outside), [](void* text) { delete static_cast<std::string*>(text); }, outside));
    model += part;
  }
  void look(const Buffer& buffer, const std::string& model, const std::string& part) {
    const std::string wanted = part.substr(0, 3);
    const std::size_t from = below(model.size() + 1);
    const std::size_t at = model.find(wanted, from);
    const std::optional<std::size_t> found = buffer.find(wanted, from);
    ASSERT_EQ(found ? *found : std::string::npos, at);
    if (!model.empty()) {
      const std::size_t offset = below(model.size());
      ASSERT_EQ(static_cast<char>(buffer.at(offset)), model[offset]);
    }
  }
  void take(Buffer& buffer, std::string& model) {
    std::vector<std::byte> target(below(2000));
    const std::size_t count = buffer.read(target);
    ASSERT_EQ(count, std::min(target.size(), model.size()));
    ASSERT_EQ(text_of(Bytes(target.data(), count)), model.substr(0, count));
    model.erase(0, count);
  }

  testing::Random random_{GetParam()};
  Buffer buffers_[2];
  std::string models_[2];
};

TEST_P(BufferModel, AgreesWithString) {
  for (int i = 0; i < 2000 && !HasFatalFailure(); ++i) step();
}

INSTANTIATE_TEST_SUITE_P(Seeds, BufferModel, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace spate
