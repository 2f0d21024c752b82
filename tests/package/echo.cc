// An echo server, whose size is measured. It needs the loop and streams.
#include <spate/net/server.h>

struct Echo : spate::Session {
  std::size_t on_data(spate::Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
};

int main() {
  auto loop = spate::must(spate::Loop::create());
  auto server = spate::must(spate::serve<Echo>(*loop, spate::Address::any_ipv6(7000)));
  loop->run();
}
