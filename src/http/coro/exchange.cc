// Exchange of coroutines: the request's body is what comes of a Conversation.
#include <cerrno>
#include <utility>

#include "http/codec/system_error.h"
#include "spate/http/coro_exchange.h"

namespace spate::coro {

using http::system_error;

// Without a body there is nothing that could be asked for too early.
Exchange::Exchange(http::Exchange asked) : exchange_(std::move(asked)) {
  open();
  if (!exchange_.is_open()) {
    Conversation::close(system_error(EPIPE));
    return;
  }
  has_body_left_ = exchange_.request().has_body();
  if (has_body_left_) return;
  end_input();
  hear();
}

// Nothing comes but to who reads.
void Exchange::hear() {
  if (is_over() || std::exchange(is_heard_, true)) return;
  if (!exchange_.start(*this)) return Conversation::close(system_error(EPIPE));
  if (has_body_left_) exchange_.pause();
}

Exchange::ReadPiece Exchange::read() {
  hear();
  return read_piece();
}

void Exchange::on_body(Bytes bytes) { give(bytes, 0); }

// From here on it is read for the client's end, whoever waits.
void Exchange::on_body_end(const http::FieldsView& trailers) {
  has_body_left_ = false;
  exchange_.resume();
  if (trailers_.add_all(trailers)) return end_input();
  exchange_.abort();
  Conversation::close(system_error(ENOMEM));
}

void Exchange::on_drained() { drain(); }
void Exchange::on_closed(std::error_code error) { Conversation::close(error); }

void Exchange::pause() { exchange_.pause(); }
void Exchange::resume() { exchange_.resume(); }
void Exchange::give_up() { exchange_.abort(); }
bool Exchange::is_full() const { return exchange_.is_full(); }

std::error_code Exchange::end_of_input() const {
  return has_body_left_ ? system_error(EPIPE) : std::error_code();
}

Exchange::Wait Exchange::send(Bytes bytes) {
  if (!exchange_.write(bytes)) return {*this, Wait::For::room, write_error()};
  return drained();
}

// Only who is heard is told.
Exchange::Wait Exchange::drained() {
  if (exchange_.is_full()) hear();
  return {*this, Wait::For::room};
}

}  // namespace spate::coro
