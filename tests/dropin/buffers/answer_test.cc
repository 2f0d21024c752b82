// Data that a read callback writes is sent when the callback has returned, without another turn of
// the loop, unless the program could notice, or has delayed the data.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <gtest/gtest.h>

#include <string>

#include "../threads/running_base.h"

namespace spate::dropin {
namespace {

void write_answer(bufferevent* bev) { bufferevent_write(bev, "answer", 6); }

// A bufferevent that receives one request, and calls `answer` then.
class Asked {
 public:
  explicit Asked(void (*answer)(bufferevent*)) : answer_(answer) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
    bev_ = bufferevent_socket_new(base_.get(), ends_[0], 0);
    bufferevent_setcb(bev_, on_read, nullptr, on_event, this);
    bufferevent_enable(bev_, EV_READ);
    turn();  // The output is empty: no writing is pending any more.
    EXPECT_EQ(::write(ends_[1], "question", 8), 8);
  }
  ~Asked() {
    if (!is_freed_) bufferevent_free(bev_);
    event_base_loop(base_.get(), EVLOOP_NONBLOCK);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  bufferevent* bev() const { return bev_; }
  short events() const { return events_; }
  void set_freed() { is_freed_ = true; }
  void turn() { event_base_loop(base_.get(), EVLOOP_ONCE | EVLOOP_NONBLOCK); }
  void close_peer() { ::shutdown(ends_[1], SHUT_RDWR); }

  // Returns how much the peer has received.
  std::size_t arrived() {
    std::array<char, 65536> bytes;
    ssize_t got = 0;
    while ((got = ::read(ends_[1], bytes.data(), bytes.size())) > 0) {
      total_ += static_cast<std::size_t>(got);
    }
    return total_;
  }

 private:
  static void on_read(bufferevent* bev, void* context) {
    evbuffer* input = bufferevent_get_input(bev);
    evbuffer_drain(input, evbuffer_get_length(input));
    static_cast<Asked*>(context)->answer_(bev);
  }
  static void on_event(bufferevent*, short what, void* context) {
    static_cast<Asked*>(context)->events_ = what;
  }

  Base base_{event_base_new()};
  std::array<int, 2> ends_{};
  bufferevent* bev_;
  void (*answer_)(bufferevent*);
  std::size_t total_ = 0;
  short events_ = 0;
  bool is_freed_ = false;
};

void expect_in_second_turn(Asked& asked) {
  asked.turn();
  EXPECT_EQ(asked.arrived(), 0U);
  asked.turn();
  EXPECT_EQ(asked.arrived(), 6U);
}

TEST(BuffereventReply, IsSentWhenReadCallbackReturns) {
  Asked asked(write_answer);
  asked.turn();
  EXPECT_EQ(asked.arrived(), 6U);
  EXPECT_EQ(event_base_get_num_events(bufferevent_get_base(asked.bev()), EVENT_BASE_COUNT_ADDED),
            1);  // Nothing waits to write.
}

TEST(BuffereventReply, IsSentByLoopWhenWriteCallbackIsSet) {
  Asked asked(write_answer);
  bufferevent_data_cb on_read = nullptr;
  bufferevent_event_cb on_event = nullptr;
  void* context = nullptr;
  bufferevent_getcb(asked.bev(), &on_read, nullptr, &on_event, &context);
  bufferevent_setcb(asked.bev(), on_read, [](bufferevent*, void*) {}, on_event, context);
  expect_in_second_turn(asked);
}

TEST(BuffereventReply, IsSentByLoopWhenOutputHasCallback) {
  Asked asked(write_answer);
  evbuffer_add_cb(
      bufferevent_get_output(asked.bev()), [](evbuffer*, const evbuffer_cb_info*, void*) {},
      nullptr);
  expect_in_second_turn(asked);
}

TEST(BuffereventReply, IsSentByLoopWhenRateLimited) {
  Asked asked(write_answer);
  ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(100, 100, 100, 100, nullptr);
  bufferevent_set_rate_limit(asked.bev(), rates);
  expect_in_second_turn(asked);
  bufferevent_set_rate_limit(asked.bev(), nullptr);
  ev_token_bucket_cfg_free(rates);
}

TEST(BuffereventReply, IsHeldWhileWritingIsDisabled) {
  Asked asked([](bufferevent* bev) {
    write_answer(bev);
    bufferevent_disable(bev, EV_WRITE);
  });
  asked.turn();
  asked.turn();
  EXPECT_EQ(asked.arrived(), 0U);
  bufferevent_enable(asked.bev(), EV_WRITE);
  asked.turn();
  EXPECT_EQ(asked.arrived(), 6U);
}

TEST(BuffereventReply, IsDroppedWhenCallbackFreesBufferevent) {
  Asked asked([](bufferevent* bev) {
    write_answer(bev);
    bufferevent_free(bev);
  });
  asked.set_freed();
  asked.turn();
  asked.turn();
  EXPECT_EQ(asked.arrived(), 0U);
}

TEST(BuffereventReply, IsFinishedByLoopAfterPartialWrite) {
  static const std::string large(4'000'000, 'x');
  Asked asked([](bufferevent* bev) { bufferevent_write(bev, large.data(), large.size()); });
  bufferevent_set_max_single_write(asked.bev(), large.size());
  asked.turn();
  const std::size_t at_once = asked.arrived();
  EXPECT_GT(at_once, 0U);
  EXPECT_LT(at_once, large.size());
  for (int turns = 0; turns < 10'000 && asked.arrived() < large.size(); ++turns) asked.turn();
  EXPECT_EQ(asked.arrived(), large.size());
}

TEST(BuffereventReply, FailureIsReportedByLoop) {
  ::signal(SIGPIPE, SIG_IGN);
  Asked asked([](bufferevent* bev) {
    bufferevent_disable(bev, EV_READ);
    write_answer(bev);
  });
  asked.close_peer();
  asked.turn();
  EXPECT_EQ(asked.events(), 0);
  asked.turn();
  EXPECT_EQ(asked.events(), BEV_EVENT_ERROR | BEV_EVENT_WRITING);
}

}  // namespace
}  // namespace spate::dropin
