// An exception that leaves ServerOptions::on_tls_failure ends the program: it is called between two
// requests, by a handshake that belongs to none.
#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "ending.h"
#include "spate/http/server.h"
#include "spate/net/connect.h"
#include "tls/testing/certificates.h"

namespace {

using namespace spate;

// The client sends no handshake.
void fail_a_handshake() {
  const auto loop = must(Loop::create());
  http::ServerOptions options;
  options.tls = testing::test_server_context();
  options.on_exception = [](std::exception_ptr, const http::Request&) { ::_exit(2); };
  options.on_tls_failure = [](const TlsFailure&, const Address&) {
    throw std::runtime_error("thrown by the test");
  };
  const http::Server server = must(http::serve(
      *loop, Address::loopback_ipv4(0), [](http::Exchange) {}, std::move(options)));
  Stream client;
  const Connecting connecting = connect(*loop, server.address(), [&](Result<Stream> made) {
    client = must(std::move(made));
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  });
  loop->run();
}

}  // namespace

int main() { return testing::exception_ends("TLS", fail_a_handshake) ? 0 : 1; }
