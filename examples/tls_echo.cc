// An echo server over TLS. On SIGHUP it reloads its certificate.
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30
//     -keyout key.pem -out chain.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost
//   tls_echo 7000 chain.pem key.pem
//   talk to it: openssl s_client -connect localhost:7000 -CAfile chain.pem
#include <csignal>
#include <iostream>

#include "spate/net/server.h"
#include "spate/net/tls.h"

using namespace std::chrono_literals;

namespace {

struct Echo : spate::Session {
  std::size_t on_data(spate::Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
};

void log_failure(const spate::TlsFailure& failure, const spate::Address& peer) {
  std::cerr << peer.to_string() << ": " << failure.text << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: tls_echo [HOST:]PORT CHAIN KEY\n";
    return 2;
  }
  const spate::TlsServerOptions options{
      .identities = {{.chain_file = argv[2], .key_file = argv[3]}}};
  const auto tls = spate::TlsContext::server(options);
  if (!tls) {
    std::cerr << "tls_echo: " << tls.error().text << "\n";
    return 1;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  auto server =
      spate::must(spate::serve<Echo>(*loop, address, {.tls = *tls, .on_tls_failure = log_failure}));

  spate::must(loop->on_signal(SIGHUP, [&] {
    const auto reloaded = tls->reload(options);
    std::cout << (reloaded ? "reloaded" : reloaded.error().text) << std::endl;
  }));
  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(5s); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
