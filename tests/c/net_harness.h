// Shared by the tests of spate_net.h: a loop, a pair of streams, and records of their events.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "spate_net.h"
#include "tests/c/c_loop.h"

namespace spate::testing {

// The events of a stream, recorded. The stream's data points to it, for the functions of its table.
struct Heard {
  std::string bytes;
  std::string log;
  int error = 1;
  std::function<std::size_t(spate_stream*, std::size_t)> on_data;

  static Heard& of(const spate_stream* stream) {
    return *static_cast<Heard*>(spate_stream_data(stream));
  }
};

inline const spate_stream_callbacks kNotes = {
    sizeof(spate_stream_callbacks),
    [](spate_stream* stream, const void* bytes, std::size_t size) {
      Heard& heard = Heard::of(stream);
      heard.bytes.append(static_cast<const char*>(bytes), size);
      const auto then = heard.on_data;
      return then ? then(stream, size) : size;
    },
    [](spate_stream* stream) { Heard::of(stream).log += "end "; },
    [](spate_stream* stream) { Heard::of(stream).log += "connected "; },
    [](spate_stream* stream) { Heard::of(stream).log += "drained "; },
    [](spate_stream* stream, int error) {
      Heard::of(stream).log += "closed ";
      Heard::of(stream).error = error;
    }};

class CNetTest : public ::testing::Test {
 protected:
  ~CNetTest() override {
    spate_stream_destroy(near_);
    spate_stream_destroy(far_);
  }
  void pair() {
    ASSERT_EQ(spate_stream_pair(&near_, &far_, loop_.get()), 0);
    EXPECT_EQ(spate_stream_start(near_, &kNotes, &near_heard_), 0);
    EXPECT_EQ(spate_stream_start(far_, &kNotes, &far_heard_), 0);
  }
  int write(spate_stream* stream, std::string_view text) {
    return spate_stream_write(stream, text.data(), text.size());
  }
  void run() { EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0); }
  static spate_address address(const char* text) {
    spate_address parsed;
    EXPECT_EQ(spate_address_parse(&parsed, text), 0);
    return parsed;
  }

  CLoop loop_;
  spate_stream* near_ = nullptr;
  spate_stream* far_ = nullptr;
  Heard near_heard_;
  Heard far_heard_;
};

}  // namespace spate::testing
