// The owner of a port, and the time at which it is free again.
#include "sim/parity/stage.h"
#include "spate/net/connect.h"

namespace spate::parity {

namespace {

struct Connected {
  Listener& listener;
  Stage::Two ends;
  Address at;    // The listener's address.
  Address from;  // The client's address.
};

Connected connected(Stage& stage) {
  Actor& client = stage.actor("client");
  Actor& server = stage.actor("server");
  Listener& listener = stage.listen({&server});
  // With bind() the kernel assigns an unused port; with connect() alone it may assign one that is
  // in TIME_WAIT with another peer.
  stage.connect(client, listener, {.local = Address::loopback_ipv4(0)});
  stage.until([&] { return client.is_connected && server.is_connected; });
  return {listener, {client, server}, listener.address(), client.stream.local_address()};
}

// Notes whether a new listener can bind, and is connected to.
void listen_again(Stage& stage, const Address& at) {
  Actor& client = stage.actor("another client");
  Actor& server = stage.actor("another server");
  Listener& listener = stage.listen_at(at, {&server});
  if (!listener.is_open()) return;
  stage.connect(client, listener);
  client.stream.write("hello");
  stage.until([&] { return server.received == 5; });
}

constexpr Scenario kPorts[] = {
    {"ThePortOfAServerThatHasEndedFirst",
     [](Stage& stage) {
       auto [listener, ends, at, from] = connected(stage);
       ends.server.stream.end();
       stage.until_over(ends);
       listener = Listener();
       listen_again(stage, at);
     }},
    {"ThePortOfAListenerWhoseConnectionGoesOn",
     [](Stage& stage) {
       auto [listener, ends, at, from] = connected(stage);
       listener = Listener();
       listen_again(stage, at);
       ends.client.stream.write("still here");
       stage.until([&] { return ends.server.received == 10; });
     }},
    {"ThePortOfAClientThatHasEndedFirst",
     [](Stage& stage) {
       auto [listener, ends, at, from] = connected(stage);
       ends.client.stream.end();
       stage.until_over(ends);
       listen_again(stage, from);
     }},
    {"ThePortOfAClientThatHasEndedLast",
     [](Stage& stage) {
       auto [listener, ends, at, from] = connected(stage);
       ends.server.stream.end();
       stage.until_over(ends);
       listen_again(stage, from);
     }},
    {"ThePortOfAClientThatIsConnected",
     [](Stage& stage) {
       auto [listener, ends, at, from] = connected(stage);
       listen_again(stage, from);
     }},
    {"ThePortOfAClientThatHasAborted",
     [](Stage& stage) {
       auto [listener, ends, at, from] = connected(stage);
       ends.client.stream.abort();
       stage.until([&] { return ends.server.is_over; });
       listen_again(stage, from);
     }},
    {"ConnectingFromThePortOfAConnection",
     [](Stage& stage) {
       auto [listener, ends, at, from] = connected(stage);
       stage.try_to_connect({stage.listen({}).address()}, {.local = from});
     }},
    {"ConnectingFromThePortOfAListener",
     [](Stage& stage) {
       auto [listener, ends, at, from] = connected(stage);
       stage.try_to_connect({stage.listen({}).address()}, {.local = at});
     }},
};

}  // namespace

std::span<const Scenario> ports() { return kPorts; }

}  // namespace spate::parity
