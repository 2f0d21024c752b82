// The handling of requests on a client's connection.
#pragma once

#include "compat/libevent/http/connection.h"

namespace spate::libevent {

// The first request was answered. If the socket has ended, that is reported once more from the
// loop, before a request is sent that the callback makes. A filter reports it before the callback.
void finish_answer(evhttp_connection& connection, bool has_ended = false);
// The first request gets no response.
void fail_request(evhttp_connection& connection, evhttp_request_error error);
// The connection cannot be used again: queued requests are sent on another.
void restart(evhttp_connection& connection);
// Frees the connection, if the program asked for that, once no request is queued and the socket is
// closed.
void end_if_done(evhttp_connection& connection);
// Called when the socket is connected, or when connecting failed.
void connected(evhttp_connection& connection);
void connect_failed(evhttp_connection& connection);

}  // namespace spate::libevent
