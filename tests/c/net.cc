// spate_net.h: streams, listeners and names in C.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "c/loop.h"
#include "spate/net/listener.h"
#include "spate/net/resolver.h"
#include "spate_net.h"
#include "support/listening_sockets.h"
#include "tests/c/net_harness.h"
#include "tests/support/descriptors.h"
#include "tests/support/name_server.h"

namespace spate::testing {
namespace {

using namespace std::literals;

// ---- addresses

TEST_F(CNetTest, AddressIsParsedFormattedAndConverted) {
  const spate_address parsed = address("[2001:db8::1]:80");
  char text[128];
  EXPECT_STREQ(spate_address_text(&parsed, text, sizeof(text)), "[2001:db8::1]:80");
  EXPECT_EQ(spate_address_port(&parsed), 80);
  std::size_t size = 0;
  const void* const system = spate_address_system(&parsed, &size);
  EXPECT_EQ(size, sizeof(sockaddr_in6));
  spate_address back;
  EXPECT_EQ(spate_address_from_system(&back, system, size), 0);
  EXPECT_STREQ(spate_address_text(&back, text, sizeof(text)), "[2001:db8::1]:80");
  EXPECT_EQ(spate_address_parse_listen(&back, "7000"), 0);
  EXPECT_STREQ(spate_address_text(&back, text, 5), "[::]");
}

TEST_F(CNetTest, InvalidAddressIsError) {
  spate_address parsed;
  EXPECT_EQ(spate_address_parse(&parsed, "nowhere"), -EINVAL);
  EXPECT_EQ(spate_address_parse(&parsed, "1.2.3.4:70000"), -ERANGE);
  EXPECT_EQ(spate_address_from_system(&parsed, "", 1), -EINVAL);
}

// ---- streams

TEST_F(CNetTest, BytesAndEofArrive) {
  pair();
  EXPECT_EQ(write(near_, "hello"), 0);
  spate_stream_end(near_);
  run();
  EXPECT_EQ(far_heard_.bytes, "hello");
  EXPECT_EQ(far_heard_.log, "end closed ");
  EXPECT_EQ(far_heard_.error, 0);
  EXPECT_EQ(write(near_, "more"), -EPIPE);
  EXPECT_EQ(spate_stream_is_open(far_), 0);
}

TEST_F(CNetTest, UnusedBytesAreDeliveredAgain) {
  pair();
  far_heard_.on_data = [&](spate_stream*, std::size_t size) { return size < 10 ? 0 : size; };
  EXPECT_EQ(write(near_, "hello"), 0);
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_ONCE), 0);
  EXPECT_EQ(spate_stream_want(far_, 10), 0);
  EXPECT_EQ(write(near_, "world"), 0);
  spate_stream_end(near_);
  run();
  EXPECT_EQ(far_heard_.bytes, "hellohelloworld");
}

TEST_F(CNetTest, InputIsDiscardedWithoutCallbacks) {
  const spate_stream_callbacks none = {sizeof(none), nullptr, nullptr, nullptr, nullptr, nullptr};
  ASSERT_EQ(spate_stream_pair(&near_, &far_, loop_.get()), 0);
  EXPECT_EQ(spate_stream_start(near_, &none, nullptr), 0);
  EXPECT_EQ(spate_stream_start(far_, &none, nullptr), 0);
  EXPECT_EQ(write(near_, "hello"), 0);
  spate_stream_end(near_);
  run();
}

TEST_F(CNetTest, DestroyedStreamReceivesNoFurtherCallbacks) {
  pair();
  far_heard_.on_data = [&](spate_stream* stream, std::size_t size) {
    spate_stream_destroy(stream);
    far_ = nullptr;
    return size;
  };
  EXPECT_EQ(write(near_, "hello"), 0);
  run();
  EXPECT_EQ(far_heard_.log, "");
  EXPECT_EQ(near_heard_.log, "end closed ");
}

TEST_F(CNetTest, FullQueueIsReported) {
  pair();
  spate_queue_limits limits = {4096, 8192, 16'384, 1000};
  EXPECT_EQ(spate_stream_set_limits(near_, &limits), 0);
  limits.high = 1;
  EXPECT_EQ(spate_stream_set_limits(near_, &limits), -EINVAL);
  spate_stream_pause(far_);
  int error = 0;
  while (error == 0) error = write(near_, std::string(4096, 'x'));
  EXPECT_EQ(error, SPATE_E_QUEUE_FULL);
}

TEST_F(CNetTest, DrainedQueueIsReported) {
  pair();
  spate_stream_pause(far_);
  while (spate_stream_is_full(near_) == 0) ASSERT_EQ(write(near_, std::string(65'536, 'x')), 0);
  EXPECT_GT(spate_stream_queued(near_), 0u);
  spate_stream_resume(far_);
  spate_stream_end(near_);
  run();
  EXPECT_EQ(near_heard_.log, "drained end closed ");
}

TEST_F(CNetTest, DeadlineClosesStream) {
  pair();
  EXPECT_EQ(spate_stream_set_deadline(near_, kMillisecond), 0);
  EXPECT_EQ(spate_stream_set_idle_timeout(far_, 0), 0);
  EXPECT_EQ(spate_stream_set_read_timeout(far_, 0), 0);
  EXPECT_EQ(spate_stream_set_write_timeout(far_, 0), 0);
  run();
  EXPECT_EQ(near_heard_.error, SPATE_E_DEADLINE);
  EXPECT_EQ(spate_stream_set_deadline(near_, 1), 0);
}

TEST_F(CNetTest, DescriptorIsAdoptedAndReleased) {
  int ends[2];
  ASSERT_TRUE(open_socket_pair(ends));
  ASSERT_EQ(spate_stream_adopt(&near_, loop_.get(), ends[0]), 0);
  EXPECT_EQ(spate_stream_fd(near_), ends[0]);
  EXPECT_EQ(spate_stream_loop(near_), loop_.get());
  EXPECT_EQ(spate_stream_release(near_), ends[0]);
  EXPECT_EQ(spate_stream_release(near_), -EBADF);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(spate_stream_adopt(&far_, loop_.get(), -1), -EBADF);
  EXPECT_EQ(far_, nullptr);
}

TEST_F(CNetTest, TablesOfAnotherVersionAreRefused) {
  ASSERT_EQ(spate_stream_pair(&near_, &far_, loop_.get()), 0);
  spate_stream_callbacks older = kNotes;
  older.size = sizeof(older) - 1;
  EXPECT_EQ(spate_stream_start(near_, &older, nullptr), -EINVAL);
  EXPECT_EQ(spate_stream_start(near_, nullptr, nullptr), -EINVAL);
  struct {
    spate_stream_callbacks known;
    void (*unknown)();
  } newer = {kNotes, [] {}};
  newer.known.size = sizeof(newer);
  EXPECT_EQ(spate_stream_start(near_, &newer.known, nullptr), -EINVAL);
  newer.unknown = nullptr;
  EXPECT_EQ(spate_stream_start(near_, &newer.known, &near_heard_), 0);
}

TEST_F(CNetTest, NullIsRefused) {
  spate_address none;
  EXPECT_EQ(spate_address_parse(&none, nullptr), -EINVAL);
  EXPECT_EQ(spate_address_parse_listen(&none, nullptr), -EINVAL);
  EXPECT_EQ(spate_address_from_system(&none, nullptr, 16), -EINVAL);
  spate_stream* stream = nullptr;
  EXPECT_EQ(spate_stream_connect(&stream, loop_.get(), nullptr, 80, &kNotes, nullptr, nullptr),
            -EINVAL);
  EXPECT_EQ(spate_stream_connect_to(&stream, loop_.get(), nullptr, &kNotes, nullptr, nullptr),
            -EINVAL);
  EXPECT_EQ(stream, nullptr);
  ASSERT_EQ(spate_stream_pair(&near_, &far_, loop_.get()), 0);
  EXPECT_EQ(spate_stream_set_limits(near_, nullptr), -EINVAL);
  spate_listener* listener = nullptr;
  const auto ignore = [](spate_listener*, spate_stream* accepted, const spate_address*) {
    spate_stream_destroy(accepted);
  };
  EXPECT_EQ(spate_listen(&listener, loop_.get(), nullptr, ignore, nullptr, nullptr), -EINVAL);
  spate_datagram* datagram = nullptr;
  EXPECT_EQ(spate_datagram_create(&datagram, loop_.get(), nullptr, 0), -EINVAL);
  spate_resolving* resolving = nullptr;
  const auto resolved = [](spate_resolving*, int, const spate_address*, std::size_t) {};
  EXPECT_EQ(spate_resolve(&resolving, loop_.get(), nullptr, 1, 0, resolved, nullptr), -EINVAL);
  EXPECT_EQ(spate_resolve(&resolving, loop_.get(), "localhost", 1, 0, nullptr, nullptr), -EINVAL);
  EXPECT_EQ(resolving, nullptr);
  spate_stat stat;
  spate_stat_init(&stat, loop_.get(), nullptr, 0);
  EXPECT_EQ(spate_stat_start(&stat), -EINVAL);
}

TEST_F(CNetTest, StreamReportsEofWhenStartedAfterIt) {
  int ends[2];
  ASSERT_TRUE(open_socket_pair(ends));
  ASSERT_EQ(spate_stream_adopt(&near_, loop_.get(), ends[0]), 0);
  ::close(ends[1]);
  EXPECT_EQ(write(near_, "x"), 0);
  run();
  EXPECT_EQ(spate_stream_is_open(near_), 0);
  EXPECT_EQ(spate_stream_start(near_, &kNotes, &near_heard_), 0);
  EXPECT_EQ(near_heard_.log, "");
  run();
  EXPECT_EQ(near_heard_.log, "closed ");
  EXPECT_EQ(near_heard_.error, -EPIPE);
  EXPECT_EQ(spate_stream_start(near_, &kNotes, &near_heard_), 0);
  run();
  EXPECT_EQ(near_heard_.log, "closed ");
}

TEST_F(CNetTest, StreamsMayOutliveTheirLoop) {
  spate_loop* loop = nullptr;
  ASSERT_EQ(spate_loop_create(&loop, nullptr), 0);
  ASSERT_EQ(spate_stream_pair(&near_, &far_, loop), 0);
  EXPECT_EQ(spate_stream_start(near_, &kNotes, &near_heard_), 0);
  spate_loop_destroy(loop);
  EXPECT_EQ(spate_stream_is_open(near_), 0);
  EXPECT_EQ(write(near_, "x"), -EPIPE);
  EXPECT_EQ(spate_stream_start(far_, &kNotes, &far_heard_), 0);
}

TEST_F(CNetTest, StreamCallbacksRunInsidePoll) {
  pair();
  EXPECT_EQ(write(near_, "hello"), 0);
  spate_stream_end(near_);
  Batch batch{loop_};
  while (spate_loop_has_work(loop_.get()) != 0) EXPECT_EQ(batch.poll(-1), 0);
  EXPECT_EQ(far_heard_.bytes, "hello");
}

// ---- listeners and connecting

struct Accepted {
  spate_stream** stream;
  Heard* heard;
};

void accept_one(spate_listener* listener, spate_stream* stream, const spate_address* peer) {
  const auto& accepted = *static_cast<Accepted*>(spate_listener_data(listener));
  *accepted.stream = stream;
  EXPECT_EQ(spate_stream_start(stream, &kNotes, accepted.heard), 0);
  spate_address same;
  spate_stream_peer_address(stream, &same);
  EXPECT_EQ(spate_address_port(peer), spate_address_port(&same));
  spate_listener_close(listener);
}

TEST_F(CNetTest, ListenerAcceptsConnections) {
  const spate_address any = address("127.0.0.1:0");
  Accepted accepted{&far_, &far_heard_};
  spate_listener* listener = nullptr;
  ASSERT_EQ(spate_listen(&listener, loop_.get(), &any, accept_one, &accepted, nullptr), 0);
  spate_address bound;
  spate_listener_address(listener, &bound);
  spate_connect_options options = {sizeof(options), 5'000 * kMillisecond, &any, 0};
  ASSERT_EQ(spate_stream_connect(&near_, loop_.get(), "127.0.0.1", spate_address_port(&bound),
                                 &kNotes, &near_heard_, &options),
            0);
  EXPECT_EQ(write(near_, "hello"), 0);
  spate_stream_end(near_);
  run();
  EXPECT_EQ(far_heard_.bytes, "hello");
  EXPECT_EQ(near_heard_.log, "connected end closed ");
  spate_address local;
  spate_stream_local_address(near_, &local);
  EXPECT_EQ(spate_listener_connections(listener), 0u);
  spate_listener_destroy(listener);
}

// Keeps accepted streams open.
struct AllAccepted {
  ~AllAccepted() {
    for (spate_stream* each : streams) spate_stream_destroy(each);
  }
  std::vector<spate_stream*> streams;
};

TEST_F(CNetTest, EachListenOptionIsHonoured) {
  if (!kShowsAcceptQueue) GTEST_SKIP() << "this system does not show the accept queue";
  const spate_address any = address("[::]:0");
  spate_listen_options options{};
  auto& [size, backlog, accepts_per_turn, max_connections, reuse_port, v6_only] = options;
  size = sizeof(options);
  backlog = 7;
  accepts_per_turn = 2;
  max_connections = 3;
  reuse_port = v6_only = 1;
  AllAccepted accepted;
  spate_listener* listener = nullptr;
  const auto keep = [](spate_listener* its, spate_stream* stream, const spate_address*) {
    static_cast<AllAccepted*>(spate_listener_data(its))->streams.push_back(stream);
  };
  ASSERT_EQ(spate_listen(&listener, loop_.get(), &any, keep, &accepted, &options), 0);
  spate_address bound;
  spate_listener_address(listener, &bound);
  const std::uint16_t port = spate_address_port(&bound);
  const std::vector<int> sockets = listening_at(port);
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_EQ(accept_queue(sockets[0]).limit, 7u);
  EXPECT_EQ(socket_option<int>(sockets[0], SOL_SOCKET, SO_REUSEPORT), 1);
  EXPECT_EQ(socket_option<int>(sockets[0], IPPROTO_IPV6, IPV6_V6ONLY), 1);
  sockaddr_in6 there{};
  there.sin6_family = AF_INET6;
  there.sin6_addr = in6addr_loopback;
  there.sin6_port = htons(port);
  std::vector<sys::Descriptor> clients;
  for (int i = 0; i < 5; ++i) {
    const int fd = clients.emplace_back(open_socket(AF_INET6, SOCK_STREAM)).get();
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&there), sizeof(there)), 0);
  }
  EXPECT_EQ(waiting_at(port), 5u);
  spate_loop_run(loop_.get(), SPATE_RUN_NO_WAIT);
  EXPECT_EQ(waiting_at(port), 3u);
  for (int i = 0; i < 10; ++i) spate_loop_run(loop_.get(), SPATE_RUN_NO_WAIT);
  EXPECT_EQ(waiting_at(port), 2u);
  spate_listener_destroy(listener);
}

TEST_F(CNetTest, ConnectTimeoutIsHonoured) {
  const FullListener full(Address::loopback_ipv6(0));
  const spate_address silent = address(full.address().to_string().c_str());
  const spate_address local = address("[::1]:0");
  spate_connect_options options{};
  auto& [size, timeout, wanted, attempt_delay] = options;
  size = sizeof(options);
  timeout = 20 * kMillisecond;
  wanted = &local;
  ASSERT_EQ(spate_stream_connect_to(&near_, loop_.get(), &silent, &kNotes, &near_heard_, &options),
            0);
  run();
  EXPECT_EQ(near_heard_.error, SPATE_E_CONNECT_TIMEOUT);
}

TEST_F(CNetTest, LocalAddressIsHonoured) {
  const spate_address any = address("127.0.0.1:0"), local = address("127.0.0.2:0");
  const spate_connect_options options{sizeof(options), 0, &local, 0};
  for (const bool is_by_name : {false, true}) {
    Accepted accepted{&far_, &far_heard_};
    spate_listener* listener = nullptr;
    ASSERT_EQ(spate_listen(&listener, loop_.get(), &any, accept_one, &accepted, nullptr), 0);
    spate_address bound, from;
    spate_listener_address(listener, &bound);
    const int code =
        is_by_name
            ? spate_stream_connect(&near_, loop_.get(), "127.0.0.1", spate_address_port(&bound),
                                   &kNotes, &near_heard_, &options)
            : spate_stream_connect_to(&near_, loop_.get(), &bound, &kNotes, &near_heard_, &options);
    ASSERT_EQ(code, 0);
    while (far_ == nullptr) spate_loop_run(loop_.get(), SPATE_RUN_ONCE);
    spate_stream_peer_address(far_, &from);
    char text[128];
    EXPECT_TRUE(
        std::string(spate_address_text(&from, text, sizeof(text))).starts_with("127.0.0.2:"));
    spate_stream_destroy(std::exchange(near_, nullptr));
    spate_stream_destroy(std::exchange(far_, nullptr));
    spate_listener_destroy(listener);
  }
}

// The first address of the name neither accepts nor refuses, and the second one accepts. The stream
// with the longest delay begins first. If its option were ignored, it would connect first, too.
TEST_F(CNetTest, AttemptDelayIsHonoured) {
  Loop& loop = loop_.get()->loop();
  NameServer names(loop);
  names.names["both.test"] = {.ipv6 = {"::1"}, .ipv4 = {"127.0.0.1"}};
  ASSERT_FALSE(configure_resolver(
      loop, {.servers = {names.address()}, .resolv_conf = "/dev/null", .hosts = "/dev/null"}));
  const FullListener silent(Address::loopback_ipv6(0));
  const std::uint16_t port = silent.address().port();
  const auto listener =
      Listener::create(loop, Address::loopback_ipv4(port), [](Stream, const Address&) {});
  ASSERT_TRUE(listener) << listener.error().message();
  constexpr std::int64_t kHour = 3'600'000 * kMillisecond;
  const auto begin = [&](spate_stream*& stream, Heard& heard, std::int64_t attempt_delay) {
    const spate_connect_options options{sizeof(options), 0, nullptr, attempt_delay};
    return spate_stream_connect(&stream, loop_.get(), "both.test", port, &kNotes, &heard, &options);
  };
  ASSERT_EQ(begin(near_, near_heard_, kHour), 0);
  for (const std::int64_t attempt_delay : {10 * kMillisecond, std::int64_t{0}}) {
    far_heard_ = {};
    ASSERT_EQ(begin(far_, far_heard_, attempt_delay), 0);
    while (far_heard_.log.empty()) spate_loop_run(loop_.get(), SPATE_RUN_ONCE);
    EXPECT_EQ(far_heard_.log, "connected ") << attempt_delay;
    spate_stream_destroy(std::exchange(far_, nullptr));
  }
  EXPECT_EQ(near_heard_.log, "") << "after the default delay of the last one";
}

TEST_F(CNetTest, DestroyedListenerAcceptsNoMore) {
  const spate_address any = address("127.0.0.1:0");
  spate_listen_options options = {sizeof(options), 16, 1, 5, 1, 1};
  spate_listener* listener = nullptr;
  ASSERT_EQ(spate_listen(&listener, loop_.get(), &any, accept_one, nullptr, &options), 0);
  spate_address bound;
  spate_listener_address(listener, &bound);
  spate_listener_pause(listener);
  spate_listener_resume(listener);
  spate_listener_destroy(listener);
  ASSERT_EQ(spate_stream_connect_to(&near_, loop_.get(), &bound, &kNotes, &near_heard_, nullptr),
            0);
  run();
  EXPECT_EQ(near_heard_.log, "closed ");
  EXPECT_EQ(near_heard_.error, -ECONNREFUSED);
}

TEST_F(CNetTest, ListenFailureIsReported) {
  spate_listener* listener = nullptr;
  const spate_address nowhere = address("unix:/nonexistent/directory/socket");
  EXPECT_EQ(spate_listen(&listener, loop_.get(), &nowhere, accept_one, nullptr, nullptr), -ENOENT);
  EXPECT_EQ(spate_listen(&listener, loop_.get(), &nowhere, nullptr, nullptr, nullptr), -EINVAL);
  EXPECT_EQ(listener, nullptr);
  spate_connect_options wrong = {1, 0, nullptr, 0};
  EXPECT_EQ(spate_stream_connect_to(&near_, loop_.get(), &nowhere, &kNotes, nullptr, &wrong),
            -EINVAL);
  EXPECT_EQ(spate_stream_connect_to(&near_, loop_.get(), &nowhere, nullptr, nullptr, nullptr),
            -EINVAL);
}

// ---- names

void note_resolved(spate_resolving* resolving, int error, const spate_address* addresses,
                   std::size_t count) {
  auto& log = *static_cast<std::string*>(spate_resolving_data(resolving));
  char text[128];
  log += std::to_string(error) + " ";
  for (std::size_t i = 0; i < count; ++i)
    log += spate_address_text(&addresses[i], text, sizeof(text));
  spate_resolving_destroy(resolving);
}

TEST_F(CNetTest, NameIsResolved) {
  std::string log;
  spate_resolving* resolving = nullptr;
  ASSERT_EQ(spate_resolve(&resolving, loop_.get(), "192.0.2.1", 80, 0, note_resolved, &log), 0);
  run();
  EXPECT_EQ(log, "0 192.0.2.1:80");
  ASSERT_EQ(spate_resolve(&resolving, loop_.get(), "a b", 80, 0, note_resolved, &log), 0);
  run();
  EXPECT_EQ(log, "0 192.0.2.1:80" + std::to_string(SPATE_E_BAD_NAME) + " ");
}

TEST_F(CNetTest, CancelledLookupIsNotCompleted) {
  std::string log;
  spate_resolving* resolving = nullptr;
  ASSERT_EQ(spate_resolve(&resolving, loop_.get(), "192.0.2.1", 80, 0, note_resolved, &log), 0);
  spate_resolving_destroy(resolving);
  run();
  EXPECT_EQ(log, "");
}

// ---- memory

TEST_F(CNetTest, CreationFailsWithoutMemory) {
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope scope{plan};
  EXPECT_EQ(spate_stream_pair(&near_, &far_, loop_.get()), -ENOMEM);
  EXPECT_EQ(near_, nullptr);
  const spate_address any = address("127.0.0.1:0");
  EXPECT_EQ(spate_stream_connect_to(&near_, loop_.get(), &any, &kNotes, &near_heard_, nullptr),
            -ENOMEM);
  EXPECT_EQ(near_, nullptr);
}

}  // namespace
}  // namespace spate::testing
