// Two shared objects, each with a copy of the library, watch one signal, and come and go in any
// order. Their paths are the arguments.
#include <dlfcn.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

int of_program = 0;

void count(int) { ++of_program; }

void expect(int found, int expected, const char* what) {
  if (found == expected) return;
  std::fprintf(stderr, "%s: %d, not %d\n", what, found, expected);
  std::exit(1);
}

void expect_program_handler(const char* when) {
  of_program = 0;
  std::raise(SIGUSR1);
  expect(of_program, 1, when);
}

class Part {
 public:
  explicit Part(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  ~Part() { dlclose(handle_); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void start() { find<void()>("start")(); }
  int turn() { return find<int()>("turn")(); }
  void stop() { find<void()>("stop")(); }

 private:
  template <class Function>
  Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

  void* handle_;
};

// The first that has started stops first, or last.
void in_each_order(const char* one, const char* other) {
  for (const bool is_first : {true, false}) {
    Part a(one);
    Part b(other);
    a.start();
    b.start();
    std::raise(SIGUSR1);
    expect(a.turn(), 1, "the copy that started first");
    expect(b.turn(), 1, "the copy that started last");
    (is_first ? a : b).stop();
    std::raise(SIGUSR1);
    expect((is_first ? b : a).turn(), 1, "the copy that is left");
    (is_first ? a : b).start();
    std::raise(SIGUSR1);
    expect(a.turn(), 1, "one of both again");
    expect(b.turn(), 1, "the other of both again");
    a.stop();
    b.stop();
    expect_program_handler("the program's own handler");
  }
}

// The code of the first is unmapped while the other one watches.
void without_the_first(const char* one, const char* other) {
  Part b(other);
  {
    Part a(one);
    a.start();
    b.start();
    a.stop();
  }
  std::raise(SIGUSR1);
  expect(b.turn(), 1, "the copy that is left alone");
  b.stop();
  expect_program_handler("the program's own handler, after one has gone");
}

// Each starts and stops in its own thread, many times.
void at_the_same_time(const char* one, const char* other) {
  Part a(one);
  Part b(other);
  const auto come_and_go = [](Part& part) {
    for (int i = 0; i < 2000; ++i) {
      part.start();
      part.stop();
    }
  };
  std::thread first([&] { come_and_go(a); });
  come_and_go(b);
  first.join();
  expect_program_handler("the program's own handler, after both have come and gone");
}

}  // namespace

int main(int, char** arguments) {
  std::signal(SIGUSR1, count);
  in_each_order(arguments[1], arguments[2]);
  without_the_first(arguments[1], arguments[2]);
  at_the_same_time(arguments[1], arguments[2]);
}
