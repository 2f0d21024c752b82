// Hosts: a Service that picks another one by the host that a request asks for: virtual hosts.
//
//   Hosts hosts;
//   hosts.add("example.org", site);
//   hosts.add("*.example.org", pages);      // a.example.org, a.b.example.org
//   hosts.otherwise(site);
//
// The port does not count, nor do case and a dot at the end. The exact name wins, then the longest
// "*.". What is not served is answered 421: the client has come to the wrong place.
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

  // A name, an address as a URL has it ("[::1]"), or "*." and a name; without a port. Asserted:
  // that it has not been added before.
  void add(std::string_view host, Service& service);
  // For hosts that were not added, and requests that name none (HTTP/1.0).
  void otherwise(Service& service) { otherwise_ = &service; }

  void on_request(Exchange exchange) override;

 private:
  Service* find(std::string_view host) const;

  std::map<std::string, Service*, std::less<>> services_;  // By name; "." for "*.".
  Service* otherwise_ = nullptr;
};

}  // namespace spate::http
