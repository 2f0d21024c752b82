// evhttp_request: the state of one request and its response, shared by the program and the
// connection.
//
// Semantics: event2/http.h and event2/http_struct.h; probed: the owner of a request.
#pragma once

#include "compat/libevent/http/headers.h"

namespace spate::libevent {

// Frees the request, unless the program owns it.
void free_unless_owned(evhttp_request& request);
// Detaches the request from its connection.
void forget_target(evhttp_request& request);

[[nodiscard]] inline bool is_owned(const evhttp_request& request) {
  return (request.flags & EVHTTP_USER_OWNED) != 0;
}

// Returns true if neither the response's code nor the request's method excludes a body.
[[nodiscard]] bool may_have_body(const evhttp_request& request, int code);

// Guards a callback of the program, which may free the request. The destructor then frees it.
class Deferral {
 public:
  explicit Deferral(evhttp_request& request)
      : request_(request), is_outermost_((request.flags & EVHTTP_REQ_DEFER_FREE) == 0) {
    request_.flags |= EVHTTP_REQ_DEFER_FREE;
  }
  Deferral(const Deferral&) = delete;
  Deferral& operator=(const Deferral&) = delete;
  ~Deferral();

  bool was_freed() const { return (request_.flags & EVHTTP_REQ_NEEDS_FREE) != 0; }

 private:
  evhttp_request& request_;
  bool is_outermost_;
};

}  // namespace spate::libevent
