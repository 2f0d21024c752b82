// Messages in each of the framings arrive unchanged, in Worlds with all kinds of faults: in pieces
// of any size, or not at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "spate/net/bytes.h"
#include "spate/net/framing.h"
#include "spate/net/server.h"
#include "spate/timer.h"
#include "swarms/swarm.h"
#include "swarms/weather.h"

namespace spate::testing {
namespace {

using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kMessagePort = 7004;
constexpr Nanos kMessageTrouble = 1min;
constexpr std::size_t kMostMessage = 3000;
constexpr std::size_t kNumberSize = 4;

enum class FramingMistake : std::uint8_t { none, forgets_what_is_left };

using AnyFraming = std::variant<Delimiter, LengthField, FixedSize>;

LengthField drawn_length(World& world) {
  constexpr std::size_t kWidths[] = {2, 3, 4, 8};
  LengthField field{.width = kWidths[world.draw(4)],
                    .order = world.draw(2) == 0 ? ByteOrder::big : ByteOrder::little,
                    .offset = world.draw(3),
                    .after = world.draw(3),
                    .max = kMostMessage};
  if (world.draw(2) == 0)
    field.adjustment = -static_cast<std::int64_t>(field.offset + field.width + field.after);
  return field;
}

AnyFraming drawn_framing(World& world) {
  constexpr std::string_view kDelimiters[] = {"\n", "\r\n", "aab", "----"};
  switch (world.draw(3)) {
    case 0:
      return Delimiter{.delimiter = kDelimiters[world.draw(4)], .max = kMostMessage};
    case 1:
      return drawn_length(world);
    default:
      return FixedSize{1 + world.draw(kMostMessage)};
  }
}

// Returns a message without the delimiter, and without a part of it at the end.
std::string drawn_message(World& world, std::size_t size) {
  std::string message;
  for (std::uint64_t drawn = world.draw(1000); message.size() < size; drawn = drawn * 7 + 3)
    message += static_cast<char>('c' + drawn % 23);
  return message;
}

// Returns the message as it is sent.
std::string framed(const AnyFraming& framing, const std::string& message) {
  if (const auto* line = std::get_if<Delimiter>(&framing))
    return message + std::string(line->delimiter);
  const auto* field = std::get_if<LengthField>(&framing);
  if (field == nullptr) return message;
  std::string text(field->offset + field->width + field->after, 'h');
  std::byte prefix[8];
  LengthField honest = *field;
  honest.max = SIZE_MAX;  // Sends messages that are too long nevertheless.
  sim::always(honest.write(message.size(), prefix), "the length can be written");
  for (std::size_t i = 0; i < field->width; ++i)
    text[field->offset + i] = static_cast<char>(prefix[i]);
  return text + message;
}

// The messages of one connection, and how many arrived.
struct Conversation {
  AnyFraming framing;
  std::vector<std::string> messages;
  bool has_too_long = false;  // The last one.
  std::size_t heard = 0;
  bool was_broken = false;

  std::size_t good() const { return messages.size() - (has_too_long ? 1 : 0); }
  bool is_over() const { return has_too_long ? was_broken : heard == messages.size(); }
};

Conversation drawn_conversation(World& world) {
  Conversation conversation{.framing = drawn_framing(world), .messages = {}};
  const auto* fixed = std::get_if<FixedSize>(&conversation.framing);
  const std::size_t most = world.draw(2) == 0 ? kMostMessage : 20;
  for (std::size_t count = 1 + world.draw(20); conversation.messages.size() < count;)
    conversation.messages.push_back(
        drawn_message(world, fixed != nullptr ? fixed->size : world.draw(most + 1)));
  conversation.has_too_long = fixed == nullptr && world.draw(4) == 0;
  if (conversation.has_too_long)
    conversation.messages.back() = drawn_message(world, kMostMessage + 1 + world.draw(2000));
  return conversation;
}

// Shared by the server and the client.
struct Talk {
  World& world;
  FramingMistake mistake;
  // By the number at the start of a connection.
  std::vector<std::shared_ptr<Conversation>> all;
};

// Splits its input into messages, and compares them.
class Hearer : public Session {
 public:
  explicit Hearer(Talk& talk) : talk_(talk) {}

  void on_open() override {
    stream().set_idle_timeout(20s);
    stream().set_half_open(true);
  }
  std::size_t on_data(Bytes bytes) override {
    if (conversation_ != nullptr) return listen(bytes);
    if (bytes.size() < kNumberSize) return 0;
    begin(text_of(bytes.first(kNumberSize)));
    return kNumberSize + listen(bytes.subspan(kNumberSize));
  }
  void on_end() override {
    if (conversation_ == nullptr) return stream().close();
    Conversation& all = *conversation_;
    if (all.is_over()) sim::always(stream().unread().empty(), "nothing is left behind the last");
    stream().write(all.heard == all.messages.size() ? "all" : "not all");
    stream().close();
  }

 private:
  void begin(std::string_view number) {
    const int index = std::atoi(std::string(number).c_str()) - 1000;
    conversation_ = talk_.all.at(static_cast<std::size_t>(index));
    framing_ = conversation_->framing;
  }
  std::size_t listen(Bytes bytes) {
    const Split done = std::visit(
        [&](auto& framing) {
          return split(bytes, framing, [this](Bytes message) { hear(message); });
        },
        framing_);
    if (done.broken) return refuse(bytes.size());
    if (talk_.world.draw(2) == 0) stream().want(done.wanted);
    sim::sometimes(done.used == 0, "less than a message comes");
    const bool forgets = talk_.mistake == FramingMistake::forgets_what_is_left;
    return forgets ? bytes.size() : done.used;
  }
  void hear(Bytes message) {
    Conversation& all = *conversation_;
    const bool is_next = all.heard < all.good() && all.messages[all.heard] == text_of(message);
    sim::always(is_next, "messages come in order, and whole");
    ++all.heard;
  }
  std::size_t refuse(std::size_t count) {
    Conversation& all = *conversation_;
    sim::always(all.has_too_long && all.heard == all.good(),
                "only what is too long is refused, and all before it has come");
    all.was_broken = true;
    sim::sometimes(true, "what is too long is refused");
    stream().close();
    return count;
  }

  Talk& talk_;
  std::shared_ptr<Conversation> conversation_;
  AnyFraming framing_;
};

// Sends a conversation in pieces, and starts a new one when it is over, complete or not.
class Teller final : public StreamHandler {
 public:
  Teller(Talk& talk, Loop& loop, const Address& server)
      : talk_(talk), world_(talk.world), loop_(loop), server_(server), next_(loop, [this] {
          go_on();
        }) {
    next_.start(0s);
  }
  bool is_done() const { return is_done_; }

  void on_connected() override { go_on(); }
  std::size_t on_data(Bytes bytes) override {
    answer_ += text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code error) override {
    Conversation& all = *talk_.all.back();
    sim::always(answer_.empty() || error || answer_ == (all.is_over() ? "all" : "not all") ||
                    all.was_broken,
                "an answer is the truth");
    sim::sometimes(!all.is_over() && all.heard != 0, "a conversation is broken off");
    sim::sometimes(all.is_over() && all.messages.size() > 10, "a long conversation ends well");
    is_done_ = began_ > kMessageTrouble + 1s;
    if (is_done_) {
      sim::always(all.is_over(), "all comes when all is well");
    } else {
      next_.start(drawn_span(world_, 5s));
    }
    stream_ = Stream();
  }

 private:
  void go_on() {
    if (!stream_.is_open()) return begin();
    if (unsent_.empty()) return stream_.end();
    const std::size_t most = world_.draw(4) == 0 ? 20 : 4000;
    const std::size_t count = std::min(unsent_.size(), 1 + world_.draw(most));
    if (!stream_.write(std::string_view(unsent_).substr(0, count))) return;
    unsent_.erase(0, count);
    next_.start(world_.draw(2) == 0 ? 0s : drawn_span(world_, 100ms));
  }
  void begin() {
    unsent_ = std::to_string(1000 + talk_.all.size());
    talk_.all.push_back(std::make_shared<Conversation>(drawn_conversation(world_)));
    const Conversation& now = *talk_.all.back();
    for (const std::string& message : now.messages) unsent_ += framed(now.framing, message);
    answer_.clear();
    began_ = world_.now();
    if (stream_.connect(loop_, server_, *this, {.timeout = 5s})) return next_.start(1s), void();
    stream_.set_idle_timeout(20s);
  }

  Talk& talk_;
  World& world_;
  Loop& loop_;
  const Address server_;
  std::string unsent_;
  std::string answer_;
  Nanos began_{0};
  bool is_done_ = false;
  Timer next_;
  Stream stream_;
};

void play_messages(World& world, FramingMistake mistake) {
  Host& server = world.add_host("server");
  Host& client = world.add_host("client");
  Talk talk{world, mistake, {}};
  server.boot([&](Loop& loop) {
    auto serving = serve<Hearer>(loop, Address::any_ipv6(kMessagePort), std::ref(talk));
    return serving ? std::move(*serving) : Server<Hearer>();
  });
  draw_weather(world, server, client, kMessageTrouble);
  world.at(kMessageTrouble, [&] {
    server.resume();
    if (server.is_up()) server.crash();
    server.restart();
  });
  {
    const auto teller = client.run([&](Loop& loop) {
      return std::make_unique<Teller>(talk, loop, server.address(kMessagePort));
    });
    const Outcome end = world.run_until([&] { return teller->is_done(); }, 30min);
    sim::always(end == Outcome::done, "a conversation ends");
  }
  world.run_for(30min);
  sim::always(server.open_descriptors() <= 4, "nothing is left open");
}

SPATE_SWARM(AMessageComesAsItWasSent, 1200,
            [](World& world) { play_messages(world, FramingMistake::none); })

TEST(SimSwarmDefects, LostLeftoverOfMessageIsDetected) {
  expect_found(20, "only what is too long is refused, and all before it has come",
               [](World& world) { play_messages(world, FramingMistake::forgets_what_is_left); });
}

}  // namespace
}  // namespace spate::testing
