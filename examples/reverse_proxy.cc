// A reverse proxy: clients are served by several upstreams in turn. One that cannot be reached has
// a rest, and its requests go to the next.
//   reverse_proxy 8080 http://localhost:9001 http://localhost:9002    then: curl localhost:8080
#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "spate/http/gateway.h"
#include "spate/http/server.h"

using namespace std::chrono_literals;
using spate::http::Exchange;

namespace {

class Upstreams {
 public:
  Upstreams(spate::Loop& loop, std::vector<std::string> urls) : loop_(loop) {
    for (std::string& url : urls) upstreams_.push_back({std::move(url), spate::Nanos{0}});
  }

  std::size_t size() const { return upstreams_.size(); }
  const std::string& url(std::size_t index) const { return upstreams_[index].url; }

  // Whose turn it is: the next that does not rest, or, if all do, the next.
  std::size_t choose() {
    for (std::size_t tries = 0; tries < size(); ++tries) {
      last_ = (last_ + 1) % size();
      if (upstreams_[last_].rests_until <= loop_.now()) return last_;
    }
    return last_ = (last_ + 1) % size();
  }
  void rest(std::size_t index) { upstreams_[index].rests_until = loop_.now() + 5s; }

 private:
  struct Upstream {
    std::string url;
    spate::Nanos rests_until;
  };

  spate::Loop& loop_;
  std::vector<Upstream> upstreams_;
  std::size_t last_ = 0;
};

// One request's way through the upstreams.
class Tries {
 public:
  explicit Tries(Upstreams& upstreams) : upstreams_(upstreams), current_(upstreams.choose()) {}

  const std::string& url() const { return upstreams_.url(current_); }
  std::string after(std::error_code error) {
    std::cerr << url() << ": " << error.message() << std::endl;
    upstreams_.rest(current_);
    if (++count_ == upstreams_.size()) return {};
    current_ = upstreams_.choose();
    return url();
  }

 private:
  Upstreams& upstreams_;
  std::size_t current_;
  std::size_t count_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: reverse_proxy [HOST:]PORT URL...\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  Upstreams upstreams(*loop, {argv + 2, argv + argc});
  auto gateway = spate::must(spate::http::Gateway::create(*loop));
  auto server = spate::must(spate::http::serve(*loop, address, [&](Exchange exchange) {
    Tries tries(upstreams);
    gateway.forward(std::move(exchange), tries.url(),
                    [tries](std::error_code error) mutable { return tries.after(error); });
  }));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(30s, [&] { loop->stop(); }); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
