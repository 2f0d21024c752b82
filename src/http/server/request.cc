#include "spate/http/request.h"

#include "http/server/exchange_state.h"

namespace spate::http {

Method Request::method() const { return state_.view().method; }
std::string_view Request::method_name() const { return state_.view().method_name; }
Version Request::version() const { return state_.view().version; }
std::string_view Request::target() const { return state_.view().target; }
std::string_view Request::query() const { return state_.target().query; }
std::string_view Request::host() const { return state_.target().authority; }

std::string_view Request::path() const {
  const std::string_view path = state_.target().path;
  return path == "*" ? std::string_view() : path;
}

const FieldsView& Request::fields() const { return state_.view().fields; }

bool Request::has_body() const { return state_.body().exists(); }

std::optional<std::uint64_t> Request::content_length() const {
  if (state_.body().is_chunked()) return {};
  return state_.body().declared_size();
}

std::string Request::param(std::string_view name) const {
  return state_.route().param(name, state_.target().path);
}

std::string_view Request::route() const { return state_.route().pattern(); }

Address Request::client() const { return state_.client(); }

Address Request::peer() const { return state_.peer(); }

std::optional<TlsInfo> Request::tls() const { return state_.tls(); }

const AttributeNode* Request::find_attribute(const void* key) const {
  return state_.find_attribute(key);
}

}  // namespace spate::http
