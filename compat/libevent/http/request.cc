#include "compat/libevent/http/request.h"

#include <cstddef>
#include <cstring>

#include "compat/libevent/ascii.h"
#include "compat/libevent/http/client.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

// Programs read these members.
static_assert(sizeof(evhttp_request) == 216);
static_assert(offsetof(evhttp_request, evcon) == 16);
static_assert(offsetof(evhttp_request, flags) == 24);
static_assert(offsetof(evhttp_request, input_headers) == 32);
static_assert(offsetof(evhttp_request, output_headers) == 40);
static_assert(offsetof(evhttp_request, remote_host) == 48);
static_assert(offsetof(evhttp_request, remote_port) == 56);
static_assert(offsetof(evhttp_request, host_cache) == 64);
static_assert(offsetof(evhttp_request, kind) == 72);
static_assert(offsetof(evhttp_request, type) == 76);
static_assert(offsetof(evhttp_request, headers_size) == 80);
static_assert(offsetof(evhttp_request, body_size) == 88);
static_assert(offsetof(evhttp_request, uri) == 96);
static_assert(offsetof(evhttp_request, uri_elems) == 104);
static_assert(offsetof(evhttp_request, major) == 112);
static_assert(offsetof(evhttp_request, minor) == 113);
static_assert(offsetof(evhttp_request, response_code) == 116);
static_assert(offsetof(evhttp_request, response_code_line) == 120);
static_assert(offsetof(evhttp_request, input_buffer) == 128);
static_assert(offsetof(evhttp_request, ntoread) == 136);
static_assert(offsetof(evhttp_request, output_buffer) == 152);
static_assert(offsetof(evhttp_request, cb) == 160);
static_assert(offsetof(evhttp_request, cb_arg) == 168);
static_assert(offsetof(evhttp_request, chunk_cb) == 176);
static_assert(offsetof(evhttp_request, header_cb) == 184);
static_assert(offsetof(evhttp_request, error_cb) == 192);
static_assert(offsetof(evhttp_request, on_complete_cb) == 200);
static_assert(offsetof(evhttp_request, on_complete_cb_arg) == 208);

namespace {

evkeyvalq* make_headers() {
  auto* headers = static_cast<evkeyvalq*>(allocate(sizeof(evkeyvalq)));
  if (headers != nullptr) TAILQ_INIT(headers);
  return headers;
}

void free_headers(evkeyvalq* headers) {
  if (headers == nullptr) return;
  evhttp_clear_headers(headers);
  release(headers);
}

void free_buffer(evbuffer* buffer) {
  if (buffer != nullptr) evbuffer_free(buffer);
}

// A response to a removed request must not be taken for another's.
void leave_connection(evhttp_request& request) {
  evhttp_connection& connection = *request.evcon;
  const bool is_first = connection.request() == &request;
  connection.unlink(request);
  if (is_first && !connection.is_server() && connection.is_connected()) restart(connection);
}

// Returns the length of a Host header without its port.
std::size_t host_size(const char* host) {
  const std::size_t size = std::strlen(host);
  std::size_t end = size;
  while (end > 0 && is_digit(host[end - 1])) --end;
  return end > 1 && host[end - 1] == ':' ? end - 1 : size;
}

}  // namespace

// ---- for the other rooms

void spate::libevent::free_unless_owned(evhttp_request& request) {
  if (!is_owned(request)) evhttp_request_free(&request);
}

void spate::libevent::forget_target(evhttp_request& request) {
  release(request.uri);
  request.uri = nullptr;
  if (request.uri_elems != nullptr) evhttp_uri_free(request.uri_elems);
  request.uri_elems = nullptr;
}

bool spate::libevent::may_have_body(const evhttp_request& request, int code) {
  if (code / 100 == 1 || code == HTTP_NOCONTENT || code == HTTP_NOTMODIFIED) return false;
  return request.type != EVHTTP_REQ_HEAD && (request.type != EVHTTP_REQ_CONNECT || code >= 300);
}

Deferral::~Deferral() {
  if (!is_outermost_) return;
  request_.flags &= ~EVHTTP_REQ_DEFER_FREE;
  if (was_freed()) evhttp_request_free(&request_);
}

// ---- the exported functions

evhttp_request* evhttp_request_new(void (*callback)(evhttp_request*, void*), void* argument) {
  auto* request = static_cast<evhttp_request*>(allocate_zeroed(sizeof(evhttp_request)));
  if (request == nullptr) return nullptr;
  request->kind = EVHTTP_RESPONSE;
  request->cb = callback;
  request->cb_arg = argument;
  request->input_headers = make_headers();
  request->output_headers = make_headers();
  request->input_buffer = evbuffer_new();
  request->output_buffer = evbuffer_new();
  const bool is_whole = request->input_headers != nullptr && request->output_headers != nullptr &&
                        request->input_buffer != nullptr && request->output_buffer != nullptr;
  if (is_whole) return request;
  evhttp_request_free(request);
  return nullptr;
}

void evhttp_request_free(evhttp_request* request) {
  if (request->evcon != nullptr) leave_connection(*request);
  if ((request->flags & EVHTTP_REQ_DEFER_FREE) != 0) {
    request->flags |= EVHTTP_REQ_NEEDS_FREE;
    return;
  }
  forget_target(*request);
  release(request->remote_host);
  release(request->host_cache);
  release(request->response_code_line);
  free_headers(request->input_headers);
  free_headers(request->output_headers);
  free_buffer(request->input_buffer);
  free_buffer(request->output_buffer);
  release(request);
}

void evhttp_request_own(evhttp_request* request) { request->flags |= EVHTTP_USER_OWNED; }

int evhttp_request_is_owned(evhttp_request* request) { return is_owned(*request) ? 1 : 0; }

evhttp_connection* evhttp_request_get_connection(evhttp_request* request) { return request->evcon; }

const char* evhttp_request_get_uri(const evhttp_request* request) { return request->uri; }

const evhttp_uri* evhttp_request_get_evhttp_uri(const evhttp_request* request) {
  return request->uri_elems;
}

const char* evhttp_request_get_host(evhttp_request* request) {
  if (request->host_cache != nullptr) return request->host_cache;
  const char* host =
      request->uri_elems != nullptr ? evhttp_uri_get_host(request->uri_elems) : nullptr;
  if (host != nullptr) return host;
  host = evhttp_find_header(request->input_headers, "Host");
  if (host == nullptr) return nullptr;
  request->host_cache = duplicate(std::string_view(host, host_size(host)));
  return request->host_cache;
}

evhttp_cmd_type evhttp_request_get_command(const evhttp_request* request) { return request->type; }

int evhttp_request_get_response_code(const evhttp_request* request) {
  return request->response_code;
}

const char* evhttp_request_get_response_code_line(const evhttp_request* request) {
  return request->response_code_line;
}

evkeyvalq* evhttp_request_get_input_headers(evhttp_request* request) {
  return request->input_headers;
}

evkeyvalq* evhttp_request_get_output_headers(evhttp_request* request) {
  return request->output_headers;
}

evbuffer* evhttp_request_get_input_buffer(evhttp_request* request) { return request->input_buffer; }

evbuffer* evhttp_request_get_output_buffer(evhttp_request* request) {
  return request->output_buffer;
}

void evhttp_request_set_chunked_cb(evhttp_request* request,
                                   void (*callback)(evhttp_request*, void*)) {
  request->chunk_cb = callback;
}

void evhttp_request_set_header_cb(evhttp_request* request,
                                  int (*callback)(evhttp_request*, void*)) {
  request->header_cb = callback;
}

void evhttp_request_set_error_cb(evhttp_request* request,
                                 void (*callback)(evhttp_request_error, void*)) {
  request->error_cb = callback;
}

void evhttp_request_set_on_complete_cb(evhttp_request* request,
                                       void (*callback)(evhttp_request*, void*), void* argument) {
  request->on_complete_cb = callback;
  request->on_complete_cb_arg = argument;
}
