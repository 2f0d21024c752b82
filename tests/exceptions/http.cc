// Exceptions that leave the handlers of a server: each function of the user's that it calls throws,
// over HTTP/1.1 and HTTP/2. The client gets 500 or a reset, the exception is reported with its
// route, and the server answers the next request.
#include <cstdio>
#include <string_view>
#include <utility>

#include "exceptions/http_cases.h"
#include "exceptions/http_site.h"

namespace spate::testing {
namespace {

// Returns `is_right`. Prints `what` if it is false.
bool check(bool is_right, const Case& each, Protocol protocol, std::string_view what) {
  if (!is_right)
    std::printf("%s over %s: %.*s\n", each.name,
                protocol == Protocol::http_2 ? "HTTP/2" : "HTTP/1.1",
                static_cast<int>(what.size()), what.data());
  return is_right;
}

bool holds(Loop& loop, const Case& each, Protocol protocol) {
  if (protocol == Protocol::http_2 && each.only_http_1) return true;
  Site site(loop, protocol);
  const std::string seen = each.run(site);
  site.turns();
  bool is_right = check(seen == each.seen, each, protocol, "the client got " + seen);
  is_right &= check(site.reports.size() == each.reports, each, protocol,
                    std::to_string(site.reports.size()) + " exceptions were reported");
  for (const Report& report : site.reports) {
    is_right &= check(report.route == each.route, each, protocol, "its route is " + report.route);
    is_right &= check(report.text == "thrown by the test", each, protocol, report.text);
  }
  is_right &= check(site.logged == each.logged, each, protocol,
                    std::to_string(site.logged) + " records have its error");
  const std::string next = site.ask("/good");
  return check(next == "200", each, protocol, "the next request got " + next) && is_right;
}

int count_wrong(std::span<const Case> cases) {
  int wrong = 0;
  for (const Case& each : cases) {
    for (const Protocol protocol : {Protocol::http_1, Protocol::http_2}) {
      const auto loop = must(Loop::create());
      wrong += !holds(*loop, each, protocol);
    }
  }
  return wrong;
}

}  // namespace
}  // namespace spate::testing

int main() {
  using namespace spate::testing;
  const int wrong = count_wrong(request_cases()) + count_wrong(service_cases()) +
                    count_wrong(task_cases()) + count_wrong(websocket_cases());
  return wrong == 0 ? 0 : 1;
}
