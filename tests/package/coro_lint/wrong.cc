#include "spate/coro/run.h"
#include "spate/coro/task.h"

static spate::coro::Task<bool> find_more() { co_return false; }

static spate::coro::Task<void> wait_until_done() {
  while (co_await find_more()) {
  }
}

int main() {
  auto loop = spate::must(spate::Loop::create());
  spate::coro::run(*loop, wait_until_done());
}
