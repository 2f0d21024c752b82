#include "spate/coro/run.h"
#include "spate/coro/time.h"

static spate::coro::Task<bool> wait_once() {
  co_await spate::coro::sleep(std::chrono::milliseconds(1));
  co_return false;
}

static spate::coro::Task<void> wait_until_done() {
  for (;;) {
    const bool has_more = co_await wait_once();
    if (!has_more) break;
  }
}

int main() {
  auto loop = spate::must(spate::Loop::create());
  spate::coro::run(*loop, wait_until_done());
}
