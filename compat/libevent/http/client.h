// What a client's connection does with its requests.
#pragma once

#include "compat/libevent/http/connection.h"

namespace spate::libevent {

// The first request was answered.
void finish_answer(evhttp_connection& connection);
// There will be no answer to the first request.
void fail_request(evhttp_connection& connection, evhttp_request_error error);
// Nothing is asked any more, and the socket has been closed: as the program wished, it goes.
void end_if_done(evhttp_connection& connection);
// The socket is connected, or not.
void connected(evhttp_connection& connection);
void connect_failed(evhttp_connection& connection);

}  // namespace spate::libevent
