// evhttp_request: what the program and the connection see of one request and its answer.
//
// Semantics: event2/http.h and event2/http_struct.h; who frees a request: probes.
#pragma once

#include "compat/libevent/http/headers.h"

namespace spate::libevent {

// Unless it is the program's.
void free_unless_owned(evhttp_request& request);
// The request knows its connection no more.
void forget_target(evhttp_request& request);

inline bool is_owned(const evhttp_request& request) {
  return (request.flags & EVHTTP_USER_OWNED) != 0;
}

// Neither the answer's code nor the request's method exclude a body.
bool may_have_body(const evhttp_request& request, int code);

// A callback of the program's is called, which may free the request. Then it goes here.
class Deferral {
 public:
  explicit Deferral(evhttp_request& request) : request_(request) {
    request_.flags |= EVHTTP_REQ_DEFER_FREE;
  }
  Deferral(const Deferral&) = delete;
  Deferral& operator=(const Deferral&) = delete;
  ~Deferral();

  bool was_freed() const { return (request_.flags & EVHTTP_REQ_NEEDS_FREE) != 0; }

 private:
  evhttp_request& request_;
};

}  // namespace spate::libevent
