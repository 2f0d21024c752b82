// The PROXY protocol: a header is whole, broken or unfinished by what there is of it, within its
// limits, and does not change its mind.
#include "http/codec/proxy_protocol.h"

#include "input.h"

namespace spate::fuzz {
namespace {

using http::ProxyHeader;
using State = ProxyHeader::State;

void parse(Bytes bytes) {
  const ProxyHeader whole = http::parse_proxy_header(bytes);
  for (std::size_t size = 0; size < bytes.size() && size < 300; ++size) {
    const ProxyHeader part = http::parse_proxy_header(bytes.first(size));
    if (part.state == State::unfinished) {
      check(part.size > size && part.size <= http::kMostProxyHeader);
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
