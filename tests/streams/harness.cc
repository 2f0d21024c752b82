#include "streams/harness.h"

#include "support/own_loopback.h"
#include "support/tls_pair.h"
#include "sys/poll.h"
#include "sys/socket.h"

namespace spate::testing {

namespace {

// Connects through a listening socket of the test's own.
Result<std::pair<Stream, Stream>> tcp_pair(Loop& loop) {
  const Address any = own_address(0);
  sys::Descriptor listener(sys::open_socket(AF_INET, SOCK_STREAM));
  EXPECT_EQ(sys::bind(listener.get(), any.data(), any.size()), 0);
  EXPECT_EQ(sys::listen(listener.get(), 1), 0);
  sys::SystemAddress at;
  EXPECT_EQ(sys::local_address(listener.get(), at), 0);
  sys::Descriptor client(sys::open_socket(AF_INET, SOCK_STREAM));
  sys::connect(client.get(), at.get(), at.size);
  // A loaded machine may finish the handshake after connect() has returned.
  pollfd waiting{.fd = listener.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(sys::poll(&waiting, 1, kForever), 1);
  sys::SystemAddress peer;
  sys::Descriptor server(sys::accept(listener.get(), peer.get(), peer.size));
  EXPECT_TRUE(server.is_open());
  return Result<std::pair<Stream, Stream>>(std::in_place,
                                           std::move(*Stream::adopt(loop, client.release())),
                                           std::move(*Stream::adopt(loop, server.release())));
}

}  // namespace

Result<std::pair<Stream, Stream>> make_pair(Loop& loop, Kind kind) {
  if (is_tls(kind)) {
    Handshake shaken = shake_hands(loop, std::move(*make_pair(loop, plain(kind))),
                                   test_client_context(), test_server_context());
    EXPECT_TRUE(shaken.client) << shaken.client.error().text;
    EXPECT_TRUE(shaken.server) << shaken.server.error().text;
    return std::pair(std::move(*shaken.client), std::move(*shaken.server));
  }
  if (kind == Kind::memory) return Stream::memory_pair(loop);
  return kind == Kind::local ? Stream::socket_pair(loop) : tcp_pair(loop);
}

StreamTest::StreamTest(const LoopOptions& options)
    : owned_(*Loop::create(options)), loop_(*owned_) {
  Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
  left_ = std::move(pair->first);
  right_ = std::move(pair->second);
  left_.start(left_log_);
  right_.start(right_log_);
}

}  // namespace spate::testing
