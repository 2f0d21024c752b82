// A chat room: whatever line one guest writes, all others get. A guest who does not read is asked
// to leave instead of filling the server's memory.
#include <cstdio>
#include <list>
#include <memory>
#include <string>

#include "spate/loop.h"
#include "spate/net/connect.h"
#include "spate/net/framing.h"
#include "spate/net/listener.h"
#include "spate/net/stream.h"

using spate::Address;
using spate::Stream;

namespace {

class Room {
 public:
  void enter(Stream stream) { guests_.emplace_back(*this, std::move(stream)); }

 private:
  class Guest final : public spate::StreamHandler {
   public:
    Guest(Room& room, Stream stream) : room_(room), stream_(std::move(stream)) {
      stream_.set_limits({.low = 4'000, .high = 16'000, .max = 64'000});
      stream_.start(*this);
    }
    void hear(spate::Bytes line) { stream_.write(line); }

   private:
    std::size_t on_data(spate::Bytes bytes) override {
      const spate::Split lines =
          split(bytes, spate::Delimiter{.max = 1000, .keep_delimiter = true},
                [this](spate::Bytes line) { room_.tell_others(*this, line); });
      if (lines.broken) stream_.close();
      return lines.used;
    }
    void on_closed(std::error_code) override { room_.leave(*this); }

    Room& room_;
    Stream stream_;
  };

  void tell_others(const Guest& speaker, spate::Bytes line) {
    for (Guest& guest : guests_)
      if (&guest != &speaker) guest.hear(line);
  }
  void leave(const Guest& leaver) {
    guests_.remove_if([&leaver](const Guest& guest) { return &guest == &leaver; });
  }

  std::list<Guest> guests_;
};

class Visitor final : public spate::StreamHandler {
 public:
  Visitor(spate::Loop& loop, const Address& room, int& present) {
    connecting_ = connect(loop, room, [&](spate::Result<Stream> stream) {
      stream_ = std::move(stream).value();
      stream_.start(*this);
      ++present;
    });
  }
  void say(std::string_view line) { stream_.write(line); }
  const std::string& heard() const { return heard_; }

 private:
  std::size_t on_data(spate::Bytes bytes) override {
    heard_ += spate::text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override {}

  spate::Connecting connecting_;
  Stream stream_;
  std::string heard_;
};

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::Loop::create().value();
  Room room;
  spate::Listener listener =
      spate::Listener::create(*loop, Address::loopback_ipv4(0), [&](Stream stream, const Address&) {
        room.enter(std::move(stream));
      }).value();

  int present = 0;
  Visitor anna(*loop, listener.address(), present);
  Visitor bert(*loop, listener.address(), present);
  Visitor carl(*loop, listener.address(), present);
  while (present < 3 || listener.accepted() < 3) loop->run(spate::Run::once);

  anna.say("hello, everybody\n");
  while (bert.heard().empty() || carl.heard().empty()) loop->run(spate::Run::once);
  bert.say("hello, Anna\n");
  while (anna.heard().empty()) loop->run(spate::Run::once);

  std::printf("Anna heard: %s", anna.heard().c_str());
  std::printf("Carl heard: %s", carl.heard().c_str());
  return anna.heard() == "hello, Anna\n" ? 0 : 1;
}
