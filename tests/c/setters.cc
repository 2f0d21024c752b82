// Setters of C that refuse a value: the object is as it was before, and so is its next event.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "spate_net.h"
#include "tests/c/c_loop.h"

namespace spate::testing {
namespace {

struct Refusal {
  const char* value;
  int expected;
  std::function<int()> set;
};

// The calls of a watcher, which are its data.
struct Calls {
  int count = 0;
  std::uint32_t events = 0;
};

// A callback for watchers of any kind.
template <class Watcher>
void note(spate_loop*, Watcher* watcher, std::uint32_t events) {
  Calls& calls = *static_cast<Calls*>(watcher->watcher.data);
  ++calls.count;
  calls.events |= events;
}

class CSetterTest : public ::testing::Test {
 protected:
  int run(spate_run_mode mode) { return spate_loop_run(loop_.get(), mode); }
  // Sets the values while the watcher is inactive, active, and has a queued event.
  void refuse_all(spate_watcher* watcher, const std::vector<Refusal>& refusals) {
    refuse(refusals);
    EXPECT_EQ(spate_is_active(watcher), 0);
    ASSERT_EQ(spate_start(watcher), 0);
    EXPECT_EQ(spate_feed(watcher, SPATE_CUSTOM), 0);
    refuse(refusals);
    EXPECT_EQ(spate_is_pending(watcher), 1);
    EXPECT_EQ(run(SPATE_RUN_NO_WAIT), 0);
    EXPECT_EQ(calls_.count, 1);
    EXPECT_EQ(calls_.events, SPATE_CUSTOM);
    refuse(refusals);
    EXPECT_EQ(spate_is_active(watcher), 1);
    calls_ = {};
  }
  void expect_one(std::uint32_t events) {
    run_until([this] { return calls_.count > 0; });
    EXPECT_EQ(calls_.count, 1);
    EXPECT_EQ(calls_.events, events);
  }
  // Runs the loop until `done`, or fails after a time by which an event must have been lost.
  void run_until(const std::function<bool()>& done) {
    const auto lost = [](void*) { ADD_FAILURE() << "no event"; };
    EXPECT_EQ(spate_after(loop_.get(), 30'000 * kMillisecond, lost, nullptr), 0);
    while (!done() && !HasFailure()) EXPECT_EQ(run(SPATE_RUN_ONCE), 0);
  }

  CLoop loop_;
  Calls calls_;

 private:
  static void refuse(const std::vector<Refusal>& refusals) {
    for (const Refusal& refusal : refusals)
      EXPECT_EQ(refusal.set(), refusal.expected) << refusal.value;
  }
};

TEST_F(CSetterTest, IoIsUnchangedByRefusedValue) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  spate_io io;
  spate_io_init(&io, loop_.get(), note<spate_io>, &calls_);
  EXPECT_EQ(spate_io_set(&io, ends[0], SPATE_READ), 0);
  refuse_all(&io.watcher,
             {{"no descriptor", -EINVAL, [&] { return spate_io_set(&io, -1, SPATE_READ); }},
              {"the lowest", -EINVAL, [&] { return spate_io_set(&io, INT_MIN, SPATE_WRITE); }},
              {"a timer", -EINVAL, [&] { return spate_io_set(&io, ends[1], SPATE_TIMER); }},
              {"all bits", -EINVAL, [&] { return spate_io_set(&io, ends[1], UINT32_MAX); }},
              {"a timer, modified", -EINVAL, [&] { return spate_io_modify(&io, SPATE_TIMER); }},
              {"all, modified", -EINVAL, [&] { return spate_io_modify(&io, UINT32_MAX); }}});
  EXPECT_EQ(spate_io_fd(&io), ends[0]);
  EXPECT_EQ(spate_io_events(&io), SPATE_READ);
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  expect_one(SPATE_READ);
  spate_io_stop(&io);
  for (const int fd : ends) ::close(fd);
}

TEST_F(CSetterTest, PeriodicIsUnchangedByRefusedValue) {
  const auto never = [](spate_periodic*, std::int64_t now) { return now + (INT64_C(1) << 60); };
  spate_periodic periodic;
  spate_periodic_init(&periodic, loop_.get(), note<spate_periodic>, &calls_);
  const std::int64_t at = spate_loop_wall_now(loop_.get()) + 3'600'000 * kMillisecond;
  EXPECT_EQ(spate_periodic_set(&periodic, at, 0, nullptr), 0);
  refuse_all(
      &periodic.watcher,
      {{"negative", -EINVAL, [&] { return spate_periodic_set(&periodic, 0, -1, nullptr); }},
       {"the lowest", -EINVAL,
        [&] { return spate_periodic_set(&periodic, 0, INT64_MIN, nullptr); }},
       {"with a function", -EINVAL, [&] { return spate_periodic_set(&periodic, 0, -1, never); }}});
  EXPECT_EQ(spate_periodic_at(&periodic), at);
  spate_periodic_stop(&periodic);
}

TEST_F(CSetterTest, SignalIsUnchangedByRefusedValue) {
  spate_signal signal;
  spate_signal_init(&signal, loop_.get(), note<spate_signal>, &calls_);
  EXPECT_EQ(spate_signal_set(&signal, SIGUSR2), 0);
  std::vector<Refusal> refusals;
  for (const int wrong : {INT_MIN, -1, 0, SIGKILL, SIGSTOP, 65, 1000, INT_MAX})
    refusals.push_back(
        {"a signal", -EINVAL, [&, wrong] { return spate_signal_set(&signal, wrong); }});
  refuse_all(&signal.watcher, refusals);
  EXPECT_EQ(spate_signal_signum(&signal), SIGUSR2);
  ::raise(SIGUSR2);
  expect_one(SPATE_SIGNAL);
  spate_signal_stop(&signal);
}

TEST_F(CSetterTest, ChildIsUnchangedByRefusedValue) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    char byte;
    ::_exit(::read(ends[0], &byte, 1) == 1 ? 7 : 1);
  }
  ASSERT_GT(pid, 0);
  spate_child child;
  spate_child_init(&child, loop_.get(), note<spate_child>, &calls_);
  EXPECT_EQ(spate_child_set(&child, pid, 0), 0);
  refuse_all(&child.watcher,
             {{"any", -EINVAL, [&] { return spate_child_set(&child, 0, 0); }},
              {"any of any group", -EINVAL, [&] { return spate_child_set(&child, -1, 1); }},
              {"a group", -EINVAL, [&] { return spate_child_set(&child, -pid, 1); }},
              {"the lowest", -EINVAL, [&] { return spate_child_set(&child, INT_MIN, 0); }}});
  EXPECT_EQ(spate_child_pid(&child), pid);
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  expect_one(SPATE_CHILD);
  EXPECT_EQ(spate_child_status(&child), 7 << 8);
  for (const int fd : ends) ::close(fd);
}

TEST_F(CSetterTest, StatIsUnchangedByRefusedValue) {
  const std::string path = "spate_c_setters_" + std::to_string(::getpid());
  std::ofstream(path) << "before";
  const std::string long_path(5000, 'x');
  spate_stat stat;
  spate_stat_init(&stat, loop_.get(), note<spate_stat>, &calls_);
  EXPECT_EQ(spate_stat_set(&stat, path.c_str(), 1'000 * kMillisecond), 0);
  const std::int64_t interval = spate_stat_interval(&stat);
  refuse_all(&stat.watcher,
             {{"no path", -EINVAL, [&] { return spate_stat_set(&stat, nullptr, 1); }},
              {"an empty path", -EINVAL, [&] { return spate_stat_set(&stat, "", 1); }},
              {"a long path", -ENAMETOOLONG,
               [&] { return spate_stat_set(&stat, long_path.c_str(), 1); }}});
  EXPECT_EQ(spate_stat_path(&stat), path.c_str());
  EXPECT_EQ(spate_stat_interval(&stat), interval);
  std::ofstream(path) << "another size";
  expect_one(SPATE_STAT);
  spate_stat_stop(&stat);
  std::filesystem::remove(path);
}

// ---- streams and datagrams

struct Seen {
  std::string bytes;
  int closed = 0;
};

const spate_stream_callbacks kSee = {
    sizeof(spate_stream_callbacks),
    [](spate_stream* stream, const void* bytes, std::size_t size) {
      static_cast<Seen*>(spate_stream_data(stream))
          ->bytes.append(static_cast<const char*>(bytes), size);
      return size;
    },
    nullptr,
    nullptr,
    nullptr,
    [](spate_stream* stream, int) { ++static_cast<Seen*>(spate_stream_data(stream))->closed; }};

class CStreamSetterTest : public CSetterTest {
 protected:
  CStreamSetterTest() {
    EXPECT_EQ(spate_stream_pair(&near_, &far_, loop_.get()), 0);
    EXPECT_EQ(spate_stream_start(far_, &kSee, &seen_), 0);
  }
  ~CStreamSetterTest() override {
    spate_stream_destroy(near_);
    spate_stream_destroy(far_);
  }
  int write(std::string_view text) { return spate_stream_write(near_, text.data(), text.size()); }

  spate_stream* near_ = nullptr;
  spate_stream* far_ = nullptr;
  Seen seen_;
};

TEST_F(CStreamSetterTest, LimitsAreUnchangedByRefusedOnes) {
  const spate_queue_limits limits = {1000, 2000, 3000, 4000};
  ASSERT_EQ(spate_stream_set_limits(near_, &limits), 0);
  const spate_queue_limits wrong[] = {
      {3001, 2000, 100'000, 1}, {1, 100'001, 100'000, 1}, {SIZE_MAX, 0, SIZE_MAX, 0}};
  for (const spate_queue_limits& refused : wrong)
    EXPECT_EQ(spate_stream_set_limits(near_, &refused), -EINVAL);
  EXPECT_EQ(spate_stream_set_limits(near_, nullptr), -EINVAL);
  EXPECT_EQ(write(std::string(3000, 'x')), 0);
  run_until([this] { return seen_.bytes.size() >= 3000; });
  EXPECT_EQ(seen_.bytes, std::string(3000, 'x'));
  EXPECT_EQ(write(std::string(3001, 'x')), SPATE_E_QUEUE_FULL);
}

TEST_F(CStreamSetterTest, CallbacksAreUnchangedByRefusedOnes) {
  Seen other;
  for (const std::size_t size : {std::size_t{0}, sizeof(spate_stream_callbacks) - 1}) {
    spate_stream_callbacks older = kSee;
    older.size = size;
    EXPECT_EQ(spate_stream_start(far_, &older, &other), -EINVAL) << size;
  }
  EXPECT_EQ(spate_stream_start(far_, nullptr, &other), -EINVAL);
  EXPECT_EQ(spate_stream_data(far_), &seen_);
  EXPECT_EQ(write("text"), 0);
  spate_stream_end(near_);
  run_until([this] { return seen_.closed > 0; });
  EXPECT_EQ(seen_.bytes, "text");
  EXPECT_EQ(other.bytes, "");
  EXPECT_EQ(other.closed, 0);
}

const spate_datagram_callbacks kSeePackets = {
    sizeof(spate_datagram_callbacks),
    [](spate_datagram* datagram, const spate_packet* packet) {
      static_cast<Seen*>(spate_datagram_data(datagram))
          ->bytes.append(static_cast<const char*>(packet->bytes), packet->size);
    },
    nullptr, nullptr};

TEST_F(CSetterTest, DatagramIsUnchangedByRefusedValues) {
  spate_address any;
  ASSERT_EQ(spate_address_parse(&any, "127.0.0.1:0"), 0);
  spate_datagram* socket = nullptr;
  spate_datagram* sender = nullptr;
  ASSERT_EQ(spate_datagram_create(&socket, loop_.get(), &any, 0), 0);
  ASSERT_EQ(spate_datagram_create(&sender, loop_.get(), &any, 0), 0);
  Seen seen;
  Seen other;
  EXPECT_EQ(spate_datagram_start(socket, &kSeePackets, &seen), 0);
  spate_address to_itself;
  spate_datagram_local_address(socket, &to_itself);
  spate_datagram_callbacks older = kSeePackets;
  older.size = sizeof(older) - 1;
  EXPECT_EQ(spate_datagram_start(socket, &older, &other), -EINVAL);
  EXPECT_EQ(spate_datagram_start(socket, nullptr, &other), -EINVAL);
  EXPECT_EQ(spate_datagram_connect(socket, nullptr), -EINVAL);
  spate_address ipv6;
  ASSERT_EQ(spate_address_parse(&ipv6, "[::1]:9"), 0);
  EXPECT_LT(spate_datagram_connect(socket, &ipv6), 0);
  EXPECT_EQ(spate_datagram_send(sender, "text", 4, &to_itself), 0);
  run_until([&seen] { return !seen.bytes.empty(); });
  EXPECT_EQ(seen.bytes, "text");
  EXPECT_EQ(other.bytes, "");
  spate_datagram_destroy(socket);
  spate_datagram_destroy(sender);
}

}  // namespace
}  // namespace spate::testing
