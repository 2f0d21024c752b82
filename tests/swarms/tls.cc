// TLS in Worlds with all kinds of faults: received data was sent by the verified peer, and a
// truncated stream is an error. OpenSSL's random bytes come from the World, so that a seed
// determines everything.
#define OPENSSL_SUPPRESS_DEPRECATED  // A provider would take 100 lines.
#include <gtest/gtest.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

#include "base/mix.h"
#include "sim/echo.h"
#include "spate/net/bytes.h"
#include "spate/net/server.h"
#include "spate/net/tls.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kSecretPort = 7006;
constexpr std::string_view kSecretName = "secret.example";
constexpr Nanos kSecretTrouble = 1min;
constexpr Nanos kSecretPatience = 20s;

// ---- random bytes by the seed

std::uint64_t secret_state = 0;

int fill_secretly(unsigned char* bytes, int size) {
  for (int i = 0; i < size; ++i) {
    if (i % 8 == 0) secret_state = mix(secret_state + 1);
    bytes[i] = static_cast<unsigned char>(secret_state >> (i % 8 * 8));
  }
  return 1;
}

int is_filled() { return 1; }

// While it exists, OpenSSL's random bytes are those of the seed.
class SeededSecrets {
 public:
  explicit SeededSecrets(std::uint64_t seed) {
    secret_state = mix(seed);
    before_ = RAND_get_rand_method();
    RAND_set_rand_method(&kMethod);
  }
  ~SeededSecrets() { RAND_set_rand_method(before_); }
  SeededSecrets(const SeededSecrets&) = delete;
  SeededSecrets& operator=(const SeededSecrets&) = delete;

 private:
  static constexpr RAND_METHOD kMethod = {.seed = nullptr,
                                          .bytes = fill_secretly,
                                          .cleanup = nullptr,
                                          .add = nullptr,
                                          .pseudorand = fill_secretly,
                                          .status = is_filled};
  const RAND_METHOD* before_;
};

// Rounded to a day, so that two processes of one day have the same.
const Certificate& secret_root() {
  static const Certificate root({.subject = "root",
                                 .begins = -(std::time(nullptr) % 86'400),
                                 .ends = 2 * 86'400 - std::time(nullptr) % 86'400,
                                 .is_ca = true});
  return root;
}

const TlsIdentity& secret_identity() {
  static const TlsIdentity identity =
      Certificate({.subject = "server",
                   .names = {std::string(kSecretName)},
                   .begins = -(std::time(nullptr) % 86'400),
                   .ends = 2 * 86'400 - std::time(nullptr) % 86'400},
                  &secret_root())
          .identity();
  return identity;
}

// ---- the program

struct SecretEcho : Echo {
  void on_open() override { stream().set_idle_timeout(kSecretPatience); }
};

TlsServerOptions drawn_server(World& world) {
  return {.identities = {secret_identity()},
          .min_version = world.draw(2) == 0 ? TlsVersion::tls_1_2 : TlsVersion::tls_1_3,
          .tickets = 0};  // OpenSSL dates tickets by the system's clock.
}

auto serve_secrets(World& world, Loop& loop) {
  const TlsContext context = must(TlsContext::server(drawn_server(world)));
  auto server = serve<SecretEcho>(loop, Address::any_ipv6(kSecretPort), {.tls = context});
  return server ? std::move(*server) : Server<SecretEcho>();
}

// Sends a text, and expects its echo; now and then it connects with a host name that the server's
// certificate lacks.
class Confidant final : public StreamHandler {
 public:
  Confidant(World& world, Loop& loop)
      : world_(world),
        loop_(loop),
        context_(must(TlsContext::client({.system_cas = false,
                                          .ca = secret_root().pem(),
                                          .handshake_timeout = 5s,
                                          .max_sessions = 0}))),
        next_(loop, [this] { begin(); }) {
    next_.start(0s);
  }
  bool is_done() const { return is_done_; }

  void on_connected() override {
    sim::always(!is_wrong_, "nobody passes for somebody else");
    is_connected_ = true;
  }
  std::size_t on_data(Bytes bytes) override {
    const std::string_view part = text_of(bytes);
    sim::always(is_connected_, "nothing comes before it is known from whom");
    sim::always(text_.compare(echoed_, part.size(), part) == 0, "bytes come in order, and whole");
    echoed_ += part.size();
    if (echoed_ == text_.size()) stream_.close();
    return bytes.size();
  }
  void on_closed(std::error_code error) override {
    const bool has_all = echoed_ == text_.size();
    // A server closes a connection that was idle for so long.
    const bool is_given_up = world_.now() - began_ >= kSecretPatience;
    sim::always(has_all || error || is_given_up, "an end before all has come is an error");
    sim::sometimes(error == std::errc::connection_reset, "a connection is reset");
    sim::sometimes(error == Error::tls_certificate, "a stranger is known for one");
    sim::sometimes(error == Error::connect_timeout, "a handshake takes too long");
    sim::always(!is_wrong_ || error, "nobody talks to somebody else");
    const bool is_well = began_ > kSecretTrouble + 1s;
    sim::always(!is_well || (is_wrong_ ? error == Error::tls_certificate : has_all),
                "all comes when all is well");
    is_done_ = is_well && has_all;
    if (!is_done_) next_.start(1s + drawn_span(world_, 15s));
  }

 private:
  void begin() {
    stream_ = Stream();
    is_connected_ = false;
    is_wrong_ = world_.draw(5) == 0;
    text_.assign(1 + world_.draw(world_.draw(4) == 0 ? 50'000 : 1000), 's');
    for (char& each : text_) each = static_cast<char>(each + (&each - text_.data()) % 7);
    echoed_ = 0;
    began_ = world_.now();
    const std::string_view name = is_wrong_ ? "other.example" : kSecretName;
    if (stream_.connect(loop_, name, kSecretPort, context_, *this, {.timeout = 5s}))
      return next_.start(1s), void();
    stream_.set_idle_timeout(kSecretPatience);
    stream_.write(text_);
  }

  World& world_;
  Loop& loop_;
  const TlsContext context_;
  std::string text_;
  std::size_t echoed_ = 0;
  Nanos began_{0};
  bool is_connected_ = false;
  bool is_wrong_ = false;
  bool is_done_ = false;
  Timer next_;
  Stream stream_;
};

void play_secrets(World& world) {
  {
    const SeededSecrets always_the_same(1);
    secret_identity();
  }
  const SeededSecrets secrets(world.draw(UINT64_MAX));
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  world.name(kSecretName, server);
  world.name("other.example", server);
  server.boot([&world](Loop& loop) { return serve_secrets(world, loop); });
  draw_weather(world, server, client, kSecretTrouble);
  world.at(kSecretTrouble, [&] {
    server.resume();
    if (server.is_up()) server.crash();
    server.restart();
  });
  {
    const auto confidant =
        client.run([&](Loop& loop) { return std::make_unique<Confidant>(world, loop); });
    const Outcome end = world.run_until([&] { return confidant->is_done(); }, 30min);
    sim::always(end == Outcome::done, "the client gets all");
  }
  world.run_for(10min);
  sim::always(server.open_descriptors() <= 4, "the server leaves nothing open");
  sim::always(client.open_descriptors() <= 3, "the client leaves nothing open");
}

SPATE_SWARM(ASecretComesWholeOrNotAtAll, 200, play_secrets)

TEST(Swarms, HaveEqualTracesWithTls) {
  const auto trace = [] { return sim::explore(77, 5, play_secrets).trace; };
  const std::uint64_t first = trace();
  EXPECT_EQ(trace(), first);
  RecordProperty("trace", std::to_string(first));  // To compare processes.
}

}  // namespace
}  // namespace spate::testing
