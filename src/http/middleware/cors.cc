// Cors: the CORS protocol of the Fetch standard (§3.2).
#include <algorithm>
#include <utility>

#include "spate/assert.h"
#include "spate/http/middleware.h"

namespace spate::http {

namespace {

constexpr std::string_view kRequestMethod = "Access-Control-Request-Method";
constexpr std::string_view kRequestFields = "Access-Control-Request-Headers";

template <class Range, class Name>
std::string list_of(const Range& range, Name name) {
  std::string list;
  for (const auto& member : range) {
    if (!list.empty()) list += ", ";
    list += name(member);
  }
  return list;
}

bool contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::ranges::find(texts, text) != texts.end();
}

std::string list_of(const std::vector<std::string>& texts) {
  return list_of(texts, [](const std::string& text) { return text; });
}

}  // namespace

Cors::Cors(Service& next, CorsOptions options)
    : next_(next),
      options_(std::move(options)),
      methods_(list_of(options_.methods, [](Method method) { return name_of(method); })),
      request_fields_(list_of(options_.request_fields)),
      response_fields_(list_of(options_.response_fields)),
      max_age_(std::to_string(
          std::chrono::duration_cast<std::chrono::seconds>(options_.max_age).count())),
      allows_all_(contains(options_.origins, "*")) {
  SPATE_ASSERT(!allows_all_ || !options_.credentials,
               "credentials for all origins: list the origins that may have them");
}

void Cors::on_request(Exchange exchange) {
  const Request& request = exchange.request();
  const auto origin = request.fields().find(FieldId::origin);
  if (!origin) {
    // A cache must not give this response to a page of an origin.
    if (!allows_all_) exchange.add_field(FieldId::vary, "Origin");
    return next_.on_request(std::move(exchange));
  }
  if (request.method() == Method::options && request.fields().contains(kRequestMethod))
    return respond_to_preflight(std::move(exchange));
  add_permission(exchange, *origin);
  if (!response_fields_.empty() && allows(*origin))
    exchange.add_field("Access-Control-Expose-Headers", response_fields_);
  next_.on_request(std::move(exchange));
}

bool Cors::allows(std::string_view origin) const {
  return allows_all_ || contains(options_.origins, origin);
}

void Cors::add_permission(Exchange& exchange, std::string_view origin) const {
  if (!allows_all_) exchange.add_field(FieldId::vary, "Origin");
  if (!allows(origin)) return;
  exchange.add_field("Access-Control-Allow-Origin", allows_all_ ? "*" : origin);
  if (options_.credentials) exchange.add_field("Access-Control-Allow-Credentials", "true");
}

// Without a permission the response is the same, but without the fields that give it.
void Cors::respond_to_preflight(Exchange exchange) const {
  const FieldsView& asked = exchange.request().fields();
  const std::string_view origin = asked[FieldId::origin];
  add_permission(exchange, origin);
  exchange.add_field(FieldId::vary, kRequestMethod);
  exchange.add_field(FieldId::vary, kRequestFields);
  if (allows(origin)) {
    const bool allows_all_fields = contains(options_.request_fields, "*");
    const std::string_view fields = allows_all_fields ? asked[kRequestFields] : request_fields_;
    exchange.add_field("Access-Control-Allow-Methods", methods_);
    if (!fields.empty()) exchange.add_field("Access-Control-Allow-Headers", fields);
    exchange.add_field("Access-Control-Max-Age", max_age_);
  }
  exchange.respond(Status::no_content);
}

}  // namespace spate::http
