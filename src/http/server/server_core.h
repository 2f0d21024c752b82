// ServerCore: the state behind a Server: its listeners, its connections, the exchanges in progress,
// and the timer that checks them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "http/codec/head.h"
#include "http/server/exchange_pool.h"
#include "http/server/kept_function.h"
#include "http/server/lifetime.h"
#include "http/server/server_counters.h"
#include "http/server/upgraded_connections.h"
#include "spate/function.h"
#include "spate/hooks.h"
#include "spate/http/server.h"
#include "spate/loop.h"
#include "spate/net/listener.h"
#include "spate/timer.h"

namespace spate::http {

class HeadWriter;
class ServerConnection;

class ServerCore {
 public:
  // Returns whether create() accepts the options.
  static bool are_valid(const ServerOptions& options);
  // Exactly one of `service` and `on_request` is set.
  static Result<std::unique_ptr<ServerCore>> create(Loop& loop, Service* service,
                                                    OnRequest on_request, ServerOptions options);
  ServerCore(const ServerCore&) = delete;
  ServerCore& operator=(const ServerCore&) = delete;
  ~ServerCore();

  // Sets a default for max_unsent: many connections that do not read would otherwise use up the
  // kernel's memory.
  static ListenOptions bounded(ListenOptions options);

  // ---- the functions of Server

  Result<Address> listen(const Address& address, const ListenOptions& options);
  Address address() const;
  // `peer` is its address, if a proxy sent it.
  void add(Stream stream, std::unique_ptr<Address> peer = nullptr);
  // Adds an accepted connection, after the TLS handshake if the server has TLS.
  void accept(Stream stream, const Address& peer);
  void drain(Nanos grace, Function<void()> done) { drain(grace, grace / 2, std::move(done)); }
  // `notice`: how long, but at most a second, a connection without a request may still send one.
  void drain(Nanos grace, Nanos notice, Function<void()> done);
  // Any thread may read it.
  const ServerCounters& counters() const { return counters_; }
  // Returns whether it has neither a connection, nor a record to log.
  bool is_idle() const {
    return connections_.empty() && handshakes_ == 0 && upgraded_.are_gone() && due_.empty();
  }
  // Resets all connections; reports `error` to exchanges and upgraded connections.
  void abort_all(std::error_code error);

  // ---- called by connections

  Loop& loop() const { return loop_; }
  const ServerOptions& options() const { return options_; }
  const HeadLimits& head_limits() const { return head_limits_; }
  ExchangePool& pool() { return *pool_; }
  bool is_draining() const { return is_draining_; }
  void serve(Exchange exchange);
  // Adds a connection that turned out to use HTTP/2. `peer` is its address, if known already.
  void add_http2(Stream stream, std::unique_ptr<Address> peer);
  // Returns whether a connection begins with a PROXY protocol header.
  bool expects_proxy_header(const Stream& stream) const;
  // Writes the begin of a header section: the status line, Date (at most a second old), and Server.
  void begin_head(HeadWriter& writer, Status status);
  // Return the values of these fields.
  std::string_view date();
  std::string_view name() const { return options_.server_name; }

  // Returns whether the peer is kept: the log reports it also after the connection is lost, and
  // whether it is trusted must not change then.
  bool keeps_peers() const {
    return static_cast<bool>(log_) || !options_.trusted_proxies.empty();
  }
  // Returns whether a connection is not over a network. False without trusted proxies, which alone
  // need it.
  bool is_local(const Stream& stream) const;
  // Returns the address of the client of a request (Request::client()).
  Address client_of(const FieldsView& fields, const Address& peer, bool is_local) const;
  // Returns the loop's time, which is read again if the exchange is logged or measured.
  Nanos time_of_request();
  // Adds an exchange that continues after the callback that delivered it, to be checked once a
  // second. False if it was listed already.
  bool list(ExchangeState& state);
  // Removes it. False if it was not listed.
  bool unlist(ExchangeState& state);
  // Schedules a call of its wire's settle() by the loop.
  void settle_later(ExchangeState& state);

  // Ends an exchange; every exchange ends here. `error` is set if it ended prematurely.
  //
  // Counts and logs it, and calls its handler's on_closed(). Called by the loop, never from inside
  // a user's call. `carrier` is its wire's carrier. May destroy the carrier and this.
  void conclude(ExchangeState& state, std::error_code error, Lifetime& carrier);
  // As conclude(), from inside a user's call: the handler is not called, and the loop logs it.
  void conclude_later(ExchangeState& state, std::error_code error);

  // Called inside a catch block: an exception left user code that was called for `request`.
  void report_exception(const Request& request) noexcept;

  void count_refused() { counters_.refused.add(1); }
  // Schedules closing of connections that have been idle for a while. While draining.
  void close_idle_soon();
  // While draining: a connection may send a request until it is closed.
  void give_notice() { grace_.restart(std::min(drained_by_ - loop_.now(), notice_)); }
  // Called when the connection is destroyed.
  void forget(ServerConnection& connection);

  // ---- called by WebSockets

  UpgradedList& upgraded() { return upgraded_; }
  void on_upgraded_closed() { note_one_less(); }

 private:
  ServerCore(Loop& loop, Service* service, ServerOptions options);
  template <class Visit>
  void visit_connections(Visit visit);
  void link(ServerConnection& connection);
  bool has_drained() const {
    return is_draining_ && connections_.empty() && handshakes_ == 0 && upgraded_.are_gone();
  }
  void read_header(Stream stream, const Address& peer);
  void on_header(Result<Stream> plain, const Address& peer);
  void accept_secured(Stream stream, const Address& peer);
  void lose_handshake(const TlsFailure& failure, const Address& peer);
  void note_one_less();
  void prepare_lines();
  inline void keep_lines_fresh();
  void tick();
  void close_all();
  void settle_soon();
  void settle();
  void settle_exchanges();
  void close_idle();
  void end_grace();
  void count_end(const ExchangeState& state);
  bool log_parting(ExchangeState& state, std::error_code error, Lifetime& carrier);
  // Whether a function is called with the record of its end.
  bool is_logged(const ExchangeState& state) const;
  void log(ExchangeState& state, std::error_code error, Nanos ended);
  void log_kept(ExchangeState& state);
  static void drop_kept(DueExchanges& due);

  Loop& loop_;
  Service* service_;
  KeptFunction<OnRequest> on_request_;
  KeptFunction<decltype(ServerOptions::log)> log_;
  KeptFunction<decltype(ServerOptions::on_exception)> on_exception_;
  KeptFunction<OnTlsFailure> on_tls_failure_;
  ServerOptions options_;
  HeadLimits head_limits_;
  ExchangePool* pool_ = nullptr;
  std::vector<Listener> listeners_;
  Function<void(Stream stream, const Address& peer)> shake_hands_;
  List<ServerConnection> connections_;
  ServerConnection* next_visited_ = nullptr;
  std::list<Connecting> proxy_headers_;  // Being read, before TLS.
  std::size_t handshakes_ = 0;            // In progress, with these.
  UpgradedList upgraded_;
  ExchangesInProgress in_progress_;  // Checked once a second.
  DueExchanges due_;                 // To be settled, or to be logged if detached from their wire.
  ServerCounters counters_;
  std::string prepared_lines_;     // The lines for 200 (OK), and those after the status line for
                                   // any status.
  std::int64_t prepared_in_ = -1;  // The second for which they were made.

  Timer tick_;
  Timer settle_;
  Timer grace_;  // For drain(): end of the notice period, then of the grace.
  Cleanup end_of_loop_;
  Nanos drained_by_{0};
  Nanos notice_{0};
  bool is_draining_ = false;
  bool reads_clock_ = false;  // For each request.
  unsigned turns_to_idle_ = 0;  // Turns until idle connections are closed; 0: not scheduled.
  std::vector<Function<void()>> on_drained_;  // The callbacks passed to drain().
  Lifetime lifetime_;
};

}  // namespace spate::http
