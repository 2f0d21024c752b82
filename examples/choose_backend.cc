// The same program on every backend that this machine has.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "spate/io.h"

namespace {

class Pipe {
 public:
  Pipe() { ::pipe(ends_); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  int read_end() const { return ends_[0]; }
  void write(char byte) { ::write(ends_[1], &byte, 1); }

 private:
  int ends_[2];
};

bool reads_a_pipe_on(spate::Loop& loop) {
  Pipe pipe;
  pipe.write('x');
  char received = 0;
  spate::Io io{loop, pipe.read_end(), spate::Events::read, [&received](spate::Io& self) {
                 if (::read(self.fd(), &received, 1) == 1) self.stop();
               }};
  io.start();
  loop.run();
  return received == 'x';
}

}  // namespace

int main() {
  bool all_work = true;
  for (const std::string_view name : spate::Loop::backends()) {
    spate::Result<std::unique_ptr<spate::Loop>> created = spate::Loop::create({.backend = name});
    if (!created) {
      std::printf("%s: %s\n", std::string(name).c_str(), created.error().message().c_str());
      continue;
    }
    spate::Loop& loop = **created;
    all_work &= reads_a_pipe_on(loop);
    const spate::KernelCalls calls = loop.metrics().kernel_calls;
    std::printf("%s: %llu waits, %llu changes\n", std::string(loop.backend_info().name).c_str(),
                static_cast<unsigned long long>(calls.wait),
                static_cast<unsigned long long>(calls.modify));
  }
  const spate::Result<std::unique_ptr<spate::Loop>> unknown =
      spate::Loop::create({.backend = "kqueue"});
  std::printf("kqueue: %s\n", unknown.error().message().c_str());
  return all_work && unknown.error() == spate::Error::unknown_backend ? 0 : 1;
}
