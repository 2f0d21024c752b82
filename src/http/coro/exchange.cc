// Exchange for coroutines: the pieces of its ConnectionAdapter are the request's body.
#include <cerrno>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/http/coro_exchange.h"

namespace spate::coro {

using http::system_error;

// Without a body it can be started at once: starting asks the client for the body.
Exchange::Exchange(http::Exchange request) : exchange_(std::move(request)) {
  open();
  if (!exchange_.is_open()) {
    ConnectionAdapter::close(system_error(EPIPE));
    return;
  }
  has_body_left_ = exchange_.request().has_body();
  if (has_body_left_) return;
  end_input();
  start_receiving();
}

// Starts the Exchange at the first read, not before: its handler receives nothing until then.
void Exchange::start_receiving() {
  if (is_over() || std::exchange(is_started_, true)) return;
  if (!exchange_.start(*this)) return ConnectionAdapter::close(system_error(EPIPE));
  if (has_body_left_) exchange_.pause();
}

Exchange::ReadPiece Exchange::read() {
  start_receiving();
  return read_piece();
}

void Exchange::on_body(Bytes bytes) { deliver(bytes, 0); }

// From here on reading only detects the client's end, so it is not paused any more.
void Exchange::on_body_end(const http::FieldsView& trailers) {
  has_body_left_ = false;
  exchange_.resume();
  if (trailers_.add_all(trailers)) return end_input();
  exchange_.abort();
  ConnectionAdapter::close(system_error(ENOMEM));
}

void Exchange::on_drained() { drain(); }
void Exchange::on_closed(std::error_code error) { ConnectionAdapter::close(error); }

void Exchange::pause() { exchange_.pause(); }
void Exchange::resume() { exchange_.resume(); }
void Exchange::abort_connection() { exchange_.abort(); }
bool Exchange::is_full() const { return exchange_.is_full(); }

std::error_code Exchange::end_of_input() const {
  return has_body_left_ ? system_error(EPIPE) : std::error_code();
}

Exchange::Wait Exchange::send(Bytes bytes) {
  if (!exchange_.write(bytes)) return {*this, Wait::For::room, write_error()};
  return drained();
}

// on_drained() is only called for an Exchange that was started.
Exchange::Wait Exchange::drained() {
  if (exchange_.is_full()) start_receiving();
  return {*this, Wait::For::room};
}

}  // namespace spate::coro
