// Uses spate::http and spate::tls: a server and a client that exchange a message, and a context
// that is rejected.
#include <spate/http/client.h>
#include <spate/http/server.h>
#include <spate/loop.h>
#include <spate/net/tls.h>

#include <string>

int main() {
  auto loop = spate::must(spate::Loop::create());
  auto server = spate::must(
      spate::http::serve(*loop, spate::Address::loopback_ipv4(0),
                         [](spate::http::Exchange exchange) { exchange.respond("hello\n"); }));
  auto client = spate::must(spate::http::Client::create(*loop));
  std::string answer;
  const std::string url = "http://127.0.0.1:" + std::to_string(server.address().port()) + "/";
  const spate::http::Call call = client.fetch(url, [&](auto response) {
    if (response) answer = spate::text_of(response->body());
    loop->stop();
  });
  loop->run();
  const auto context = spate::TlsContext::server({.identities = {{.chain_file = "/no/such.pem"}}});
  return answer == "hello\n" && !context ? 0 : 1;
}
