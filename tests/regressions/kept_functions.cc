// Functions that a handle was given: they are destroyed when they can no longer be called, though
// the handle lives on. So an object goes that they hold and that holds the handle.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "spate/http/client.h"
#include "spate/http/inspector.h"
#include "spate/http/server.h"
#include "spate/net/client.h"
#include "spate/net/connect.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/net/process.h"
#include "spate/net/relay.h"
#include "spate/net/resolver.h"
#include "spate/net/session.h"
#include "spate/net/tls.h"
#include "spate/net/workers.h"
#include "spate/offload.h"
#include "streams/harness.h"
#include "support/closed_port.h"
#include "sys/descriptor.h"

namespace spate::testing {
namespace {

// An object of a program. It holds handles, whose functions hold it.
struct Owner {
  std::vector<std::shared_ptr<void>> handles;

  template <class T>
  T& keep(T handle) {
    auto kept = std::make_shared<T>(std::move(handle));
    handles.push_back(kept);
    return *kept;
  }
};
using Self = std::shared_ptr<Owner>;

struct Row {
  std::string name;
  std::function<void(Loop& loop, Self self)> begin;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

void begin_stream(Loop& loop, const Self& self) {
  auto [near, far] = std::move(*Stream::socket_pair(loop));
  self->keep(std::move(far));
  EXPECT_FALSE(self->keep(std::move(near)).start({.on_closed = [self](std::error_code) {}}));
}

void begin_streams(Loop& loop, const Self& self) {
  for (int i = 0; i < 100; ++i) begin_stream(loop, self);
}

void begin_memory(Loop& loop, const Self& self) {
  auto [near, far] = std::move(*Stream::memory_pair(loop));
  self->keep(std::move(far));
  EXPECT_FALSE(self->keep(std::move(near)).start({.on_end = [self] {}}));
}

void begin_listener(Loop& loop, const Self& self) {
  self->keep(std::move(*Listener::create(loop, Address::loopback_ipv4(0),
                                         [self](Stream, const Address&) {})));
}

void begin_datagram(Loop& loop, const Self& self) {
  Datagram& datagram = self->keep(std::move(*Datagram::create(loop, Address::loopback_ipv4(0))));
  EXPECT_FALSE(datagram.start({.on_packets = [self](std::span<const Packet>) {}}));
}

void begin_process(Loop& loop, const Self& self) {
  ProcessOptions options{.file = "sleep", .arguments = {"1000"}};
  options.kill_when_destroyed = true;
  self->keep(std::move(*spawn(loop, options, [self](const Child&) {})));
}

void begin_connect(Loop& loop, const Self& self) {
  self->keep(connect(loop, closed_ipv4(), [self](Result<Stream>) {}));
}

void begin_named_connect(Loop& loop, const Self& self) {
  self->keep(connect(loop, "a.name.invalid", 1, [self](Result<Stream>) {}));
}

void begin_secure_connect(Loop& loop, const Self& self) {
  const TlsContext context = *TlsContext::client_without_verification();
  self->keep(connect(loop, "127.0.0.1", 1, context, [self](TlsResult<Stream>) {}));
}

void begin_handshake(Loop& loop, const Self& self) {
  auto [near, far] = std::move(*Stream::socket_pair(loop));
  self->keep(std::move(far));
  const TlsContext context = *TlsContext::client_without_verification();
  self->keep(start_tls(std::move(near), context, "host", [self](TlsResult<Stream>) {}));
}

void begin_resolve(Loop& loop, const Self& self) {
  self->keep(resolve(loop, "a.name.invalid", 1, [self](Result<std::vector<Address>>) {}));
}

void begin_resolve_each(Loop& loop, const Self& self) {
  self->keep(resolve_each(
      loop, "a.name.invalid", 1, [self](std::vector<Address>) {}, [self](std::error_code) {}));
}

void begin_relay(Loop& loop, const Self& self) {
  auto [near, far] = std::move(*Stream::memory_pair(loop));
  auto [here, there] = std::move(*Stream::memory_pair(loop));
  self->keep(std::move(far));
  self->keep(std::move(there));
  self->keep(relay(std::move(near), std::move(here), [self](const RelayResult&) {}));
}

void begin_client(Loop& loop, const Self& self) {
  self->keep(std::move(*Client::create(loop, closed_ipv4(), [self](Result<Stream>) {}))).connect();
}

void begin_offload(Loop& loop, const Self& self) {
  self->keep(offload(loop, [] {}, [self] {}).value());
}

struct Guest : Session {
  explicit Guest(Stream) {}
};

void begin_drain(Loop& loop, const Self& self) {
  auto sessions = std::make_shared<Sessions<Guest>>(loop);
  self->handles.push_back(sessions);
  sessions->drain(std::chrono::seconds{100}, [self] {});
}

void begin_errands(Loop& loop, const Self& self) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(loop.after(std::chrono::seconds{100}, [self] {}));
  EXPECT_TRUE(loop.defer([self] {}));
  EXPECT_TRUE(loop.post([self] {}));
  EXPECT_FALSE(loop.on_signal(SIGUSR2, [self] {}));
  EXPECT_FALSE(loop.once(ends[0], Events::read, kForever, [self](Events) {}));
  loop.ref();
  self->keep(sys::Descriptor(ends[0]));
  self->keep(sys::Descriptor(ends[1]));
}

void begin_server(Loop& loop, const Self& self) {
  http::ServerOptions options;
  options.log = [self](const http::AccessRecord&) {};
  auto server = http::Server::create(loop, [self](http::Exchange) {}, std::move(options));
  http::Server& kept = self->keep(std::move(*server));
  EXPECT_TRUE(kept.listen(Address::loopback_ipv4(0)).has_value());
  kept.drain(std::chrono::seconds{100}, [self] {});
}

void begin_call(Loop& loop, const Self& self) {
  http::ClientOptions options;
  options.open = [self](std::string_view, std::uint16_t) -> Result<Stream> {
    return std::unexpected(std::make_error_code(std::errc::connection_refused));
  };
  http::Client& client = self->keep(std::move(*http::Client::create(loop, std::move(options))));
  self->keep(client.fetch("http://127.0.0.1:1/", [self](Result<http::Response>) {}));
}

void begin_inspector(Loop& loop, const Self& self) {
  http::Inspector& inspector = self->keep(std::move(*http::Inspector::create(loop)));
  inspector.add("one", [self](http::Readings&) {});
  inspector.add("two", [self](http::Readings&) {});
}

const Row kRows[] = {
    {"Stream", begin_stream},
    {"Streams", begin_streams},
    {"StreamInMemory", begin_memory},
    {"Listener", begin_listener},
    {"Datagram", begin_datagram},
    {"Process", begin_process},
    {"Connecting", begin_connect},
    {"ConnectingByName", begin_named_connect},
    {"ConnectingByTls", begin_secure_connect},
    {"Handshake", begin_handshake},
    {"Resolving", begin_resolve},
    {"ResolvingEach", begin_resolve_each},
    {"Relaying", begin_relay},
    {"Client", begin_client},
    {"Offloading", begin_offload},
    {"Sessions", begin_drain},
    {"LoopErrands", begin_errands},
    {"HttpServer", begin_server},
    {"HttpCall", begin_call},
    {"Inspector", begin_inspector},
};

class KeptFunctions : public ::testing::TestWithParam<Row> {};

// Nothing outside the loop holds the object: it holds handles, and their functions hold it.
TEST_P(KeptFunctions, AreDestroyedWithLoop) {
  std::unique_ptr<Loop> loop = *Loop::create();
  auto self = std::make_shared<Owner>();
  const std::weak_ptr<Owner> watch = self;
  GetParam().begin(*loop, std::move(self));
  EXPECT_FALSE(watch.expired());
  loop.reset();
  EXPECT_TRUE(watch.expired());
}

// The object is elsewhere, so its handles live on without a loop.
TEST_P(KeptFunctions, DestroyedLoopDestroysFunctionOfRemainingHandle) {
  std::unique_ptr<Loop> loop = *Loop::create();
  const auto handles = std::make_shared<Owner>();
  const auto held = std::make_shared<Owner>();
  GetParam().begin(*loop, held);
  handles->handles = std::move(held->handles);
  loop.reset();
  EXPECT_EQ(held.use_count(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, KeptFunctions, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

// ---- before the loop ends

class Ended : public ::testing::Test {
 protected:
  long kept() const { return token_.use_count() - 1; }
  Stream started() {
    auto [near, far] = std::move(*Stream::socket_pair(*loop_));
    peer_ = std::move(far);
    EXPECT_FALSE(near.start({.on_data = [token = token_](Bytes bytes) { return bytes.size(); }}));
    EXPECT_EQ(kept(), 1);
    return std::move(near);
  }

  std::unique_ptr<Loop> loop_ = *Loop::create();
  std::shared_ptr<int> token_ = std::make_shared<int>();
  Stream peer_;
};

TEST_F(Ended, StreamDropsFunctionsWhenItIsAborted) {
  Stream stream = started();
  stream.abort();
  EXPECT_EQ(kept(), 0);
}

TEST_F(Ended, StreamDropsFunctionsWhenItIsReleased) {
  Stream stream = started();
  const sys::Descriptor fd(*stream.release());
  EXPECT_EQ(kept(), 0);
}

TEST_F(Ended, StreamDropsFunctionsWhenItIsStopped) {
  Stream stream = started();
  stream.stop();
  EXPECT_EQ(kept(), 0);
  Recorder recorder;
  stream.start(recorder);
  peer_.write("more");
  run_turns(*loop_, 3);
  EXPECT_EQ(recorder.received, "more");
}

TEST_F(Ended, StreamDropsFunctionsWhenHandlerReplacesThem) {
  Stream stream = started();
  Recorder recorder;
  stream.start(recorder);
  EXPECT_EQ(kept(), 0);
  peer_.write("more");
  run_turns(*loop_, 3);
  EXPECT_EQ(recorder.received, "more");
}

// The function that is running stays until it has returned.
TEST_F(Ended, StreamDropsFunctionThatAbortsIt) {
  for (int ending = 0; ending < 3; ++ending) {
    Stream stream = started();
    int calls = 0;
    EXPECT_FALSE(stream.start({.on_data = [&, ending, token = token_](Bytes bytes) {
      ++calls;
      if (ending == 0) stream.abort();
      if (ending == 1) stream.stop();
      if (ending == 2) stream = Stream();
      EXPECT_EQ(kept(), 1) << "it is running";
      return bytes.size();
    }}));
    peer_.write("x");
    run_turns(*loop_, 3);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(kept(), 0) << ending;
  }
}

// The Stream goes with its functions, inside the call that ends it.
TEST_F(Ended, StreamIsDestroyedWithFunctionsThatOwnIt) {
  for (int ending = 0; ending < 3; ++ending) {
    auto stream = std::make_shared<Stream>(started());
    const std::weak_ptr<Stream> watch = stream;
    Stream& used = *stream;
    EXPECT_FALSE(used.start({.on_end = [owner = std::move(stream)] {}}));
    if (ending == 0) used.abort();
    if (ending == 1) used.stop();
    if (ending == 2) sys::Descriptor(*used.release());
    EXPECT_TRUE(watch.expired()) << ending;
  }
}

TEST_F(Ended, ListenerDropsItsFunctionWhenItIsClosed) {
  Listener listener = std::move(*Listener::create(
      *loop_, Address::loopback_ipv4(0), [token = token_](Stream, const Address&) {}));
  EXPECT_EQ(kept(), 1);
  listener.close();
  run_turns(*loop_, 3);
  EXPECT_EQ(kept(), 0);
}

// Its function runs the loop, which closes it.
TEST_F(Ended, ListenerDropsFunctionThatClosesIt) {
  Listener listener;
  int calls = 0;
  listener = std::move(*Listener::create(*loop_, Address::loopback_ipv4(0),
                                         [&, token = token_](Stream, const Address&) {
                                           ++calls;
                                           listener.close();
                                           run_turns(*loop_, 3);
                                           EXPECT_EQ(kept(), 1) << "it is running";
                                         }));
  const Connecting connecting = connect(*loop_, listener.address(), [](Result<Stream>) {});
  while (calls == 0) EXPECT_FALSE(loop_->run(Run::once));
  run_turns(*loop_, 3);
  EXPECT_EQ(kept(), 0);
}

TEST_F(Ended, ProcessDropsFunctionWhenReleased) {
  Process process = std::move(*spawn(*loop_, {.file = "sleep", .arguments = {"1000"}},
                                     [token = token_](const Child&) {}));
  const int pid = process.pid();
  process = Process();
  EXPECT_EQ(kept(), 0);
  ::kill(pid, SIGKILL);
}

TEST_F(Ended, ProcessDropsItsFunctionWhenItHasExited) {
  bool has_exited = false;
  const Process process = std::move(
      *spawn(*loop_, {.file = "true"}, [&, token = token_](const Child&) { has_exited = true; }));
  while (!has_exited) EXPECT_FALSE(loop_->run(Run::once));
  EXPECT_EQ(kept(), 0);
}

TEST_F(Ended, DatagramDropsFunctionsWhenHandlerReplacesThem) {
  struct Nobody final : DatagramHandler {
    void on_packets(std::span<const Packet>) override {}
  } nobody;
  Datagram datagram = std::move(*Datagram::create(*loop_, Address::loopback_ipv4(0)));
  EXPECT_FALSE(datagram.start({.on_packets = [token = token_](std::span<const Packet>) {}}));
  EXPECT_EQ(kept(), 1);
  datagram.start(nobody);
  EXPECT_EQ(kept(), 0);
}

TEST_F(Ended, CallDropsItsFunctionWithItsClient) {
  auto client = std::make_unique<http::Client>(std::move(*http::Client::create(*loop_)));
  const http::Call call =
      client->fetch("http://127.0.0.1:1/", [token = token_](Result<http::Response>) {});
  EXPECT_EQ(kept(), 1);
  client.reset();
  EXPECT_EQ(kept(), 0);
}

TEST_F(Ended, WorkersDropTheirFunctionsWhenTheyAreStopped) {
  const std::unique_ptr<Workers> workers = std::move(*Workers::create({.threads = 2}));
  const auto on_accept = [token = token_](Stream, const Address&) {};
  EXPECT_TRUE(workers->listen(Address::loopback_ipv4(0), on_accept).has_value());
  EXPECT_EQ(kept(), 2) << "ours, and theirs";
  workers->stop(Nanos{0});
  EXPECT_EQ(kept(), 1);
}

}  // namespace
}  // namespace spate::testing
