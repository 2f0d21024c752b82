// Inspector: live statistics of a program's loops, as a page for a browser, as JSON, and as
// Prometheus metrics.
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
// Paths: "/" the page, "/state.json", "/metrics" (Prometheus 0.0.4 or OpenMetrics 1.0), "/events"
// (the JSON, repeatedly, as server-sent events). A loop reports its turns, busy time, longest
// callback, and its Streams with their states, queues and ages. A loop that does not respond is
// shown with the callback that is running. Put the Inspector on a loop that does not block, so that
// it can report on the others.
//
// Cost: none without viewers: no timer, no turn, no counter (but see Measure::always). With a
// viewer, each loop is queried once a period, and its callbacks and waits are measured.
// Safety: it shows addresses and has no access control. So listen() accepts only addresses of this
// host, and only requests whose Host is a name of it; otherwise a foreign web page could read it by
// DNS rebinding. To require a log-in, authenticate requests in a server of your own and pass them
// to serve().
//
// Ownership: a handle. Destroying it closes its connections and does not touch the objects that
// were added; no callback follows. The added objects must exist until then, or until remove(). The
// Inspector's loop may be destroyed first.
// Threads: the thread of its loop only; loops that were added may run on any.
// Callbacks: OnRead, called by the loop. Inside it the Inspector must not be used (asserted).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
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
class Gateway;
class InspectorCore;
class Server;
class WorkersServer;

// When the loops measure their callbacks and waits (Loop::measure_callbacks(), measure_waits()).
enum class Measure : std::uint8_t {
  while_watched,  // While "/events" has a viewer, such as the page.
  always,         // For Prometheus, whose times would otherwise not advance.
};

// Where the Inspector may be reached from.
enum class Reach : std::uint8_t { this_host, anywhere };

struct InspectorOptions {
  Nanos period{1'000'000'000};     // Between two events of "/events"; more than zero.
  // A loop that has not responded after this time is shown as blocked. Not negative.
  Nanos response_timeout{1'000'000'000};
  std::size_t max_streams = 1000;  // Listed per loop, longest queues first; all are counted.
  std::size_t max_viewers = 8;     // Viewers of "/events" [503].
  Measure measure = Measure::while_watched;
  Reach reach = Reach::this_host;  // The addresses that listen() accepts.
  // Host names accepted in requests to listen(), besides IP addresses and localhost [403]:
  // "host.example".
  std::vector<std::string> hosts{};
};

using OnRead = Function<void(Readings& readings)>;

class SPATE_EXPORT Inspector {
 public:
  // Makes an empty Inspector, which may only be assigned to and destroyed.
  Inspector();
  Inspector(Inspector&& other) noexcept;
  Inspector& operator=(Inspector&& other) noexcept;
  ~Inspector();

  // Makes an Inspector. Errors: EINVAL for options out of range; ENOMEM.
  [[nodiscard("a discarded Inspector shows nothing")]]
  static Result<Inspector> create(Loop& loop, InspectorOptions options = {});

  // Adds an object. Objects are shown in the order of the calls. Names must be unique (asserted).
  void add(std::string_view name, Loop& loop);
  void add(std::string_view name, Workers& workers);
  // Adds the numbers of each worker's server. They are shown also while the worker is blocked.
  void add(std::string_view name, const WorkersServer& server);
  // These and the next must belong to the Inspector's loop, and must not be moved while added.
  void add(std::string_view name, const Server& server);
  void add(std::string_view name, const Client& client);
  void add(std::string_view name, const Gateway& gateway);  // With each of its upstreams.
  void add(std::string_view name, const ThreadPool& pool);
  // Adds numbers of the program. `read` is called for each query.
  void add(std::string_view name, OnRead read);
  // Removes the object of that name, if any. When it returns, the object is not used any more.
  void remove(std::string_view name);

  // Listens; may be called several times. Accepts 64 connections at a time. Keeps the loop alive.
  // Errors: EPERM for an address that other hosts can reach (not 127.0.0.0/8, ::1 or a unix
  // socket), unless Reach::anywhere; those of Listener::create().
  Result<Address> listen(const Address& address);
  // Responds to a request of another server of the same loop, as a route of a Router. The last
  // segment of the path selects the document, so the pattern is "/inspector/*path". There is no
  // access control here.
  void serve(Exchange exchange);

  // Returns the number of viewers of "/events".
  std::size_t viewers() const;

 private:
  explicit Inspector(std::unique_ptr<InspectorCore> core);
  std::unique_ptr<InspectorCore> core_;
};

}  // namespace spate::http
