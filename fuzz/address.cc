// Address: any text is refused or becomes an address that prints, and parses again, as itself; any
// bytes of the system's, too.
#include "spate/net/address.h"

#include "input.h"

namespace spate::fuzz {
namespace {

// The two that parse() refuses; address.h names them.
bool prints_for_people_only(const Address& address) {
  return address.family() == Address::Family::none ||
         (!address.is_abstract() && address.name().size() > 107);
}

void use(const Address& address) {
  const std::string text = address.to_string();
  check(address.is_ip() == !address.host().empty());
  check(address == address.with_port(address.port()));
  check(address.host_hash() == address.with_port(7).host_hash());
  check(address.unmapped().unmapped() == address.unmapped());
  check(address.unmapped().port() == address.port());
  const auto same = Address::from_system(address.data(), address.size());
  check(same && *same == address);
  const auto again = Address::parse(text);
  if (prints_for_people_only(address)) return check(!again);
  check(again && *again == address);
  if (!address.is_ip()) return;
  const auto by_parts = Address::ip(address.host(), address.port());
  check(by_parts && *by_parts == address);
}

void parse(std::string_view text) {
  const auto parsed = Address::parse(text);
  if (!parsed) return check(static_cast<bool>(parsed.error()));
  use(*parsed);
  check(!prints_for_people_only(*parsed));
}

void take_apart(std::string_view bytes) {
  const auto address = Address::from_system(bytes.data(), bytes.size());
  if (address) use(*address);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate::fuzz;
  Input input(data, size);
  switch (input.byte() % 4) {
    case 0:
      take_apart(input.rest());
      break;
    case 1:
      if (const auto path = spate::Address::path(input.rest())) use(*path);
      break;
    case 2:
      if (const auto name = spate::Address::abstract(input.rest())) use(*name);
      break;
    default:
      parse(input.rest());
  }
  return 0;
}
