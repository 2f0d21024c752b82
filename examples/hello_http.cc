// The smallest HTTP server.
//   hello_http 8080    talk to it: curl localhost:8080
#include <iostream>

#include "spate/http/server.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: hello_http [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  auto server = spate::must(spate::http::serve(
      *loop, address, [](spate::http::Exchange exchange) { exchange.respond("hello\n"); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
