#include "chaos/neighbour.h"

#include <sys/socket.h>

#include <utility>

#include "chaos/channel.h"
#include "chaos/verdict.h"
#include "chaos/world.h"

namespace spate::chaos {

namespace {

constexpr int kTurns = 4;

}  // namespace

bool Neighbour::open() {
  if (loop_ != nullptr) return true;
  int fds[2];
  LoopOptions options;
  options.backend = backend_;
  options.clock = &world_.clock();
  auto loop = Loop::create(options);
  if (!loop || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return false;
  loop_ = std::move(*loop);
  auto asker = Stream::adopt(world_.loop(), fds[0]);
  auto answerer = Stream::adopt(*loop_, fds[1]);
  check(asker && answerer, "adopted", "a socket is refused");
  asker_ = std::move(*asker);
  answerer_ = std::move(*answerer);
  const auto on_answer = [this, token = world_.quiet_token()](Bytes bytes) {
    world_.moved();
    answered_ += bytes.size();
    return bytes.size();
  };
  const auto on_asked = [this, token = world_.quiet_token()](Bytes bytes) {
    return on_question(bytes);
  };
  check(!asker_.start({.on_data = on_answer}), "started", "a stream does not start");
  check(!answerer_.start({.on_data = on_asked}), "started", "a stream does not start");
  return true;
}

// It may run the first loop, which is running this one.
std::size_t Neighbour::on_question(Bytes bytes) {
  world_.moved();
  heard_ += bytes.size();
  check(answerer_.write(bytes), "answer_is_taken", "refused");
  world_.visit({.where = Where::done});
  return bytes.size();
}

// A question is sent before the other loop runs, also inside a callback of the first one. Questions
// that are asked inside an answer arrive after it.
void Neighbour::act(const Step& step) {
  if (!world_.is_fair() || world_.is_friendly() || !open()) return;
  const std::size_t size = 1 + step.a % 2000;
  check(asker_.write(pattern(0, 0, size)), "question_is_taken", "refused");
  asked_ += size;
  if (loop_->depth() > 0) return;
  for (int i = 0; i < kTurns; ++i) {
    const std::size_t before = asked_;
    check(!loop_->run(Run::no_wait), "run_succeeds", "the other loop");
    if (i == 0) check(heard_ >= before, "asks_at_once", "%zu of %zu bytes", heard_, before);
  }
}

void Neighbour::turn() {
  if (loop_ != nullptr && loop_->depth() == 0)
    check(!loop_->run(Run::no_wait), "run_succeeds", "the other loop");
}

void Neighbour::check_settled() {
  check(heard_ == asked_ && answered_ == asked_, "answers_come", "%zu asked, %zu heard, %zu back",
        asked_, heard_, answered_);
}

void Neighbour::after_fork() {
  if (loop_ != nullptr) check(!loop_->after_fork(), "after_fork", "the other loop");
}

void Neighbour::close() {
  asker_ = Stream();
  answerer_ = Stream();
  loop_.reset();
}

}  // namespace spate::chaos
