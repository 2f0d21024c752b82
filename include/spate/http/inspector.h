// Inspector: shows what the loops of a program do while it runs: a page for a browser, the same as
// JSON, and as text for Prometheus.
//
//   auto inspector = must(http::Inspector::create(*loop));
//   inspector.add("main", *loop);
//   inspector.add("workers", *workers);
//   inspector.add("cache", [&](http::Readings& readings) {
//     readings.gauge("entries", cache.size());
//     readings.counter("misses", cache.misses());
//   });
//   must(inspector.listen(Address::loopback_ipv4(9000)));
//
// Paths: "/" the page, "/state.json", "/metrics" (Prometheus 0.0.4), "/events" (the JSON again and
// again, as server-sent events). What a loop tells: its turns, its busy time, its longest callback,
// and its Streams with their states, queues and ages. A loop that does not answer is shown with the
// callback that it is in. Put the Inspector on a loop that does not block: it tells of the others.
//
// Cost: while nobody looks, none: no timer, no turn, no counter (but see Measure::always). While
// somebody does, each loop is asked once a period, and its callbacks and waits are measured.
// Safety: it shows addresses and shuts nobody out, so listen() takes only addresses of this host,
// and requests only for the names of one (a page of a stranger's could otherwise read it, by DNS
// rebinding). To have users log in, pass serve() what they have passed.
//
// Ownership: a handle. Destroying it closes its connections and leaves what was added alone; no
// callback follows. What was added must be there until then, or until remove(). The Inspector's
// loop may be destroyed first.
// Threads: the thread of its loop only; loops that were added may run on any.
// Callbacks: OnRead, called by the loop. Inside it the Inspector must not be used (asserted).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/readings.h"
#include "spate/net/address.h"
#include "spate/time.h"

namespace spate {
class Loop;
class ThreadPool;
class Workers;
}  // namespace spate

namespace spate::http {

class Client;
class InspectorCore;
class Server;

// When the loops measure their callbacks and waits (Loop::measure_callbacks(), measure_waits()).
enum class Measure : std::uint8_t {
  while_watched,  // While somebody has "/events" open, as the page has.
  always,         // For Prometheus, whose times would stand still otherwise.
};

// From where it may be reached.
enum class Reach : std::uint8_t { this_host, anywhere };

struct InspectorOptions {
  Nanos period{1'000'000'000};     // Between two events of "/events"; more than zero.
  Nanos patience{1'000'000'000};   // A loop that has not answered by then is shown as blocked.
  std::size_t max_streams = 1000;  // Listed of each loop, those with the longest queues; all count.
  std::size_t max_viewers = 8;     // Of "/events" [503].
  Measure measure = Measure::while_watched;
  Reach reach = Reach::this_host;  // Where listen() may listen.
  // What requests to listen() may be for, beside IP addresses and localhost [403]: "host.example".
  std::vector<std::string> hosts{};
};

using OnRead = std::move_only_function<void(Readings& readings)>;

class SPATE_EXPORT Inspector {
 public:
  // Empty: may only be assigned to and destroyed.
  Inspector();
  Inspector(Inspector&& other) noexcept;
  Inspector& operator=(Inspector&& other) noexcept;
  ~Inspector();

  // Errors: EINVAL for a period that is not positive, or a negative patience; ENOMEM.
  [[nodiscard("an Inspector that nobody keeps shows nothing")]]
  static Result<Inspector> create(Loop& loop, InspectorOptions options = {});

  // What is shown, in this order. Asserted: no other has the name.
  void add(std::string_view name, Loop& loop);
  void add(std::string_view name, Workers& workers);
  // Of the Inspector's loop, as the next; they must not be moved meanwhile.
  void add(std::string_view name, const Server& server);
  void add(std::string_view name, const Client& client);
  void add(std::string_view name, const ThreadPool& pool);
  // `read` is called each time somebody looks.
  void add(std::string_view name, OnRead read);
  // Nothing if there is none of the name. When it returns, what was added is not used any more.
  void remove(std::string_view name);

  // May be called several times. Takes 64 connections at a time. Keeps the loop alive. Errors:
  // EPERM for an address that others can reach (not 127.0.0.0/8, ::1 or a unix socket), unless
  // Reach::anywhere; those of Listener::create().
  Result<Address> listen(const Address& address);
  // Answers a request that came to another server of the same loop, as a route of a Router: the
  // last segment of its path counts, so the pattern is "/inspector/*path". Nobody is shut out here.
  void serve(Exchange exchange);

  // Who has "/events" open.
  std::size_t viewers() const;

 private:
  explicit Inspector(std::unique_ptr<InspectorCore> core);
  std::unique_ptr<InspectorCore> core_;
};

}  // namespace spate::http
