// Queries: sending, repeating, and the treatment of answers.
//
// Semantics: event2/dns.h ("Internals"); probed: which answers cause a query of another server,
// which mark a server as down, and which reach the program.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "compat/libevent/ascii.h"
#include "compat/libevent/dns/lookup.h"
#include "compat/libevent/dns/resolver.h"
#include "compat/libevent/memory.h"
#include "compat/libevent/timeval.h"

using namespace spate::libevent;
using namespace spate::libevent::dns;

namespace {

constexpr int kReissuesMost = 1;

// An attacker who does not see the query cannot guess its letters' case
// (draft-vixie-dnsext-dns0x20).
void randomize_case(NameText& name) {
  std::uint8_t bits[(sizeof name + 7) / 8];
  evutil_secure_rng_get_bytes(bits, sizeof bits);
  for (std::size_t i = 0; name[i] != '\0'; ++i) {
    if (!is_letter(name[i])) continue;
    const bool is_upper = (bits[i / 8] >> i % 8 & 1) != 0;
    name[i] = static_cast<char>(is_upper ? name[i] & ~0x20 : name[i] | 0x20);
  }
}

void write_id(Query& query) {
  query.packet[0] = static_cast<std::uint8_t>(query.id >> 8);
  query.packet[1] = static_cast<std::uint8_t>(query.id);
}

}  // namespace

std::int64_t dns::now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

// ---- QueryList

void QueryList::insert_before(Query* next, Query& query) {
  query.next = next;
  query.previous = next != nullptr ? next->previous : last_;
  (query.previous != nullptr ? query.previous->next : first_) = &query;
  (next != nullptr ? next->previous : last_) = &query;
}

// Searches from the end: all have the same timeout, unless that was changed meanwhile.
void QueryList::insert_by_deadline(Query& query) {
  Query* previous = last_;
  while (previous != nullptr && previous->deadline > query.deadline) previous = previous->previous;
  insert_before(previous != nullptr ? previous->next : first_, query);
}

void QueryList::remove(Query& query) {
  (query.previous != nullptr ? query.previous->next : first_) = query.next;
  (query.next != nullptr ? query.next->previous : last_) = query.previous;
  query.previous = query.next = nullptr;
}

// ---- making queries, and their IDs

Query* evdns_base::make_query(std::string_view name, std::uint16_t type, evdns_request* lookup) {
  NameText text;
  if (name.size() > kNameMost + 1) return nullptr;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.size() > kNameMost) return nullptr;
  *std::ranges::copy(name, text).out = '\0';
  if (options.randomizes_case != 0) randomize_case(text);
  auto* query = static_cast<Query*>(allocate_zeroed(sizeof(Query)));
  if (query == nullptr) return nullptr;
  Writer writer(query->packet);
  writer.header({.id = 0,
                 .flags = kRecursionDesired,
                 .questions = 1,
                 .answers = 0,
                 .authorities = 0,
                 .additional = 0});
  if (!writer.question(text, type, EVDNS_CLASS_INET)) {
    release(query);
    return nullptr;
  }
  query->size = static_cast<std::uint16_t>(writer.size());
  query->type = type;
  query->lookup = lookup;
  return query;
}

Query* evdns_base::find(std::uint16_t id) const {
  Query* query = by_id_[id % kBuckets];
  while (query != nullptr && query->id != id) query = query->next_of_bucket;
  return query;
}

// The loop ends: fewer queries are in flight than there are IDs.
std::uint16_t evdns_base::unused_id() const {
  std::uint16_t id;
  do {
    evutil_secure_rng_get_bytes(&id, sizeof id);
  } while (find(id) != nullptr);
  return id;
}

// ---- in flight, and out of it

void evdns_base::assign(Query& query, Nameserver* server) {
  if (query.server != nullptr) note_in_flight(*query.server, -1);
  query.server = server;
  if (server != nullptr) note_in_flight(*server, 1);
}

Nameserver* evdns_base::server_for_next() {
  return in_flight_count_ < options.max_in_flight ? pick() : nullptr;
}

void evdns_base::submit(Query& query) {
  Nameserver* server = server_for_next();
  if (server == nullptr) return waiting_.push_back(query);
  launch(query, *server);
}

void evdns_base::launch(Query& query, Nameserver& server) {
  query.id = unused_id();
  write_id(query);
  query.next_of_bucket = std::exchange(*bucket(query.id), &query);
  query.deadline = kNever;
  in_flight_.push_back(query);
  ++in_flight_count_;
  assign(query, &server);
  transmit(query);
}

void evdns_base::land(Query& query) {
  Query** link = bucket(query.id);
  while (*link != &query) link = &(*link)->next_of_bucket;
  *link = query.next_of_bucket;
  const bool was_first = in_flight_.first() == &query;
  in_flight_.remove(query);
  --in_flight_count_;
  assign(query, nullptr);
  query.sent = query.reissued = 0;
  query.is_unsent = false;
  if (was_first) arm_timer();
}

void evdns_base::drop(Query& query) {
  if (query.server != nullptr) {
    land(query);
  } else {
    waiting_.remove(query);
  }
  release(&query);
}

// If any starts, unsent queries that wait for their deadline are sent as well, as in libevent.
void evdns_base::start_waiting() {
  bool is_any = false;
  while (!waiting_.empty()) {
    Nameserver* server = server_for_next();
    if (server == nullptr) break;
    Query& query = *waiting_.first();
    waiting_.remove(query);
    launch(query, *server);
    is_any = true;
  }
  if (is_any) transmit_unsent();
}

// ---- sending

// If the kernel's buffer is full, the query waits; if sending fails, it goes to another server
// after its timeout.
void evdns_base::transmit(Query& query) {
  Nameserver& server = *query.server;
  const ssize_t sent = server.is_full ? -1
                                      : sendto(server.fd, query.packet, query.size, 0,
                                               &server.address.any, server.address_size);
  const int error = sent < 0 ? errno : 0;
  query.is_unsent = server.is_full || error == EAGAIN || error == EINTR;
  if (query.is_unsent && !server.is_full) {
    server.is_full = true;
    event_add(&server.writable, nullptr);
  }
  in_flight_.remove(query);
  query.deadline = now() + options.timeout;
  in_flight_.insert_by_deadline(query);
  if (!query.is_unsent && error != 0) server_has_failed(server, std::strerror(error));
  if (!query.is_unsent) ++query.sent;
  if (in_flight_.first() == &query) arm_timer();
}

void evdns_base::transmit_unsent() {
  for (Query* query = in_flight_.first(); query != nullptr;) {
    Query* next = query->next;
    if (query->is_unsent && !query->server->is_full) transmit(*query);
    query = next;
  }
}

// ---- time

// Returns the server whose probe is due first; null if none is down.
Nameserver* evdns_base::next_probed() const {
  Nameserver* first = nullptr;
  Nameserver* server = head_;
  for (int i = 0; i < server_count_; ++i, server = server->next) {
    if (server->probe_at < (first != nullptr ? first->probe_at : kNever)) first = server;
  }
  return first;
}

void evdns_base::arm_timer() {
  const Nameserver* probed = next_probed();
  const std::int64_t next = std::min(in_flight_.empty() ? kNever : in_flight_.first()->deadline,
                                     probed != nullptr ? probed->probe_at : kNever);
  if (next == kNever) {
    event_del_noblock(&timer);
    return;
  }
  const timeval wait = timeval_of(std::max<std::int64_t>(next - now(), 0) + 999);
  event_add(&timer, &wait);
}

// Handles only deadlines before this moment: however short the timeouts are, later ones wait for
// the next turn.
void evdns_base::run_due() {
  const std::int64_t until = now();
  for (;;) {
    Query* query = in_flight_.first();
    Nameserver* probed = next_probed();
    const std::int64_t expires = query != nullptr ? query->deadline : kNever;
    const std::int64_t probe_at = probed != nullptr ? probed->probe_at : kNever;
    if (std::min(expires, probe_at) > until) break;
    if (probe_at <= expires) {
      send_probe(*probed);
    } else {
      expire(*query);
    }
  }
  arm_timer();
}

// A timeout counts against the server that is queried next, as in libevent.
void evdns_base::expire(Query& query) {
  if (query.sent >= options.attempts) {
    Nameserver& server = *query.server;
    Answer answer{};
    answer.error = DNS_ERR_TIMEOUT;
    finish(query, answer);
    server_has_failed(server, evdns_err_to_string(DNS_ERR_TIMEOUT));
    return;
  }
  assign(query, pick());
  transmit(query);
  if (++query.server->timeouts > options.max_timeouts) {
    query.server->timeouts = 0;
    server_has_failed(*query.server, evdns_err_to_string(DNS_ERR_TIMEOUT));
  }
}

// ---- answers

void evdns_base::take_message(std::span<const std::uint8_t> message) {
  Reader reader(message);
  Header header;
  if (!reader.header(header) || (header.flags & kIsResponse) == 0) return;
  Query* query = find(header.id);
  if (query == nullptr) return;
  Answer answer;
  read_answer(message, {query->packet, query->size}, answer);
  conclude(*query, answer);
}

void evdns_base::conclude(Query& query, const Answer& answer) {
  if (answer.error != DNS_ERR_NONE) return take_error(query, answer);
  note_answer(query);
  finish(query, answer);
}

// Called for any answer. It ends the server's probe, which may be this query.
void evdns_base::note_answer(Query& query) {
  if (query.probed != nullptr) query.probed->probe = nullptr;
  server_is_up(*query.server);
}

// Assigns another server; it is queried when the query's timeout expires. Returns false if there is
// no other.
bool evdns_base::reissue(Query& query) {
  Nameserver* other = pick();
  if (other == query.server) return false;
  assign(query, other);
  ++query.reissued;
  query.sent = 0;
  query.is_unsent = true;
  return true;
}

void evdns_base::take_error(Query& query, const Answer& answer) {
  switch (answer.error) {
    case DNS_ERR_NOTIMPL:
    case DNS_ERR_REFUSED:
      if (query.reissued < kReissuesMost) {
        server_has_failed(*query.server, evdns_err_to_string(answer.error));
        if (reissue(query)) return;
      }
      break;
    case DNS_ERR_SERVERFAILED:  // Another server may have the answer.
      return expire(query);
    default:
      note_answer(query);
  }
  finish(query, answer);
}

// The next name of a lookup takes its turn among the servers before waiting queries, and is sent
// after them, as in libevent. In libevent it waits for ever if no more could be in flight with this
// one. A waiting query cannot go to a server whose probe was just answered by another one either.
void evdns_base::finish(Query& query, const Answer& answer) {
  evdns_request* lookup = query.lookup;
  Nameserver* probed = query.probed;
  Query* next = lookup != nullptr ? lookup->next_query(answer) : nullptr;
  Nameserver* server = next != nullptr ? server_for_next() : nullptr;
  if (lookup != nullptr && next == nullptr) lookup->deliver(answer);
  drop(query);
  start_waiting();
  if (probed != nullptr) note_probe(*probed, answer.error);
  if (server != nullptr) {
    launch(*next, *server);
  } else if (next != nullptr) {
    submit(*next);
  }
}

void evdns_base::shut_down(bool fails_lookups) {
  for (QueryList* list : {&in_flight_, &waiting_}) {
    while (Query* query = list->first()) {
      evdns_request* lookup = query->lookup;
      drop(*query);
      if (lookup == nullptr) continue;
      if (fails_lookups) {
        lookup->deliver_error(DNS_ERR_SHUTDOWN);
      } else {
        lookup->forget();
      }
    }
  }
}
