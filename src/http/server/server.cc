#include "spate/http/server.h"

#include <utility>

#include "http/server/server_core.h"
#include "spate/assert.h"

namespace spate::http {

namespace {

template <class Requests>
Result<Server> serve_by(Loop& loop, const Address& address, Requests&& requests,
                        ServerOptions options, const ListenOptions& listen) {
  Result<Server> server =
      Server::create(loop, std::forward<Requests>(requests), std::move(options));
  if (!server) return server;
  if (const Result<Address> bound = server->listen(address, listen); !bound)
    return std::unexpected(bound.error());
  return server;
}

}  // namespace

Server::Server() = default;
Server::Server(std::unique_ptr<ServerCore> core) : core_(std::move(core)) {}
Server::Server(Server&& other) noexcept = default;
Server& Server::operator=(Server&& other) noexcept = default;
Server::~Server() = default;

Result<Server> Server::create(Loop& loop, Service& service, ServerOptions options) {
  auto core = ServerCore::create(loop, &service, {}, std::move(options));
  if (!core) return std::unexpected(core.error());
  return Server(std::move(*core));
}

Result<Server> Server::create(Loop& loop, OnRequest on_request, ServerOptions options) {
  auto core = ServerCore::create(loop, nullptr, std::move(on_request), std::move(options));
  if (!core) return std::unexpected(core.error());
  return Server(std::move(*core));
}

Result<Address> Server::listen(const Address& address, const ListenOptions& options) {
  return core_->listen(address, options);
}

Address Server::address() const { return core_->address(); }

void Server::add(Stream stream) { core_->add(std::move(stream)); }

void Server::drain(Nanos grace, Function<void()> done) { core_->drain(grace, std::move(done)); }

ServerMetrics Server::metrics() const { return core_->counters().read(); }

Result<Server> serve(Loop& loop, const Address& address, Service& service, ServerOptions options,
                     const ListenOptions& listen) {
  return serve_by(loop, address, service, std::move(options), listen);
}

Result<Server> serve(Loop& loop, const Address& address, OnRequest on_request,
                     ServerOptions options, const ListenOptions& listen) {
  return serve_by(loop, address, std::move(on_request), std::move(options), listen);
}

}  // namespace spate::http
