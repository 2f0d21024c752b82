// Serves a directory at /files/, and a page that links to it.
//   file_server 8080 /usr/share/doc    look at it: http://localhost:8080/
#include <csignal>
#include <iostream>
#include <string>

#include "spate/http/files.h"
#include "spate/http/router.h"

using namespace std::chrono_literals;
using spate::http::Exchange;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: file_server [HOST:]PORT DIRECTORY\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  auto files = spate::must(spate::http::Files::open(argv[2], {.listing = true}));

  spate::http::Router router;
  router.get("/", [](Exchange exchange) {
    exchange.respond(spate::http::Status::ok, "<!DOCTYPE html><a href=\"/files/\">files</a>\n",
                     "text/html; charset=utf-8");
  });
  router.get("/files/*path", [&](Exchange exchange) {
    const std::string path = exchange.request().param("path");
    files.serve(std::move(exchange), path);
  });
  auto server = spate::must(spate::http::serve(*loop, address, router));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(5s, [&] { loop->stop(); }); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
