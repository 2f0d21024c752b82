// A chat room, with coroutines: each client must send a name within 30 seconds. Each further line
// is sent to all others.
//   coro_chat 7000          join it: nc localhost 7000
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "spate/coro/listener.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/signals.h"
#include "spate/coro/stream.h"
#include "spate/coro/time.h"
#include "spate/coro/until_stop.h"

using namespace std::chrono_literals;
namespace coro = spate::coro;
using spate::Bytes;
using spate::Result;

namespace {

// Is in the room from its construction to its destruction.
class Member {
 public:
  using Room = std::vector<Member*>;

  Member(Room& room, coro::Stream& stream, std::string name)
      : room_(room), stream_(stream), name_(std::move(name)) {
    room_.push_back(this);
    tell_others(" joined\n");
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() {
    tell_others(" left\n");
    std::erase(room_, this);
  }

  void say(Bytes line) { tell_others(": " + std::string(spate::text_of(line)) + "\n"); }

 private:
  void tell_others(const std::string& what) {
    for (Member* other : room_) {
      if (other != this) other->stream_.write(name_ + what);
    }
  }

  Room& room_;
  coro::Stream& stream_;
  std::string name_;
};

coro::Task<Result<std::string>> log_in(coro::Stream* stream) {
  stream->write("who are you?\n");
  const Bytes line = co_await coro::or_return(stream->read(spate::Delimiter{.max = 100}));
  co_return std::string(spate::text_of(line));
}

coro::Task<Result<void>> chat(coro::Stream* stream, Member::Room* room) {
  std::string name = co_await coro::or_return(coro::with_deadline(30s, log_in(stream)));
  Member member(*room, *stream, std::move(name));
  for (;;) {
    const Bytes line = co_await coro::or_return(stream->read(spate::Delimiter{.max = 1000}));
    member.say(line);
  }
}

// Disconnects a member that does not read when more than 64 kB are queued for it.
coro::Task<void> session(spate::Stream accepted, Member::Room* room) {
  coro::Stream stream(std::move(accepted));
  stream.stream().set_limits({.low = 4'000, .high = 16'000, .max = 64'000});
  const Result<void> left = co_await coro::until_stop(chat(&stream, room));
  const bool is_stopped = !left && left.error() == std::errc::operation_canceled;
  if (is_stopped) co_await stream.finish();
}

coro::Task<void> accept_all(coro::Listener* listener, coro::Scope* sessions, Member::Room* room) {
  for (;;) {
    Result<coro::Accepted> next = co_await coro::until_stop(listener->accept());
    if (!next) co_return;
    sessions->spawn(session(std::move(next->stream), room));
  }
}

coro::Task<void> serve(spate::Loop& loop, spate::Address address) {
  coro::Listener listener = spate::must(coro::Listener::create(loop, address));
  coro::Signals signals(loop);
  spate::must(signals.add(SIGTERM));
  Member::Room room;
  coro::Scope sessions(loop);
  sessions.spawn(accept_all(&listener, &sessions, &room));
  std::cout << listener.listener().address().to_string() << std::endl;
  co_await signals.next();
  co_await sessions.join(5s);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: coro_chat [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  coro::run(*loop, serve(*loop, spate::must(spate::Address::parse_listen(argv[1]))));
}
