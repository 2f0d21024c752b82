// With ServerOptions::exceptions_end_program, and in on_exception itself, an exception ends the
// program, after a line that names the callback.
#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "ending.h"
#include "spate/http/client.h"
#include "spate/http/server.h"

namespace {

using namespace spate;

[[noreturn]] void fail() { throw std::runtime_error("thrown by the test"); }

void serve(http::ServerOptions options) {
  const auto loop = must(Loop::create());
  http::Server server = must(http::Server::create(
      *loop, [](http::Exchange) { fail(); }, std::move(options)));
  http::ClientOptions client_options;
  client_options.open = [&](std::string_view, std::uint16_t) -> Result<Stream> {
    auto [mine, theirs] = must(Stream::memory_pair(*loop));
    server.add(std::move(theirs));
    return std::move(mine);
  };
  http::Client client = must(http::Client::create(*loop, std::move(client_options)));
  const http::Call call = client.fetch("http://a/", [](Result<http::Response>) { ::_exit(2); });
  loop->run();
}

}  // namespace

int main() {
  http::ServerOptions ending;
  ending.exceptions_end_program = true;
  http::ServerOptions throwing;
  throwing.on_exception = [](std::exception_ptr, const http::Request&) { fail(); };
  const bool is_right =
      testing::exception_ends("http::Server", [&] { serve(std::move(ending)); }) &&
      testing::exception_ends("ServerOptions::on_exception", [&] { serve(std::move(throwing)); });
  return is_right ? 0 : 1;
}
