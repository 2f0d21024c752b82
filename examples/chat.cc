// A chat room: whatever line one guest writes, all others get. A guest who does not read is asked
// to leave instead of filling the server's memory.
//   chat [port]     Join it: nc localhost 7000
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "spate/net/framing.h"
#include "spate/net/server.h"

namespace {

class Guest;

// Who is there.
struct Room {
  spate::Sessions<Guest>* guests = nullptr;
  int newcomers = 0;

  void tell(spate::Bytes line, const Guest* speaker);
};

class Guest : public spate::Session {
 public:
  explicit Guest(Room& room) : room_(room), name_("guest " + std::to_string(++room.newcomers)) {}

  void on_open() override {
    stream().set_limits({.low = 4'000, .high = 16'000, .max = 64'000});
    stream().write("you are " + name_ + "\n");
    say("has come");
  }
  std::size_t on_data(spate::Bytes bytes) override {
    const spate::Split lines =
        split(bytes, spate::Delimiter{.max = 1000},
              [this](spate::Bytes line) { say("says: " + std::string(spate::text_of(line))); });
    if (lines.broken) stream().close();
    return lines.used;
  }
  void on_closed(std::error_code) override { say("has gone"); }

 private:
  void say(const std::string& words) {
    const std::string line = name_ + " " + words + "\n";
    room_.tell(spate::bytes_of(line), this);
  }

  Room& room_;
  const std::string name_;
};

void Room::tell(spate::Bytes line, const Guest* speaker) {
  guests->for_each([&](Guest& guest) {
    if (&guest != speaker) guest.stream().write(line);
  });
}

}  // namespace

int main(int count, char** arguments) {
  const int port = count > 1 ? std::atoi(arguments[1]) : 7000;
  auto loop = spate::must(spate::Loop::create());
  Room room;
  auto server = spate::serve<Guest>(
      *loop, spate::Address::any_ipv6(static_cast<std::uint16_t>(port)), std::ref(room));
  if (!server) {
    std::fprintf(stderr, "chat: port %d: %s\n", port, server.error().message().c_str());
    return 1;
  }
  room.guests = &server->sessions();
  std::printf("%s\n", server->address().to_string().c_str());
  std::fflush(stdout);

  if (loop->on_signal(SIGTERM, [&] { server->drain(std::chrono::seconds(5)); })) return 1;
  loop->run();
}
