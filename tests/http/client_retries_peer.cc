// The client of client_retries.py: makes calls to the port of its argument, and prints each result
// that differs from the expected one.
#include <cstdio>
#include <string>
#include <string_view>

#include "spate/http/body.h"
#include "spate/http/client.h"
#include "spate/loop.h"

namespace http = spate::http;

namespace {

class Checks {
 public:
  Checks(spate::Loop& loop, http::Client& client) : loop_(loop), client_(client) {}

  // Makes a call, and compares "<status> <body>", or "error <message>".
  void expect(std::string_view path, http::CallOptions options, std::string_view wanted) {
    std::string result;
    const http::Call call = client_.fetch(
        path,
        [&](spate::Result<http::Response> response) {
          result = response ? std::to_string(http::code_of(response->status())) + " " +
                                  std::string(response->text())
                            : "error " + response.error().message();
          loop_.stop();
        },
        std::move(options));
    loop_.run();
    if (result == wanted) return;
    std::printf("%.*s: \"%s\", not \"%.*s\"\n", static_cast<int>(path.size()), path.data(),
                result.c_str(), static_cast<int>(wanted.size()), wanted.data());
    ++failures;
  }

  int failures = 0;

 private:
  spate::Loop& loop_;
  http::Client& client_;
};

http::CallOptions json(http::Method method) {
  http::CallOptions options{.method = method};
  http::set_json(options, "{}");
  return options;
}

}  // namespace

int main(int, char** arguments) {
  const auto loop = spate::must(spate::Loop::create());
  http::ClientOptions options{.retry = {.attempts = 4, .first_delay = spate::Nanos{1'000'000}}};
  options.base_url = "http://ada:secret@127.0.0.1:" + std::string(arguments[1]) + "/";
  auto client = spate::must(http::Client::create(*loop, std::move(options)));
  Checks checks(*loop, client);
  checks.expect("fine", {}, "200 GET Basic YWRhOnNlY3JldA== ");
  checks.expect("status/503/2", {}, "200 GET Basic YWRhOnNlY3JldA== ");
  checks.expect("status/429/3", json(http::Method::put), "200 PUT Basic YWRhOnNlY3JldA== {}");
  checks.expect("status/502/4", {}, "502 busy");
  checks.expect("status/500/1", {}, "500 busy");
  checks.expect("status/503/1/1", json(http::Method::post), "503 busy");
  checks.expect("reset/2", {}, "200 GET Basic YWRhOnNlY3JldA== ");
  checks.expect("truncated/1", {}, "200 GET Basic YWRhOnNlY3JldA== ");
  return checks.failures == 0 ? 0 : 1;
}
