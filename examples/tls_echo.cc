// An echo server over TLS. SIGHUP has it read its certificate again.
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30
//     -keyout key.pem -out chain.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost
//   tls_echo 7000 chain.pem key.pem
//   talk to it: openssl s_client -connect localhost:7000 -CAfile chain.pem
#include <csignal>
#include <iostream>

#include "spate/net/listener.h"
#include "spate/net/session.h"
#include "spate/net/tls.h"

using namespace std::chrono_literals;

namespace {

struct Echo : spate::Session {
  std::size_t on_data(spate::Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: tls_echo [HOST:]PORT CHAIN KEY\n";
    return 2;
  }
  const spate::TlsIdentity identity{.chain_file = argv[2], .key_file = argv[3]};
  const spate::TlsServerOptions options{.identities = {identity}};
  auto made = spate::TlsContext::server(options);
  if (!made) {
    std::cerr << "tls_echo: " << made.error().text << "\n";
    return 1;
  }
  const spate::TlsContext context = *made;
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));

  spate::Sessions<Echo> sessions(*loop);
  spate::Listener listener = spate::must(spate::Listener::create(
      *loop, address,
      spate::with_tls(
          context,
          [&](spate::Stream stream, const spate::Address&) { sessions.open(std::move(stream)); },
          [](const spate::TlsFailure& failure, const spate::Address& peer) {
            std::cerr << peer.to_string() << ": " << failure.text << std::endl;
          })));

  spate::must(loop->on_signal(SIGHUP, [&] {
    const auto reloaded = context.reload(options);
    std::cout << (reloaded ? "reloaded" : reloaded.error().text) << std::endl;
  }));
  spate::must(loop->on_signal(SIGTERM, [&] {
    listener.close();
    sessions.drain(5s);
  }));
  std::cout << listener.address().to_string() << std::endl;
  loop->run();
}
