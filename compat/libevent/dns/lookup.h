// evdns_request: a program's lookup, until its callback has run.
//
// Semantics: event2/dns.h; probed: the callback is called later, from the loop, and its arguments.
#pragma once

#include "compat/libevent/dns/answer.h"
#include "compat/libevent/dns/search_list.h"
#include "compat/libevent/dns_api.h"

namespace spate::libevent::dns {

struct Query;

// Replaces the program's callback, for users that need more of the answer. If the base is freed
// without calling back, `forgotten` is called, with the base's lock, and then nothing else.
struct Listener {
  void (*answered)(const Answer& answer, void* argument);
  void (*forgotten)(void* argument);
};

}  // namespace spate::libevent::dns

struct evdns_request {
  using Answer = spate::libevent::dns::Answer;

  evdns_base* base;                    // Must not be used once the answer is there.
  spate::libevent::dns::Query* query;  // Null once it is.
  evdns_callback_type callback;
  const spate::libevent::dns::Listener* listener;
  void* argument;
  event deferred;
  std::uint16_t type;
  spate::libevent::dns::Candidates candidates;
  Answer answer;
  spate::libevent::dns::NameText name;

  // Returns the query for the next name. Returns null if the answer is final, or if no name is
  // left.
  spate::libevent::dns::Query* next_query(const Answer& last);
  void deliver(const Answer& whole);
  void deliver_error(int error);
  void forget();

  spate::libevent::dns::Query* make_next();
};

namespace spate::libevent::dns {

// Needs the base's lock. Returns null if the name is invalid, or without memory.
evdns_request* look_up(evdns_base& base, const char* name, std::uint16_t type, int flags,
                       const Listener& listener, void* argument);

}  // namespace spate::libevent::dns
