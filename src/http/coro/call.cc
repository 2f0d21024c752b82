// Call for coroutines: the pieces of its ConnectionAdapter are the response's body; the header
// section is its beginning.
#include <cerrno>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/assert.h"
#include "spate/http/coro_call.h"

namespace spate::coro {

using http::system_error;

Call::Call(http::Client& client, std::string_view url, http::CallOptions options) {
  SPATE_ASSERT(options.upgrade.empty(), "a Call of coroutines is not upgraded: see WebSocket");
  call_ = client.send(url, *this, std::move(options));
  if (!call_.is_open()) ConnectionAdapter::close(system_error(ENOMEM));
}

void Call::on_response(const http::Response& response) {
  response_ = &response;
  call_.pause();
  open();
}

void Call::on_body(Bytes bytes) { deliver(bytes, 0); }
void Call::on_body_end(const http::FieldsView& trailers) {
  lacks_memory_ = !trailers_.add_all(trailers);
}
void Call::on_drained() { drain(); }

// Unexpected, because no upgrade was requested.
void Call::on_upgraded(const http::Response&, spate::Stream) {
  ConnectionAdapter::close(system_error(EPROTO));
}

void Call::on_closed(std::error_code error) {
  if (!error && lacks_memory_) error = system_error(ENOMEM);
  ConnectionAdapter::close(error);
}

void Call::pause() { call_.pause(); }
void Call::resume() { call_.resume(); }
void Call::abort_connection() { call_.cancel(); }
bool Call::is_full() const { return call_.is_full(); }
std::error_code Call::end_of_input() const { return {}; }

Result<const http::Response*> Call::Head::await_resume() {
  const Result<void> begun = Wait::await_resume();
  if (!begun) return std::unexpected(begun.error());
  return call_.response_;
}

Call::Wait Call::send(Bytes bytes) {
  if (!call_.write(bytes)) return {*this, Wait::For::room, write_error()};
  return drained();
}

}  // namespace spate::coro
