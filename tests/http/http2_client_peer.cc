// A client for http2_client_peers.py, which runs it against other servers.   http2_client_peer URL
// [CA]
//
// Over HTTP/2: without TLS by prior knowledge, with it by ALPN and with CA for its root. Requests
// URL/long 40 times at once, and sends 3 MB to URL/echo. Prints of each response its version,
// status, length, and first trailer.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "spate/http/client.h"
#include "spate/loop.h"

using spate::Result;
using spate::http::CallOptions;
using spate::http::Response;

namespace {

constexpr int kCalls = 40;
constexpr std::size_t kSent = 3'000'000;

spate::http::Client make_client(spate::Loop& loop, const char* ca) {
  spate::http::ClientOptions options{.max_per_origin = 2};
  options.http2 = spate::must(spate::http::Http2::create());
  options.http2_without_tls = true;
  if (ca != nullptr) {
    std::ifstream file(ca);
    options.tls = spate::must(
        spate::TlsContext::client({.system_cas = false,
                                   .ca = std::string(std::istreambuf_iterator<char>(file), {}),
                                   .alpn = {"h2", "http/1.1"}}));
  }
  return spate::must(spate::http::Client::create(loop, std::move(options)));
}

void say(const Result<Response>& response) {
  if (!response) return void(std::cout << response.error().message() << std::endl);
  std::cout << (response->version() == spate::http::Version::http_2 ? "2 " : "1 ")
            << code_of(response->status()) << ' ' << response->body().size();
  if (!response->trailers().empty()) std::cout << ' ' << response->trailers().view().at(0).value;
  std::cout << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string url = argv[1];
  const auto loop = spate::must(spate::Loop::create());
  spate::http::Client client = make_client(*loop, argc > 2 ? argv[2] : nullptr);
  std::vector<spate::http::Call> calls;
  for (int i = 0; i < kCalls; ++i) calls.push_back(client.fetch(url + "/long", say));
  CallOptions upload;
  upload.method = spate::http::Method::post;
  const std::string body(kSent, 'u');
  upload.body = spate::bytes_of(body);
  calls.push_back(client.fetch(url + "/echo", say, std::move(upload)));
  loop->run();
}
