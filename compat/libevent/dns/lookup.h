// evdns_request: what a program has asked for, until it has been told.
//
// Semantics: event2/dns.h; that the callback is called later, from the loop, and what it is given:
// probes.
#pragma once

#include "compat/libevent/dns/answer.h"
#include "compat/libevent/dns/search_list.h"
#include "compat/libevent/dns_api.h"

namespace spate::libevent::dns {

struct Query;

// Instead of the program's callback, for who needs more of the answer. If the base goes without
// telling, `forgotten` is called, with the base's lock, and then nothing else.
struct Listener {
  void (*answered)(const Answer& answer, void* argument);
  void (*forgotten)(void* argument);
};

}  // namespace spate::libevent::dns

struct evdns_request {
  using Answer = spate::libevent::dns::Answer;

  evdns_base* base;                    // Not to be used once the answer is there.
  spate::libevent::dns::Query* query;  // Null once it is.
  evdns_callback_type callback;
  const spate::libevent::dns::Listener* listener;
  void* argument;
  event deferred;
  std::uint16_t type;
  spate::libevent::dns::Candidates candidates;
  Answer answer;
  spate::libevent::dns::NameText name;

  // The question for the next name, unless the answer is one. Null if there is none.
  spate::libevent::dns::Query* next_query(const Answer& last);
  void deliver(const Answer& whole);
  void deliver_error(int error);
  void forget();

  spate::libevent::dns::Query* make_next();
};

namespace spate::libevent::dns {

// With the base's lock. Null if the name is none, or there is no memory.
evdns_request* look_up(evdns_base& base, const char* name, std::uint16_t type, int flags,
                       const Listener& listener, void* argument);

}  // namespace spate::libevent::dns
