// Hosts: a Service that selects another Service by the request's host (virtual hosts).
//
//   Hosts hosts;
//   hosts.add("example.org", site);
//   hosts.add("*.example.org", pages);      // a.example.org, a.b.example.org
//   hosts.otherwise(site);
//
// The port, case and a trailing dot are ignored. An exact name wins, then the longest "*.". A host
// without a Service gets 421 (Misdirected Request).
//
// Ownership: the services are the caller's, and must outlive the Hosts, which must outlive its
// Servers.
// Threads: set up before it is used; then as its services.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/server.h"

namespace spate::http {

class SPATE_EXPORT Hosts final : public Service {
 public:
  Hosts();
  Hosts(Hosts&& other) noexcept;
  Hosts& operator=(Hosts&& other) noexcept;
  ~Hosts() override;

  // Adds a host: a name, an address as in a URL ("[::1]"), or "*." and a name; without a port. Must
  // not have been added before (asserted).
  void add(std::string_view host, Service& service);
  // Sets the Service for hosts that were not added, and for requests without one (HTTP/1.0).
  void otherwise(Service& service) { otherwise_ = &service; }

  void on_request(Exchange exchange) override;

 private:
  Service* find(std::string_view host) const;

  std::map<std::string, Service*, std::less<>> services_;  // By name; "." for "*.".
  Service* otherwise_ = nullptr;
};

}  // namespace spate::http
