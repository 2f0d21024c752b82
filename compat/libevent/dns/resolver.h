// evdns_base: name servers, their queries, and the settings.
//
// Semantics: event2/dns.h; probed: the choice of a server, the effect of an answer on it, and all
// times.
//
// spate::Resolver is not used below. It configures c-ares once for the whole program, while
// libevent's programs choose servers and change them at any time, see which one is up, set each
// timeout and number of tries, and get the first answer in the same turn of the loop.
//
// A lookup (evdns_request) belongs to the program. It sends one query at a time, several if it
// searches. A Query is one of these, or a probe of a server that is down. Queries that were sent
// are in flight, the others wait.
//
// Threads: the caller of a function below holds the base's lock, if it has one. The program's
// callbacks are called from the loop without it. The two kinds of events, of a server's socket and
// of the base's timer, are deleted without it: that waits for a callback in another thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <span>

#include "compat/libevent/dns/answer.h"
#include "compat/libevent/dns/hosts.h"
#include "compat/libevent/dns/message.h"
#include "compat/libevent/dns/search_list.h"
#include "compat/libevent/dns_api.h"
#include "compat/libevent/threads.h"

namespace spate::libevent::dns {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kNever = INT64_MAX;
inline constexpr int kServerPort = 53;
inline constexpr std::int64_t kProbeMost = 3600 * kSecond;  // Between two probes.

union Address {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
  sockaddr_storage storage;
};

struct Options {
  std::int64_t timeout = 5 * kSecond;
  std::int64_t first_probe = 10 * kSecond;
  std::int64_t skew = 3 * kSecond;  // How long one family's answer waits for the other.
  int attempts = 3;
  int max_timeouts = 3;
  int max_in_flight = 64;
  int randomizes_case = 1;
  int receive_buffer = 0;
  int send_buffer = 0;
  Address bind_to{};
  socklen_t bind_to_size = 0;
};

struct Query;

// One server, and its socket. It exists until all servers are cleared.
struct Nameserver {
  evdns_base* base;
  Nameserver* next;  // In a ring.
  Address address;
  socklen_t address_size;
  int fd;
  event readable;
  event writable;
  Query* probe;
  std::int64_t probe_at;
  int in_flight;
  int timeouts;
  int failures;
  bool is_up;
  bool is_full;  // The kernel's buffer is full.
  bool is_gone;  // A callback that waited for the lock must not use it.
};

struct Query {
  Query* previous;
  Query* next;
  Query* next_of_bucket;
  evdns_request* lookup;  // Null for a probe.
  Nameserver* probed;
  Nameserver* server;  // Null while it waits.
  std::int64_t deadline;
  int sent;
  int reissued;
  bool is_unsent;  // The server's socket was full, or the query was moved to another server.
  std::uint16_t type;
  std::uint16_t id;
  std::uint16_t size;
  std::uint8_t packet[kHeaderSize + kWireNameMost + 4];
};

class QueryList {
 public:
  bool empty() const { return first_ == nullptr; }
  Query* first() const { return first_; }
  Query* last() const { return last_; }
  void push_front(Query& query) { insert_before(first_, query); }
  void push_back(Query& query) { insert_before(nullptr, query); }
  void insert_by_deadline(Query& query);
  void remove(Query& query);

 private:
  void insert_before(Query* next, Query& query);

  Query* first_;
  Query* last_;
};

inline constexpr int kBuckets = 256;

std::int64_t now();

// For evdns_getaddrinfo(): requests that are answered but not yet delivered continue without the
// base.
void orphan_address_requests(evdns_base& base);

}  // namespace spate::libevent::dns

struct evdns_base {
  using Nameserver = spate::libevent::dns::Nameserver;
  using Query = spate::libevent::dns::Query;
  using QueryList = spate::libevent::dns::QueryList;
  using Answer = spate::libevent::dns::Answer;
  using Address = spate::libevent::dns::Address;
  using SearchList = spate::libevent::dns::SearchList;

  event_base* loop;
  void* lock;
  event timer;
  spate::libevent::dns::Options options;
  spate::libevent::dns::Hosts hosts;
  SearchList* search;
  evdns_getaddrinfo_request* address_requests;
  bool rests_when_idle;  // If nothing is in flight, it does not keep the loop alive.
  bool is_freed;

  // ---- servers (nameservers.cc)

  // Returns 0, or a code without a name in event2/dns.h: 1 no memory or no socket, 2 invalid, 3
  // known already.
  [[nodiscard]] int add_server(const sockaddr* address, socklen_t size);
  Nameserver* server_at(int index) const;
  int server_count() const { return server_count_; }
  // Unlinks all servers, so that remove_servers() can destroy them without the lock. Their queries
  // wait.
  Nameserver* unlink_servers();
  static void destroy_servers(Nameserver* servers);
  void server_is_up(Nameserver& server);
  void server_has_failed(Nameserver& server, const char* why);
  void note_probe(Nameserver& server, int error);
  void read_from(Nameserver& server);
  void writable_again(Nameserver& server);

  // ---- questions (queries.cc)

  // Returns null for an invalid name, or without memory.
  Query* make_query(std::string_view name, std::uint16_t type, evdns_request* lookup);
  void submit(Query& query);
  void drop(Query& query);
  void start_waiting();
  void take_message(std::span<const std::uint8_t> message);
  void run_due();
  void arm_timer();
  // Ends all queries. Fails their lookups if `fails_lookups` is true; otherwise drops them.
  void shut_down(bool fails_lookups);

 private:
  std::int64_t probe_time(std::int64_t wait) const;
  void send_probe(Nameserver& server);
  Nameserver* next_probed() const;
  void watch(Nameserver& server);
  void note_in_flight(Nameserver& server, int change);
  Nameserver* pick();
  Nameserver* server_for_next();  // Null if no more may be in flight, or there is no server.
  std::uint16_t unused_id() const;
  Query** bucket(std::uint16_t id) { return &by_id_[id % spate::libevent::dns::kBuckets]; }
  Query* find(std::uint16_t id) const;
  void assign(Query& query, Nameserver* server);
  void launch(Query& query, Nameserver& server);
  void land(Query& query);
  void transmit(Query& query);
  void transmit_unsent();
  void expire(Query& query);
  [[nodiscard]] bool reissue(Query& query);
  void conclude(Query& query, const Answer& answer);
  void note_answer(Query& query);
  void take_error(Query& query, const Answer& answer);
  void finish(Query& query, const Answer& answer);

  Nameserver* head_;  // The next server to query.
  int server_count_;
  int up_count_;
  int in_flight_count_;
  QueryList in_flight_;  // Sorted by timeout.
  QueryList waiting_;
  Query* by_id_[spate::libevent::dns::kBuckets];
};
