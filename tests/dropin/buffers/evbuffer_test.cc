// evbuffers: random programs (evbuffer_model.h), and cases that the headers do not mention, such as
// buffers that are freed in their own callbacks.
#include <event2/buffer.h>
#include <event2/event.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <string>

#include "evbuffer_model.h"

extern "C" {  // This header lacks extern "C".
#include <event2/buffer_compat.h>
}

namespace spate::dropin {
namespace {

// ---- random programs

class RandomWorld {
 public:
  explicit RandomWorld(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  bool is_over() const { return testing::Test::HasFailure(); }
  void check(bool holds, const char* what) { EXPECT_TRUE(holds) << what; }

 private:
  std::mt19937 random_;
};

TEST(EvBuffer, AgreesWithStringOverRandomOperations) {
  for (unsigned seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld world(seed);
    EvbufferModel<RandomWorld>(world).run(120);
  }
}

// ---- cases that the headers do not mention

TEST(EvBuffer, MayBeFreedInItsOwnCallback) {
  evbuffer* buffer = evbuffer_new();
  int calls = 0;
  evbuffer_add_cb(
      buffer, [](evbuffer*, const evbuffer_cb_info*, void* count) { ++*static_cast<int*>(count); },
      &calls);
  evbuffer_add_cb(
      buffer, [](evbuffer* self, const evbuffer_cb_info*, void*) { evbuffer_free(self); }, nullptr);
  EXPECT_EQ(evbuffer_add(buffer, "x", 1), 0);
  EXPECT_EQ(calls, 1);
}

TEST(EvBuffer, AllowsCallbackToRemoveOthers) {
  Buffer buffer = make();
  int calls = 0;
  const evbuffer_cb_func count = [](evbuffer*, const evbuffer_cb_info*, void* calls_made) {
    ++*static_cast<int*>(calls_made);
  };
  evbuffer_add_cb(buffer.get(), count, &calls);
  evbuffer_add_cb(
      buffer.get(),
      [](evbuffer* self, const evbuffer_cb_info*, void*) {
        evbuffer_setcb(self, nullptr, nullptr);
      },
      nullptr);
  evbuffer_add_cb(buffer.get(), count, &calls);
  evbuffer_add(buffer.get(), "x", 1);
  EXPECT_EQ(calls, 1);
  evbuffer_add(buffer.get(), "x", 1);
  EXPECT_EQ(calls, 1);
}

TEST(EvBuffer, ReleasesMemoryInConsistentState) {
  Buffer buffer = make();
  struct Seen {
    evbuffer* buffer;
    std::string text;
  } seen{buffer.get(), {}};
  evbuffer_add_reference(
      buffer.get(), "lent", 4,
      [](const void*, std::size_t, void* context) {
        auto* at_return = static_cast<Seen*>(context);
        at_return->text = contents(at_return->buffer);
        evbuffer_add(at_return->buffer, "!", 1);
      },
      &seen);
  evbuffer_add(buffer.get(), "own", 3);
  evbuffer_drain(buffer.get(), 5);
  EXPECT_EQ(seen.text, "wn");
  EXPECT_EQ(contents(buffer.get()), "wn!");
}

TEST(EvBuffer, FindsNothingBeyondEnd) {
  Buffer buffer = make("some text");
  evbuffer_ptr place;
  ASSERT_EQ(evbuffer_ptr_set(buffer.get(), &place, 9, EVBUFFER_PTR_SET), 0);
  evbuffer_drain(buffer.get(), 5);
  char byte;
  EXPECT_EQ(evbuffer_copyout_from(buffer.get(), &place, &byte, 1), -1);
  EXPECT_EQ(evbuffer_search(buffer.get(), "t", 1, &place).pos, -1);
  EXPECT_EQ(evbuffer_search_eol(buffer.get(), &place, nullptr, EVBUFFER_EOL_ANY).pos, -1);
  EXPECT_EQ(evbuffer_peek(buffer.get(), -1, &place, nullptr, 0), 0);
}

TEST(EvBuffer, ReadsPartOfQueuedFile) {
  Buffer buffer = make();
  evbuffer_set_flags(buffer.get(), EVBUFFER_FLAG_DRAINS_TO_FD);
  evbuffer_add_file(buffer.get(), make_file("0123456789"), 2, 6);
  Buffer moved = make();
  EXPECT_EQ(evbuffer_remove_buffer(buffer.get(), moved.get(), 2), 2);
  EXPECT_EQ(contents(moved.get()), "23");
  EXPECT_EQ(evbuffer_search(buffer.get(), "67", 2, nullptr).pos, 2);
  EXPECT_EQ(contents(buffer.get()), "4567");
}

TEST(EvBuffer, FailsToReadTruncatedFile) {
  Buffer buffer = make();
  evbuffer_set_flags(buffer.get(), EVBUFFER_FLAG_DRAINS_TO_FD);
  const int file = make_file("0123456789");
  evbuffer_add_file(buffer.get(), ::dup(file), 2, 6);
  event_set_log_callback([](int, const char*) {});
  ASSERT_EQ(::ftruncate(file, 4), 0);
  char byte;
  EXPECT_EQ(evbuffer_copyout(buffer.get(), &byte, 1), -1);
  EXPECT_EQ(evbuffer_pullup(buffer.get(), -1), nullptr);
  EXPECT_EQ(evbuffer_remove(buffer.get(), &byte, 1), -1);
  EXPECT_EQ(evbuffer_get_length(buffer.get()), 6U);
  event_set_log_callback(nullptr);
  ::close(file);
}

TEST(EvBuffer, KeepsSegmentAfterInvalidRange) {
  const int file = make_file("0123456789");
  evbuffer_file_segment* segment = evbuffer_file_segment_new(file, 0, 10, EVBUF_FS_CLOSE_ON_FREE);
  Buffer buffer = make();
  EXPECT_EQ(evbuffer_add_file_segment(buffer.get(), segment, 5, 6), -1);
  EXPECT_EQ(evbuffer_add_file_segment(buffer.get(), segment, -1, 1), -1);
  EXPECT_EQ(evbuffer_add_file_segment(buffer.get(), segment, 5, 5), 0);
  evbuffer_file_segment_free(segment);
  EXPECT_EQ(contents(buffer.get()), "56789");
}

TEST(EvBuffer, RefusesToGrowBeyondMaximumLength) {
  Buffer buffer = make("x");
  const char byte = 0;
  EXPECT_EQ(evbuffer_add_reference(buffer.get(), &byte, SIZE_MAX, nullptr, nullptr), -1);
  EXPECT_EQ(evbuffer_add_reference(buffer.get(), &byte, EV_SSIZE_MAX - 1, nullptr, nullptr), 0);
  EXPECT_EQ(evbuffer_add(buffer.get(), &byte, 1), -1);
  EXPECT_EQ(evbuffer_prepend(buffer.get(), &byte, 1), -1);
  EXPECT_EQ(evbuffer_add_printf(buffer.get(), "x"), -1);
  EXPECT_EQ(evbuffer_expand(buffer.get(), 1), -1);
  EXPECT_EQ(evbuffer_get_length(buffer.get()), static_cast<std::size_t>(EV_SSIZE_MAX));
}

}  // namespace
}  // namespace spate::dropin
