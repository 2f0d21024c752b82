// The PROXY protocol: a prefix of the input is complete, malformed or incomplete, within its
// limits, and more bytes do not change a final result.
#include "input.h"
#include "spate/net/proxy_protocol.h"

namespace spate::fuzz {
namespace {

using State = ProxyHeader::State;

void parse(Bytes bytes) {
  const ProxyHeader whole = parse_proxy_header(bytes);
  for (std::size_t size = 0; size < bytes.size() && size < 300; ++size) {
    const ProxyHeader part = parse_proxy_header(bytes.first(size));
    if (part.state == State::unfinished) {
      check(part.size > size && part.size <= kMostProxyHeader);
      if (whole.state == State::whole) check(part.size <= whole.size);
    } else {
      check(part.state == whole.state && part.size == whole.size);
      check(part.source == whole.source && part.destination == whole.destination);
    }
  }
  if (whole.state != State::whole) return;
  check(whole.size <= bytes.size() && whole.extensions.size() < whole.size);
  check(whole.source.is_ip() == whole.destination.is_ip());
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spate::fuzz::parse(std::as_bytes(std::span(data, size)));
  return 0;
}
