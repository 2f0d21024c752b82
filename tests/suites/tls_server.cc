// The HTTPS server for tlsfuzzer: answers each request for "/", and prints its address.
// With a third file it requests a client certificate by one of these issuers.
//   tls_server CHAIN KEY [ISSUERS]
#include <iostream>

#include "spate/http/router.h"
#include "spate/net/tls.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: tls_server CHAIN KEY [ISSUERS]\n";
    return 2;
  }
  const auto loop = spate::must(spate::Loop::create());
  spate::http::Router router;
  router.get("/", [](spate::http::Exchange exchange) { exchange.respond("hello\n"); });
  spate::TlsServerOptions tls{.identities = {{.chain_file = argv[1], .key_file = argv[2]}},
                              .alpn = {"http/1.1"}};
  if (argc == 4) {
    tls.client_check = spate::TlsClientCheck::optional;
    tls.client_ca_file = argv[3];
  }
  spate::http::ServerOptions options;
  options.tls = spate::must(spate::TlsContext::server(tls));
  const auto server = spate::must(
      spate::http::serve(*loop, spate::Address::loopback_ipv4(0), router, std::move(options)));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
