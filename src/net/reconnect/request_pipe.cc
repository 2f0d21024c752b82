// RequestPipe: forwards calls to its PipeState.
#include "spate/net/request_pipe.h"

#include <cerrno>

#include "base/ask.h"
#include "net/reconnect/pipe_state.h"
#include "spate/assert.h"
#include "sys/descriptor.h"

namespace spate {

AnyRequestPipe::~AnyRequestPipe() { tell(own(), &PipeState::abandon); }

Result<PipeState*> AnyRequestPipe::make(Loop& loop, const Address& address, std::string_view host,
                                        std::uint16_t port, const PipeFraming& framing,
                                        PipeHandlers handlers, const PipeOptions& options) {
  return PipeState::make(loop, address, host, port, framing, std::move(handlers), options);
}

// All calls use this function, which asserts the thread.
PipeState* AnyRequestPipe::own() const {
  SPATE_ASSERT(state_ == nullptr || state_->may_be_touched(), kWrongThread);
  return state_;
}

std::error_code AnyRequestPipe::request(Bytes bytes, OnPipeResponse callback,
                                        const PipeRequestOptions& options) {
  if (own() == nullptr) return sys::error_code(-EPIPE);
  return state_->request(bytes, std::move(callback), options);
}
std::error_code AnyRequestPipe::send(Bytes bytes) {
  return own() == nullptr ? sys::error_code(-EPIPE) : state_->send(bytes);
}
void AnyRequestPipe::connect() { tell(own(), &PipeState::connect); }
void AnyRequestPipe::reset() { tell(own(), &PipeState::reset); }
void AnyRequestPipe::close() { tell(own(), &PipeState::close); }
void AnyRequestPipe::drain(Function<void()> done) {
  if (own() != nullptr) state_->drain(std::move(done));
}

bool AnyRequestPipe::is_connected() const { return ask(own(), &PipeState::is_connected); }
Client::State AnyRequestPipe::state() const {
  return ask(own(), &PipeState::state, Client::State::idle);
}
std::size_t AnyRequestPipe::pending() const { return ask(own(), &PipeState::pending); }
std::size_t AnyRequestPipe::queued() const { return ask(own(), &PipeState::queued); }
bool AnyRequestPipe::is_full() const { return ask(own(), &PipeState::is_full); }
std::error_code AnyRequestPipe::last_error() const { return ask(own(), &PipeState::last_error); }

void PipeRequest::cancel() {
  if (entry_ == nullptr) return;
  SPATE_ASSERT(state_->may_be_touched(), kWrongThread);
  state_->cancel(*entry_);
}

void PipeRequest::take(PipeRequest& other) {
  state_ = std::exchange(other.state_, nullptr);
  entry_ = std::exchange(other.entry_, nullptr);
  if (entry_ != nullptr) entry_->handle = this;
}

}  // namespace spate
