#include "spate/http/client.h"

#include <utility>

#include "http/client/client_core.h"

namespace spate::http {

Result<Client> Client::create(Loop& loop, ClientOptions options) {
  const Result<ClientCore*> core = ClientCore::create(loop, std::move(options));
  if (!core) return std::unexpected(core.error());
  return Client(*core);
}

void Client::close() {
  const Ref<ClientCore> core = Ref<ClientCore>::adopt(std::exchange(core_, nullptr));
  core->close();
}

Call Client::fetch(std::string_view url, OnResponse on_response, CallOptions options) {
  return core_->start(url, nullptr, std::move(on_response), std::move(options));
}

Call Client::send(std::string_view url, CallHandler& handler, CallOptions options) {
  return core_->start(url, &handler, {}, std::move(options));
}

Loop& Client::loop() const { return core_->loop(); }
void Client::close_idle() { core_->close_idle(); }
ClientMetrics Client::metrics() const { return core_->metrics(); }
std::string_view Client::last_failure() const { return core_->last_failure(); }

// ---- Call

bool Call::is_open() const { return state_ != nullptr && state_->is_open(); }

bool Call::was_sent() const { return state_ != nullptr && state_->was_sent(); }

std::string_view Call::last_failure() const {
  return state_ == nullptr ? std::string_view() : state_->last_failure();
}

bool Call::write(Bytes bytes) { return state_ != nullptr && state_->write(bytes); }

bool Call::write(Buffer&& buffer) { return state_ != nullptr && state_->write(std::move(buffer)); }

bool Call::end(Fields trailers) { return state_ != nullptr && state_->end(std::move(trailers)); }

bool Call::is_full() const { return state_ != nullptr && state_->is_full(); }

void Call::pause() {
  if (state_ != nullptr) state_->pause();
}

void Call::resume() {
  if (state_ != nullptr) state_->resume();
}

void Call::leave() {
  const Ref<CallState> state = Ref<CallState>::adopt(std::exchange(state_, nullptr));
  state->leave();
}

}  // namespace spate::http
