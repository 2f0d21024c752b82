// Places from which an exception leaves user code of a server.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "exceptions/http_site.h"

namespace spate::testing {

struct Case {
  const char* name;
  // Sets the site up, serves, and returns what the client saw.
  std::string (*run)(Site& site);
  const char* seen = "500";
  std::size_t reports = 1;
  const char* route = "/case";
  int logged = 1;
  bool only_http_1 = false;
};

std::span<const Case> request_cases();    // Handlers, and the functions of an exchange.
std::span<const Case> service_cases();    // Middleware, and other Services of the library.
std::span<const Case> task_cases();       // coro::handler().
std::span<const Case> websocket_cases();  // WebSocketHandler, WebSocketSession, upgrades.

// Connects a WebSocket to /case, sends `text` ("hello" if it is empty), and returns how it ended:
// "closed 1011", or "refused".
std::string talk(Site& site, std::string_view text);

}  // namespace spate::testing
