// Connections that are established, and those that are not.
#include <unistd.h>

#include <optional>
#include <string>

#include "sim/parity/stage.h"
#include "spate/net/connect.h"
#include "support/closed_port.h"
#include "support/own_loopback.h"

namespace spate::parity {

using testing::closed_ipv4;
using testing::closed_ipv6;

namespace {

// A name used by this process only.
Address unix_name(std::string_view purpose) {
  return *Address::abstract("spate-parity-" + std::to_string(::getpid()) + '-' +
                            std::string(purpose));
}

// Two clients, and the actors that accept the first and the second connection of a listener.
struct TwoClients {
  explicit TwoClients(Stage& stage)
      : one(stage.actor("one")),
        two(stage.actor("two")),
        first(stage.actor("first")),
        second(stage.actor("second")) {}

  Actor& one;
  Actor& two;
  Actor& first;
  Actor& second;
};

// A client in the backlog of a listener that does not accept.
Actor& client_that_waits(Stage& stage, Listener& listener) {
  Actor& client = stage.actor("client");
  listener.pause();
  stage.connect(client, listener);
  stage.until([&] { return client.is_connected; });
  return client;
}

constexpr Scenario kArrivals[] = {
    {"WhereNobodyListens",
     [](Stage& stage) {
       Actor& client = stage.actor("client");
       stage.note("begun", client.stream.connect(stage.loop(), closed_ipv4(), client));
       client.stream.write("hello");
       stage.until([&] { return client.is_over; });
     }},
    {"WhereNobodyListensOverIPv6", [](Stage& stage) { stage.try_to_connect({closed_ipv6()}); }},
    {"WithoutAnAddress", [](Stage& stage) { stage.try_to_connect({}); }},
    {"TheSecondAddressIsTheRightOne",
     [](Stage& stage) {
       Actor& server = stage.actor("server");
       Listener& listener = stage.listen({&server});
       stage.try_to_connect({closed_ipv4(), listener.address()});
       stage.until([&] { return server.is_over; });
     }},
    {"NoneOfTwoAddressesIsRight",
     [](Stage& stage) { stage.try_to_connect({closed_ipv4(), closed_ipv4()}); }},
    {"FromAnAddressOfAnotherFamily",
     [](Stage& stage) {
       stage.try_to_connect({closed_ipv4()}, {.local = Address::loopback_ipv6(0)});
     }},
    {"FromAnAddressThatIsNotOurs",
     [](Stage& stage) {
       stage.try_to_connect({closed_ipv4()}, {.local = *Address::parse("192.0.2.1:0")});
     }},
    {"FromAnAddressThatIsOurs",
     [](Stage& stage) {
       Actor& server = stage.actor("server");
       Listener& listener = stage.listen({&server});
       stage.try_to_connect({listener.address()}, {.local = Address::loopback_ipv4(0)});
       stage.until([&] { return server.is_over; });
     }},
    {"AnAttemptThatIsCancelledSaysNothing",
     [](Stage& stage) {
       Listener& listener = stage.listen({});
       auto connecting = connect(stage.loop(), listener.address(),
                                 [&](Result<Stream>) { stage.note("told nevertheless"); });
       stage.note("pending", connecting.is_pending() ? 1u : 0u);
       connecting.cancel();
       stage.pass(20ms);
     }},
    {"APortThatIsTaken",
     [](Stage& stage) {
       Listener& listener = stage.listen({});
       const auto again =
           Listener::create(stage.loop(), listener.address(), [](Stream, const Address&) {});
       stage.note("listening", again ? std::error_code() : again.error());
     }},
    {"APortThatIsShared",
     [](Stage& stage) {
       Listener& listener = stage.listen({}, {.reuse_port = true});
       const auto again = Listener::create(stage.loop(), listener.address(),
                                           [](Stream, const Address&) {}, {.reuse_port = true});
       stage.note("listening", again ? std::error_code() : again.error());
     }},
    {"AnAddressThatIsNotOurs",
     [](Stage& stage) {
       const auto listener = Listener::create(stage.loop(), *Address::parse("192.0.2.1:0"),
                                              [](Stream, const Address&) {});
       stage.note("listening", listener ? std::error_code() : listener.error());
     }},
    {"AnAddressWithoutAFamily",
     [](Stage& stage) {
       const auto listener =
           Listener::create(stage.loop(), Address(), [](Stream, const Address&) {});
       stage.note("listening", listener ? std::error_code() : listener.error());
     }},
    {"AListenerThatIsClosedRefuses",
     [](Stage& stage) {
       Listener& listener = stage.listen({});
       const Address address = listener.address();
       listener.close();
       stage.until([&] { return !listener.is_open(); });
       stage.try_to_connect({address});
     }},
    {"AListenerThatIsDestroyedRefuses",
     [](Stage& stage) {
       Listener& listener = stage.listen({});
       const Address address = listener.address();
       listener = Listener();
       stage.try_to_connect({address});
     }},
    {"APausedListenerAcceptsLater",
     [](Stage& stage) {
       Actor& client = stage.actor("client");
       Actor& server = stage.actor("server");
       Listener& listener = stage.listen({&server});
       listener.pause();
       stage.connect(client, listener);
       client.stream.write("early");
       stage.until([&] { return client.is_connected; });
       stage.pass(20ms);
       stage.note("accepted", listener.accepted());
       listener.resume();
       stage.until([&] { return server.received == 5; });
       stage.note("accepted", listener.accepted());
     }},
    {"WhoWaitsInTheBacklogOfAListenerThatGoesIsReset",
     [](Stage& stage) {
       Listener& listener = stage.listen({});
       Actor& client = client_that_waits(stage, listener);
       listener = Listener();
       stage.until([&] { return client.is_over; });
     }},
    {"WhoWaitsInTheBacklogOfAListenerThatClosesIsServed",
     [](Stage& stage) {
       Actor& server = stage.actor("server");
       Listener& listener = stage.listen({&server});
       client_that_waits(stage, listener);
       listener.close();
       stage.until([&] { return server.is_connected && !listener.is_open(); });
     }},
    {"AFullBacklogLetsConnectingTimeOut",
     [](Stage& stage) {
       Listener& listener = stage.listen({}, {.backlog = 1});
       listener.pause();
       Actor& one = stage.actor("one");
       Actor& two = stage.actor("two");
       stage.connect(one, listener);
       stage.connect(two, listener);
       stage.until([&] { return one.is_connected && two.is_connected; });
       stage.try_to_connect({listener.address()}, {.timeout = 100ms});
     }},
    {"AFullBacklogIsAcceptedLater",
     [](Stage& stage) {
       const auto [one, two, first, second] = TwoClients(stage);
       Listener& listener = stage.listen({&first, &second}, {.backlog = 1});
       listener.pause();
       stage.connect(one, listener);
       stage.until([&] { return one.is_connected; });
       stage.connect(two, listener);
       stage.until([&] { return two.is_connected; });
       one.stream.write("early");
       two.stream.end();
       listener.resume();
       stage.until([&] { return first.received == 5 && second.is_over; });
       stage.try_to_connect({listener.address()});
     }},
    {"AFullBacklogOfAUnixSocketRefusesAtOnce",
     [](Stage& stage) {
       const auto [one, two, first, second] = TwoClients(stage);
       Listener& listener = stage.listen_at(unix_name("full"), {&first, &second}, {.backlog = 1});
       listener.pause();
       stage.connect(one, listener);
       stage.connect(two, listener);
       stage.until([&] { return one.is_connected && two.is_connected; });
       stage.try_to_connect({listener.address()});
       one.stream.write("early");
       listener.resume();
       stage.until([&] { return first.received == 5 && second.is_connected; });
       stage.try_to_connect({listener.address()});
     }},
    {"WhoWaitsAtAUnixListenerThatGoesIsReset",
     [](Stage& stage) {
       Listener& listener = stage.listen_at(unix_name("goes"), {});
       const Address address = listener.address();
       Actor& client = client_that_waits(stage, listener);
       listener = Listener();
       stage.until([&] { return client.is_over; });
       stage.try_to_connect({address});
     }},
    {"AUnixNameThatIsTaken",
     [](Stage& stage) {
       stage.listen_at(unix_name("taken"), {});
       stage.note("listens", stage.listen_at(unix_name("taken"), {}).is_open() ? 1u : 0u);
     }},
    {"MoreThanTheMostConnectionsWait",
     [](Stage& stage) {
       const auto [one, two, first, second] = TwoClients(stage);
       Listener& listener = stage.listen({&first, &second}, {.max_connections = 1});
       stage.connect(one, listener);
       stage.until([&] { return first.is_connected; });
       stage.connect(two, listener);
       stage.until([&] { return two.is_connected; });
       stage.pass(20ms);
       stage.note("accepted", listener.accepted());
       one.stream.end();
       stage.until([&] { return second.is_connected; });
       stage.note("accepted", listener.accepted());
     }},
    {"AClientOfIPv4AtAListenerOfIPv6",
     [](Stage& stage) {
       std::optional<std::string> peer;
       auto listener = Listener::create(stage.loop(), Address::any_ipv6(0),
                                        [&](Stream, const Address& from) { peer = from.host(); });
       if (!listener) return stage.note("listening", listener.error());
       stage.try_to_connect({Address::loopback_ipv4(listener->address().port())});
       stage.until([&] { return peer.has_value(); });
       stage.note(peer.value_or("nobody"));
     }},
    {"AClientOfIPv4AtAListenerOfIPv6Only",
     [](Stage& stage) {
       auto listener = Listener::create(stage.loop(), Address::any_ipv6(0),
                                        [](Stream, const Address&) {}, {.v6_only = true});
       if (!listener) return stage.note("listening", listener.error());
       // Another program may listen at this port of 127.0.0.1.
       stage.try_to_connect({testing::own_address(listener->address().port())});
     }},
    {"WithoutDescriptorsNobodyConnects",
     [](Stage& stage) {
       stage.set_exhausted(true);
       stage.try_to_connect({closed_ipv4()});
       stage.set_exhausted(false);
     }},
    {"WithoutDescriptorsNobodyListens",
     [](Stage& stage) {
       stage.set_exhausted(true);
       stage.listen({});
       stage.datagram();
       auto pair = Stream::socket_pair(stage.loop());
       stage.note("pair", pair ? std::error_code() : pair.error());
       stage.set_exhausted(false);
     }},
    {"WithoutDescriptorsAcceptingWaits",
     [](Stage& stage) {
       Actor& client = stage.actor("client");
       Actor& server = stage.actor("server");
       Listener& listener = stage.listen({&server});
       listener.pause();
       stage.connect(client, listener);
       stage.until([&] { return client.is_connected; });
       stage.set_exhausted(true);
       listener.resume();
       stage.pass(20ms);
       stage.note("accepted", listener.accepted());
       stage.note("why", listener.last_error());
       stage.set_exhausted(false);
       stage.until([&] { return server.is_connected; });
     }},
    {"WhoHasGoneBeforeHeIsAcceptedHasAnAddress",
     [](Stage& stage) {
       Actor& client = stage.actor("client");
       std::optional<Address> peer;
       auto listener = Listener::create(stage.loop(), Address::loopback_ipv4(0),
                                        [&](Stream, const Address& address) { peer = address; });
       if (!listener) return stage.note("listening", listener.error());
       listener->pause();
       stage.note("begun", client.stream.connect(stage.loop(), listener->address(), client));
       stage.until([&] { return client.is_connected; });
       const Address mine = client.stream.local_address();
       client.stream.abort();
       stage.pass(20ms);
       listener->resume();
       stage.until([&] { return peer.has_value(); });
       if (peer) stage.note("its own", *peer == mine ? 1u : 0u);
     }},
    {"AListeningSocketIsReleasedAndAdopted",
     [](Stage& stage) {
       Actor& client = stage.actor("client");
       Listener& listener = stage.listen({});
       const Address address = listener.address();
       auto fd = listener.release();
       if (!fd) return stage.note("released", fd.error());
       bool is_accepted = false;
       auto heir =
           Listener::adopt(stage.loop(), *fd, [&](Stream, const Address&) { is_accepted = true; });
       if (!heir) return stage.note("adopted", heir.error());
       stage.note("same", heir->address() == address ? 1u : 0u);
       stage.note("begun", client.stream.connect(stage.loop(), address, client));
       stage.until([&] { return is_accepted && client.is_over; });
     }},
};

}  // namespace

std::span<const Scenario> arrivals() { return kArrivals; }

}  // namespace spate::parity
