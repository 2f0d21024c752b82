// The client behind trusted proxies: bytes on the left do not change the address that a proxy
// appended. Network: its text parses again as itself.
#include "http/content/forwarded.h"

#include <array>
#include <string>

#include "input.h"

namespace spate::fuzz {
namespace {

constexpr std::string_view kNames[] = {"X-Forwarded-For", "Forwarded"};

Address client_of(std::string_view name, std::string_view line, const Address& last,
                  std::span<const Network> trusted) {
  http::Fields fields;
  if (!fields.add(name, line)) return last;
  return http::client_behind(fields, name, last, trusted);
}

void parse_network(std::string_view text) {
  const Result<Network> network = Network::parse(text);
  if (!network) return;
  const Result<Network> again = Network::parse(network->to_string());
  check(again.has_value() && *again == *network);
}

void find_client(std::string_view text) {
  const Address proxy = must(Address::ip("10.0.0.1", 80));
  const std::array trusted{must(Network::parse("10.0.0.0/8")), must(Network::parse("fd00::/8"))};
  for (const std::string_view name : kNames) {
    const Address client = client_of(name, text, proxy, trusted);
    check(client.is_ip() && client == client.unmapped() && client.scope() == 0);
    http::Fields fields;
    if (!fields.add(name, text)) continue;
    const std::string before = std::string(text) + (name == kNames[1] ? ", for=" : ",");
    check(client_of(name, before + "192.0.2.9", proxy, trusted).host() == "192.0.2.9");
    const std::string hop = before + "10.9.9.9";
    const Address behind = client_of(name, hop, proxy, trusted);
    check(behind == client || trusted[0].contains(behind) || trusted[1].contains(behind));
  }
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  spate::fuzz::parse_network(text);
  spate::fuzz::find_client(text);
  return 0;
}
