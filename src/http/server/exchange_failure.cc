// ExchangeState: the responses to refused requests, and to those whose handler has failed.
#include <new>
#include <string>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/exchange_pool.h"
#include "http/server/exchange_state.h"
#include "http/server/owned_handler.h"
#include "http/server/server_core.h"
#include "spate/http/error.h"
#include "spate/http/exchange_keeper.h"

namespace spate::http {

// ---- refusals

bool ExchangeState::respond_refusal(const Refusal& refusal, std::string_view text,
                                    const Fields* fields) {
  if (!may_respond()) return false;
  std::string line(text);
  if (!line.empty()) line += '\n';  // For terminals.
  if (wire_->server().options().on_refused && respond_shaped(refusal, line, fields)) return true;
  if (!respond({.status = refusal.status,
                .fields = fields,
                .content_type = line.empty() ? std::string_view() : Exchange::kText},
               bytes_of(std::string_view(line))))
    return false;
  reason_ = refusal.reason;
  return true;
}

bool ExchangeState::refuse(const Refusal& refusal) {
  wire_->server().count_refused();
  respond_refusal(refusal);
  return response_.has_ended();
}

// False if the function threw, or made a response that cannot be sent.
bool ExchangeState::respond_shaped(const Refusal& refusal, std::string_view text,
                                   const Fields* fields) {
  RefusalResponse response{.body = std::string(text)};
  if (fields != nullptr) response.fields.add_all(*fields);
  if (!text.empty()) response.fields.set(FieldId::content_type, Exchange::kText);
  const RefusedRequest refused{
      .request = request_, .status = refusal.status, .reason = refusal.reason};
  const OnRefused& shape = wire_->server().options().on_refused;
  if (!guard([&] { shape(refused, response); })) return false;
  if (!respond({.status = refusal.status, .fields = &response.fields},
               bytes_of(std::string_view(response.body))))
    return false;
  reason_ = refusal.reason;
  return true;
}

// Responds 500, without the added fields if these cannot be sent.
bool ExchangeState::respond_failure() {
  constexpr Refusal kFailure = {Status::internal_server_error, "the handler did not respond"};
  if (respond_refusal(kFailure, {})) return true;
  if (additions_ == nullptr) return false;
  additions_->fields.clear();
  return respond_refusal(kFailure, {});
}

// ---- exceptions

void ExchangeState::report_exception() noexcept {
  has_thrown_ = true;
  if (ServerCore* server = pool_.server()) server->report_exception(request_);
}

// The handler is kept for its last call: give_up() would forget it. It may be destroyed with its
// Exchange by a function that is called for the response.
void ExchangeState::fail() {
  const Use use(*this);
  ExchangeHandler* handler = std::exchange(handler_, nullptr);
  end_without_handler();
  if (has_handle_) handler_ = handler;
  report_closed(HttpError::exception);
}

void ExchangeState::serve(Service& service, Exchange exchange) {
  ExchangeState& state = *of(exchange);
  const ExchangeKeeper keeper(exchange);
  if (!state.guard([&] { service.on_request(std::move(exchange)); })) state.fail();
}

std::error_code ExchangeState::logged_error(std::error_code error) const {
  if (has_thrown_) return HttpError::exception;
  return error || refused_with_ == 0 ? error : system_error(refused_with_);
}

void ExchangeState::stand_in(std::string_view its_route, const Address& peer) {
  header_.stand_in();
  route_.set_pattern(its_route);
  end_.reset(new (std::nothrow) End{.peer = peer, .client = peer});
}

// ---- ExchangeKeeper

ExchangeKeeper::ExchangeKeeper(const Exchange& exchange) : state_(ExchangeState::of(exchange)) {
  if (state_ != nullptr) ++state_->keepers_;
}

ExchangeKeeper::~ExchangeKeeper() {
  if (state_ == nullptr) return;
  --state_->keepers_;
  state_->give_back_unless_used();
}

void ExchangeKeeper::fail() noexcept {
  state_->report_exception();
  state_->fail();
}

}  // namespace spate::http
