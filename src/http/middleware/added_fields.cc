// AddedFields, SecurityFields.
#include <utility>

#include "http/codec/outgoing.h"
#include "http/server/exchange_state.h"
#include "spate/assert.h"
#include "spate/http/middleware.h"

namespace spate::http {

namespace {

void add_text(Fields& fields, std::string_view name, std::string_view value) {
  const bool is_valid = value.empty() || fields.add(name, value);
  SPATE_ASSERT(is_valid, "a security field's text must be a valid field value");
  static_cast<void>(is_valid);
}

std::string hsts_text(const SecurityFieldsOptions& options) {
  if (options.hsts <= Nanos{0}) return {};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.hsts).count();
  return "max-age=" + std::to_string(seconds) +
         (options.hsts_subdomains ? "; includeSubDomains" : "");
}

}  // namespace

AddedFields::AddedFields(Service& next, Fields fields) : next_(next), fields_(std::move(fields)) {
  SPATE_ASSERT(!fields_.view().contains_any(kFramingFields | bit_of(FieldId::date)),
               "the server sets this field itself");
}

void AddedFields::on_request(Exchange exchange) {
  ExchangeState::of(exchange)->add_fields(fields_);
  next_.on_request(std::move(exchange));
}

SecurityFields::SecurityFields(Service& next, const SecurityFieldsOptions& options)
    : next_(next), hsts_(hsts_text(options)) {
  add_text(fields_, "Content-Security-Policy", options.content_security_policy);
  add_text(fields_, "Referrer-Policy", options.referrer_policy);
  add_text(fields_, "Permissions-Policy", options.permissions_policy);
  add_text(fields_, "Cross-Origin-Opener-Policy", options.cross_origin_opener_policy);
  add_text(fields_, "X-Content-Type-Options", options.nosniff ? "nosniff" : "");
}

void SecurityFields::on_request(Exchange exchange) {
  ExchangeState::of(exchange)->add_fields(fields_);
  if (!hsts_.empty() && exchange.request().is_secure())
    exchange.add_field("Strict-Transport-Security", hsts_);
  next_.on_request(std::move(exchange));
}

}  // namespace spate::http
