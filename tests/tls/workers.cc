// Contexts that several threads use, while they are replaced.
#include <atomic>

#include "spate/net/session.h"
#include "spate/net/workers.h"
#include "support/sanitizers.h"
#include "tls/harness.h"

namespace spate::testing {
namespace {

// Echoes, and owns itself.
class WorkerEcho final : public StreamHandler {
 public:
  explicit WorkerEcho(Stream stream) : stream_(std::move(stream)) { stream_.start(*this); }
  std::size_t on_data(Bytes bytes) override {
    stream_.write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { delete this; }

 private:
  ~WorkerEcho() = default;
  Stream stream_;
};

class TlsWorkers : public TlsTest {
 protected:
  // Connects, receives an echo, and ends; then the next, `left` times.
  struct Talker {
    TlsWorkers& test;
    const TlsContext& context;
    const std::uint16_t port;
    int left;
    Connecting attempt{};
    Stream stream{};
    Recorder log{};

    void next() {
      if (left-- == 0) return;
      attempt = connect(*test.loop_, "127.0.0.1", port, context, [this](TlsResult<Stream> secured) {
        EXPECT_TRUE(secured) << secured.error().text;
        if (!secured) return next();
        test.resumed_ += tls_info(*secured)->is_resumed;
        ++test.secured_;
        stream = std::move(*secured);
        log.received.clear();
        log.use = [this](Bytes bytes) {
          stream.end();
          return bytes.size();
        };
        log.when_closed = [this] {
          EXPECT_FALSE(log.error) << log.error.message();
          EXPECT_EQ(log.received, "hello");
          next();
        };
        stream.start(log);
        stream.write("hello");
      });
    }
  };

  int secured_ = 0;
  int resumed_ = 0;
};

TEST_F(TlsWorkers, ServeWhileCertificatesAndKeysChange) {
  const Certificate other({.subject = "other", .names = {"localhost", "IP:127.0.0.1"}},
                          &test_root());
  const TlsContext theirs = server();
  const TlsContext ours = client();
  std::atomic<int> failures{0};
  const auto workers = std::move(*Workers::create({.threads = 2}));
  const Address address = *workers->listen(
      Address::loopback_ipv4(0),
      Workers::OnAccept(with_tls(
          theirs, [](Stream stream, const Address&) { new WorkerEcho(std::move(stream)); },
          [&failures](const TlsFailure&, const Address&) { ++failures; })),
      Balance::round_robin);
  constexpr int kEach = kIsSanitized ? 15 : 40;
  std::vector<std::unique_ptr<Talker>> talkers;
  for (int i = 0; i < 4; ++i) {
    talkers.push_back(std::make_unique<Talker>(*this, ours, address.port(), kEach));
    talkers.back()->next();
  }
  int changes = 0;
  run_until(*loop_, [&] {
    const Certificate& next = ++changes % 2 == 0 ? test_server() : other;
    if (changes % 5 == 0)
      EXPECT_TRUE(theirs.reload(TlsServerOptions{.identities = {next.identity()}}));
    if (changes % 16 == 0) theirs.rotate_tickets();
    return secured_ == 4 * kEach;
  });
  for (const auto& talker : talkers) {
    run_until(*loop_, [&] { return !talker->stream.is_open(); });
  }
  EXPECT_EQ(failures, 0);
  EXPECT_GT(resumed_, 0);
  EXPECT_TRUE(workers->stop(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace spate::testing
