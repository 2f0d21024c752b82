#include "spate/http/exchange.h"
#include "http/codec/system_error.h"

#include <new>
#include <utility>

#include "http/server/body_reader.h"
#include "http/server/exchange_state.h"
#include "spate/assert.h"

namespace spate::http {

// Functions that do not state otherwise treat an empty Exchange as one that is over.

const Request& Exchange::request() const {
  SPATE_ASSERT(state_ != nullptr, "the Exchange was moved from");
  return state_->request();
}

Loop& Exchange::loop() const {
  SPATE_ASSERT(state_ != nullptr, "the Exchange was moved from");
  return state_->loop();
}

bool Exchange::is_open() const { return state_ != nullptr && state_->is_open(); }

void Exchange::leave() { std::exchange(state_, nullptr)->leave(); }

// ---- the response

bool Exchange::respond(Status status) {
  return state_ != nullptr && state_->respond({.status = status}, Bytes());
}

bool Exchange::respond(Status status, std::string_view body, std::string_view content_type) {
  return state_ != nullptr &&
         state_->respond({.status = status, .content_type = content_type}, bytes_of(body));
}

bool Exchange::respond(Status status, const Fields& fields, Bytes body) {
  return state_ != nullptr && state_->respond({.status = status, .fields = &fields}, body);
}

bool Exchange::respond(Status status, const Fields& fields, Buffer&& body) {
  return state_ != nullptr &&
         state_->respond({.status = status, .fields = &fields}, std::move(body));
}

void Exchange::set_compression(Compression compression) {
  if (state_ != nullptr) state_->set_compression(compression);
}

bool Exchange::begin(Status status, const Fields& fields, std::optional<std::uint64_t> size) {
  return state_ != nullptr && state_->begin({.status = status, .fields = &fields, .size = size});
}

bool Exchange::write(Bytes bytes) { return state_ != nullptr && state_->write(bytes); }

bool Exchange::write(Buffer&& buffer) {
  return state_ != nullptr && state_->write(std::move(buffer));
}

std::error_code Exchange::send_file(int file, std::uint64_t offset, std::uint64_t size,
                                    ThreadPool& pool) {
  if (state_ == nullptr) return system_error(EPIPE);
  return state_->send_file(file, offset, size, pool);
}

bool Exchange::end(const Fields& trailers) { return state_ != nullptr && state_->end(trailers); }

bool Exchange::inform(Status status, const Fields& fields) {
  return state_ != nullptr && state_->inform({.status = status, .fields = &fields});
}

std::size_t Exchange::queued() const { return state_ == nullptr ? 0 : state_->queued(); }

bool Exchange::is_full() const { return state_ != nullptr && state_->is_full(); }

// ---- the request's body and the rest

bool Exchange::start(ExchangeHandler& handler) {
  return state_ != nullptr && state_->start(handler);
}

void Exchange::pause() {
  if (state_ != nullptr) state_->pause();
}

void Exchange::resume() {
  if (state_ != nullptr) state_->resume();
}

bool Exchange::add_field(FieldName name, std::string_view value) {
  return state_ != nullptr && state_->add_field(name, value);
}

bool Exchange::before_response(BeforeResponse function) {
  return state_ != nullptr && state_->before_response(std::move(function));
}

bool Exchange::on_end(OnExchangeEnd function) {
  return state_ != nullptr && state_->on_end(std::move(function));
}

bool Exchange::attach(AttributeNode* node) {
  if (state_ != nullptr) return state_->attach(node);
  node->destroy(node);
  return false;
}

AttributeNode* Exchange::find_attribute(const void* key) const {
  return state_ == nullptr ? nullptr : state_->find_attribute(key);
}

bool Exchange::set_deadline(Nanos timeout) {
  return state_ != nullptr && state_->set_deadline(timeout);
}

void Exchange::abort() {
  if (state_ != nullptr) state_->give_up();
}

Result<Stream> Exchange::upgrade(std::string_view protocol, const Fields& fields) {
  if (state_ == nullptr) return std::unexpected(system_error(EPIPE));
  return state_->upgrade(protocol, fields);
}

// On every failure the Exchange is destroyed here, which sends a response if it was not sent yet.
void read_body(Exchange exchange, std::size_t most, OnBody on_body) {
  ExchangeState* state = ExchangeState::of(exchange);
  if (state == nullptr) return;
  std::unique_ptr<BodyReader> reader(new (std::nothrow)
                                         BodyReader(std::move(exchange), most, std::move(on_body)));
  if (reader != nullptr) state->start(std::move(reader), most);
}

}  // namespace spate::http
