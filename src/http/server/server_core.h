// ServerCore: what a Server is the handle of: its listeners, its connections, the exchanges in
// progress, and the timer that looks at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "http/codec/head.h"
#include "http/server/exchange_list.h"
#include "http/server/exchange_pool.h"
#include "http/server/guests.h"
#include "http/server/lifetime.h"
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
  // Whether create() takes them.
  static bool are_valid(const ServerOptions& options);
  // `service`, or `on_request`.
  static Result<std::unique_ptr<ServerCore>> create(Loop& loop, Service* service,
                                                    OnRequest on_request, ServerOptions options);
  ServerCore(const ServerCore&) = delete;
  ServerCore& operator=(const ServerCore&) = delete;
  ~ServerCore();

  // Connections are a server's to bound, if the user has not: many that do not read would else use
  // up the kernel's memory for all.
  static ListenOptions bounded(ListenOptions options);

  // ---- what Server's functions of the same name do

  Result<Address> listen(const Address& address, const ListenOptions& options);
  Address address() const;
  void add(Stream stream);
  // One that was accepted: where it has to speak TLS, it shakes hands first.
  void accept(Stream stream, const Address& peer);
  void drain(Nanos grace, std::move_only_function<void()> done);
  ServerMetrics metrics() const;
  // Resets what there is; exchanges and guests are told.
  void abort_all(std::error_code error);

  // ---- what connections use

  Loop& loop() const { return loop_; }
  const ServerOptions& options() const { return options_; }
  const HeadLimits& head_limits() const { return head_limits_; }
  ExchangePool& pool() { return *pool_; }
  bool is_draining() const { return is_draining_; }
  void serve(Exchange exchange);
  // One that turns out to speak HTTP/2, of whoever a proxy speaks for, if one does.
  void add_http2(Stream stream, std::unique_ptr<Address> forwarded);
  // Whether a connection begins with a header of the PROXY protocol.
  bool expects_proxy_header(const Stream& stream) const;
  // What an answer begins with: the status line, Date, of this second or the one before, and
  // Server.
  void begin_head(HeadWriter& writer, Status status);
  // The values of the same.
  std::string_view date();
  std::string_view name() const { return options_.server_name; }

  // It goes on beyond the callback that it came in: it is looked at once a second. False if it is
  // listed already.
  bool list(ExchangeState& state);
  // False if it is not listed.
  bool unlist(ExchangeState& state);
  // Has its wire's settle() called by the loop.
  void settle_later(ExchangeState& state);
  // The exchange has ended, and why if before its time.
  void note_end(const ExchangeState& state, std::error_code error);
  void count_refused() { ++metrics_.refused; }
  // The connection is going.
  void forget(ServerConnection& connection);

  // ---- what WebSockets use

  GuestList& guests() { return guests_; }
  void on_guests_gone() { note_one_less(); }

 private:
  ServerCore(Loop& loop, Service* service, OnRequest on_request, ServerOptions options);
  template <class Visit>
  void visit_connections(Visit visit);
  void link(ServerConnection& connection);
  bool has_drained() const { return is_draining_ && connections_ == nullptr && guests_.are_gone(); }
  void note_one_less();
  void prepare_lines();
  inline void keep_lines_fresh();
  void tick();
  void close_all();
  void settle_soon();
  void settle();
  void end_grace();

  Loop& loop_;
  Service* service_;
  OnRequest on_request_;
  ServerOptions options_;
  HeadLimits head_limits_;
  ExchangePool* pool_ = nullptr;
  std::vector<Listener> listeners_;
  std::move_only_function<void(Stream stream, const Address& peer)> shake_hands_;
  ServerConnection* connections_ = nullptr;
  ServerConnection* next_visited_ = nullptr;
  GuestList guests_;
  ExchangeList in_progress_;
  ExchangeList unsettled_;
  ServerMetrics metrics_;
  std::string prepared_lines_;     // That of 200 (OK), and what is behind that of any status.
  std::int64_t prepared_in_ = -1;  // The second.

  Timer tick_;
  Timer settle_;
  Timer grace_;  // Of drain(): of idle connections, then of all.
  Cleanup end_of_loop_;
  Nanos drained_by_{0};
  bool is_draining_ = false;
  std::move_only_function<void()> on_drained_;
  Lifetime lifetime_;
};

}  // namespace spate::http
