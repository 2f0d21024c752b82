// The functions of spate_tls.h that make a spate_tls_context.
#include <cerrno>
#include <expected>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c/code.h"
#include "c/sized.h"
#include "c/tls.h"

using namespace spate;

namespace {

std::string text_of(const char* text) { return text == nullptr ? std::string() : text; }

// Parses "h2,http/1.1".
std::vector<std::string> names_in(const char* list) {
  std::vector<std::string> names;
  std::string_view rest = list == nullptr ? std::string_view() : list;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

TlsIdentity identity_of(const spate_tls_options& options) {
  return {.chain_file = text_of(options.chain_file),
          .key_file = text_of(options.key_file),
          .chain = text_of(options.chain),
          .key = text_of(options.key)};
}

bool has_identity(const spate_tls_options& options) {
  return options.chain_file != nullptr || options.chain != nullptr || options.key_file != nullptr ||
         options.key != nullptr;
}

std::unexpected<TlsFailure> not_of_this_side(const char* field) {
  return std::unexpected(
      TlsFailure{{EINVAL, std::system_category()}, std::string(field) + " is the other side's"});
}

TlsResult<TlsContext> make_server(const spate_tls_options& options) {
  TlsServerOptions server;
  if (options.without_system_cas != 0) return not_of_this_side("`without_system_cas`");
  if (has_identity(options)) server.identities.push_back(identity_of(options));
  server.alpn = names_in(options.alpn);
  server.client_check = static_cast<TlsClientCheck>(options.client_check);
  server.client_ca_file = text_of(options.ca_file);
  server.client_ca = text_of(options.ca);
  if (options.handshake_timeout > 0) server.handshake_timeout = Nanos{options.handshake_timeout};
  return TlsContext::server(server);
}

TlsResult<TlsContext> make_client(const spate_tls_options& options) {
  TlsClientOptions client;
  if (options.client_check != SPATE_TLS_CLIENT_NONE) return not_of_this_side("`client_check`");
  if (has_identity(options)) client.identity = identity_of(options);
  client.alpn = names_in(options.alpn);
  client.system_cas = options.without_system_cas == 0;
  client.ca_file = text_of(options.ca_file);
  client.ca = text_of(options.ca);
  if (options.handshake_timeout > 0) client.handshake_timeout = Nanos{options.handshake_timeout};
  return TlsContext::client(client);
}

int make(spate_tls_context** context, const spate_tls_options* options, char* why, std::size_t size,
         TlsResult<TlsContext> (*create)(const spate_tls_options& options)) {
  *context = nullptr;
  c::copy_text("", why, size);
  spate_tls_options known;
  if (const int code = c::copy_sized(options, known)) return code;
  TlsResult<TlsContext> made = create(known);
  if (!made) {
    c::copy_text(made.error().text, why, size);
    return c::to_code(made.error().code);
  }
  *context = new (std::nothrow) spate_tls_context{std::move(*made)};
  return *context == nullptr ? -ENOMEM : 0;
}

}  // namespace

int spate_tls_server(spate_tls_context** context, const spate_tls_options* options, char* why,
                     size_t size) {
  return make(context, options, why, size, make_server);
}

int spate_tls_client(spate_tls_context** context, const spate_tls_options* options, char* why,
                     size_t size) {
  return make(context, options, why, size, make_client);
}

void spate_tls_context_destroy(spate_tls_context* context) { delete context; }
