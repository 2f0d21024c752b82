// How bytes come and go.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "sim/parity/stage.h"
#include "spate/net/relay.h"

namespace spate::parity {

namespace {

std::string text_of_size(std::size_t size) {
  std::string text;
  while (text.size() < size) text += static_cast<char>('a' + text.size() * 7 % 23);
  return text;
}

// Opens a file of so many bytes.
int file_of_size(std::size_t size) {
  std::FILE* file = std::tmpfile();
  const std::string text = text_of_size(size);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
  const int fd = ::dup(::fileno(file));
  std::fclose(file);
  return fd;
}

// A client and a server, and between them two unconnected ends.
struct Chain {
  explicit Chain(Stage& stage)
      : client(stage.actor("client")),
        server(stage.actor("server")),
        inner(stage.actor("inner")),
        outer(stage.actor("outer")) {
    stage.connect(client, stage.listen({&inner}));
    stage.connect(outer, stage.listen({&server}));
    stage.until([this] {
      return client.is_connected && server.is_connected && inner.is_connected && outer.is_connected;
    });
  }
  bool is_open() const { return inner.stream.is_open() && outer.stream.is_open(); }

  Actor& client;
  Actor& server;
  Actor& inner;
  Actor& outer;
};

constexpr Scenario kTransfers[] = {
    {"AnEcho",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.does_with_data = [&two](Bytes bytes) { two.server.stream.write(bytes); };
       two.client.stream.write("hello");
       stage.until([&] { return two.client.received == 5; });
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"MuchAgainstAReaderThatPauses",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.pause();
       two.client.stream.write(text_of_size(4'000'000));
       two.client.stream.end();
       stage.pass(20ms);
       stage.note("queued", two.client.stream.queued() > 0 ? 1u : 0u);
       two.server.stream.resume();
       stage.until_over(two);
     },
     Weight::heavy},
    {"MuchBothWaysAtOnce",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.write(text_of_size(1'000'000));
       two.server.stream.write(text_of_size(900'000));
       two.client.stream.end();
       two.server.stream.end();
       stage.until_over(two);
     },
     Weight::heavy},
    {"MuchAgainstSmallBuffers",
     [](Stage& stage) {
       auto two = stage.connected();
       stage.note("set", two.client.stream.set_kernel_buffers(16384, 16384));
       stage.note("set", two.server.stream.set_kernel_buffers(16384, 16384));
       two.client.stream.write(text_of_size(100'000));
       two.client.stream.end();
       stage.until_over(two);
     },
     Weight::heavy},
    {"NothingWrittenIsNothing",
     [](Stage& stage) {
       auto two = stage.connected();
       stage.note("taken", two.client.stream.write("") ? 1u : 0u);
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"PiecesAreOneWrite",
     [](Stage& stage) {
       auto two = stage.connected();
       const std::array<Bytes, 3> pieces{bytes_of("one "), bytes_of(""), bytes_of("two")};
       stage.note("taken", two.client.stream.write(pieces) ? 1u : 0u);
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"WhatIsFullDrains",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.pause();
       two.client.stream.set_limits({.low = 1000, .high = 10'000});
       two.client.stream.write(text_of_size(8'000'000));
       stage.note("full", two.client.stream.is_full() ? 1u : 0u);
       two.client.does_when_drained = [&two] { two.client.stream.end(); };
       two.server.stream.resume();
       stage.until_over(two);
     },
     Weight::heavy},
    {"WhatDoesNotFitIsDropped",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.set_limits(
           {.low = 1000, .high = 1000, .max = 1000, .when_full = WhenFull::drop});
       stage.note("taken", two.client.stream.write(text_of_size(1001)) ? 1u : 0u);
       stage.note("taken", two.client.stream.write("fits") ? 1u : 0u);
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"WhatDoesNotFitEndsTheConnection",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.set_limits({.low = 1000, .high = 1000, .max = 1000});
       stage.note("taken", two.client.stream.write(text_of_size(1001)) ? 1u : 0u);
       stage.until_over(two);
     }},
    {"WhatIsLeftComesAgain",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.uses = [](Bytes bytes) { return bytes.size() < 6 ? 0 : bytes.size(); };
       two.client.stream.write("one");
       stage.pass(20ms);
       stage.note("unread", two.server.stream.unread().size());
       two.client.stream.write("two");
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"WhatIsLeftAtTheEndIsUnread",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.uses = [](Bytes) { return 0; };
       two.server.does_at_end = [&] { stage.note("unread", two.server.stream.unread().size()); };
       two.client.stream.write("incomplete");
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"TooMuchThatIsLeftEndsTheConnection",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.set_limits({.max_unread = 1000});
       two.server.uses = [](Bytes) { return 0; };
       two.client.stream.write(text_of_size(10'000));
       stage.pass(20ms);
       two.client.stream.write("more");
       stage.until_over(two);
     }},
    {"WantWaitsForEnough",
     [](Stage& stage) {
       auto two = stage.connected();
       stage.note("wants", two.server.stream.want(100) ? 1u : 0u);
       two.server.does_with_data = [&](Bytes bytes) {
         two.server.note(std::to_string(bytes.size()));
       };
       two.client.stream.write(text_of_size(99));
       stage.pass(20ms);
       two.server.note("so far nothing");
       two.client.stream.write("x");
       stage.until([&] { return two.server.received == 100; });
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"PauseInsideOnData",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.does_with_data = [&two](Bytes) { two.server.stream.pause(); };
       two.client.stream.write("one");
       stage.until([&] { return two.server.received == 3; });
       two.client.stream.write("two");
       stage.pass(20ms);
       two.server.note("resumes");
       two.server.stream.resume();
       stage.until([&] { return two.server.received == 6; });
     }},
    {"AFileIsSent",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.write("before ");
       stage.note("file", two.client.stream.send_file(file_of_size(200'000), 1000, 150'000));
       two.client.stream.write(" behind");
       two.client.stream.end();
       stage.until_over(two);
     },
     Weight::heavy},
    {"AFileThatIsTooShortEndsTheConnection",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.uses = [](Bytes bytes) { return bytes.size(); };
       stage.note("file", two.client.stream.send_file(file_of_size(100), 0, 200));
       stage.until_over(two);
     }},
    {"OptionsOfTcp",
     [](Stage& stage) {
       auto two = stage.connected();
       stage.note("no delay", two.client.stream.set_no_delay(false));
       stage.note("keep alive", two.client.stream.set_keep_alive(10s, 2s, 3));
       stage.note("timeout", two.client.stream.set_user_timeout(5s));
       stage.note("quick", two.client.stream.set_quick_ack(true));
       stage.note("same", two.client.stream.local_address() == two.server.stream.peer_address());
       stage.note("same", two.client.stream.peer_address() == two.server.stream.local_address());
     }},
    {"ADescriptorIsReleasedAndAdopted",
     [](Stage& stage) {
       auto two = stage.connected();
       auto fd = two.client.stream.release();
       stage.note("released", fd ? std::error_code() : fd.error());
       if (!fd) return;
       Actor& heir = stage.actor("heir");
       auto adopted = Stream::adopt(stage.loop(), *fd);
       stage.note("adopted", adopted ? std::error_code() : adopted.error());
       if (!adopted) return;
       heir.stream = std::move(*adopted);
       heir.stream.start(heir);
       two.server.stream.write("to the heir");
       two.server.stream.end();
       stage.until_over({heir, two.server});
     }},
    {"WhatIsQueuedIsNotReleased",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.pause();
       two.client.stream.write(text_of_size(8'000'000));
       auto fd = two.client.stream.release();
       stage.note("released", fd ? std::error_code() : fd.error());
       two.client.stream.abort();
     },
     Weight::heavy},
    {"APairOfUnixSockets",
     [](Stage& stage) {
       Actor& one = stage.actor("one");
       Actor& other = stage.actor("other");
       auto pair = Stream::socket_pair(stage.loop());
       if (!pair) return stage.note("pair", pair.error());
       one.stream = std::move(pair->first);
       other.stream = std::move(pair->second);
       one.stream.start(one);
       other.stream.start(other);
       one.stream.write(text_of_size(1'000'000));
       one.stream.end();
       stage.until_over({one, other});
     },
     Weight::heavy},
    {"APairOfUnixSocketsThatIsAborted",
     [](Stage& stage) {
       Actor& other = stage.actor("other");
       auto pair = Stream::socket_pair(stage.loop());
       if (!pair) return stage.note("pair", pair.error());
       other.stream = std::move(pair->second);
       other.stream.start(other);
       pair->first.abort();
       stage.until([&] { return other.is_over; });
     }},
    {"DescriptorsPassThroughAPair",
     [](Stage& stage) {
       Actor& one = stage.actor("one");
       Actor& other = stage.actor("other");
       auto pair = Stream::socket_pair(stage.loop());
       auto passed = Stream::socket_pair(stage.loop());
       if (!pair || !passed) return stage.note("no pair");
       one.stream = std::move(pair->first);
       other.stream = std::move(pair->second);
       one.stream.start(one);
       other.stream.start(other);
       other.stream.set_receive_descriptors(true);
       const int fds[] = {passed->first.fd(), passed->second.fd()};
       stage.note("sent", one.stream.send_descriptors(bytes_of("two"), fds));
       one.stream.end();
       stage.until_over({one, other});
     }},
    {"DescriptorsDoNotPassThroughTcp",
     [](Stage& stage) {
       auto two = stage.connected();
       const int fds[] = {two.client.stream.fd()};
       stage.note("sent", two.client.stream.send_descriptors(bytes_of("x"), fds));
     }},
    {"ARelayForwardsBothWaysAndEnds",
     [](Stage& stage) {
       const Chain chain(stage);
       const auto& [client, server, inner, outer] = chain;
       if (!chain.is_open()) return stage.note("no relay");
       bool is_over = false;
       auto relaying =
           relay(std::move(inner.stream), std::move(outer.stream), [&](const RelayResult& result) {
             stage.note("forth", result.forth);
             stage.note("back", result.back);
             is_over = true;
           });
       server.stream.set_half_open(true);
       server.does_at_end = [&server] {
         server.stream.write("an answer");
         server.stream.end();
       };
       client.stream.set_half_open(true);
       client.stream.write("a question");
       client.stream.end();
       stage.until([&] { return is_over && server.is_over && client.is_over; });
     }},
    {"ARelayWhoseClientAborts",
     [](Stage& stage) {
       const Chain chain(stage);
       const auto& [client, server, inner, outer] = chain;
       if (!chain.is_open()) return stage.note("no relay");
       bool is_over = false;
       auto relaying = relay(std::move(inner.stream), std::move(outer.stream),
                             [&](const RelayResult&) { is_over = true; });
       client.stream.abort();
       stage.until([&] { return is_over && server.is_over; });
     }},
};

}  // namespace

std::span<const Scenario> transfers() { return kTransfers; }

}  // namespace spate::parity
