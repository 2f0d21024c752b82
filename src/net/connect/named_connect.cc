#include "net/connect/named_connect.h"
#include "spate/named_callback.h"

namespace spate {

NamedConnect::NamedConnect(Loop& loop, std::string_view host, std::uint16_t port, OnSocket callback,
                           const ConnectOptions& options)
    : Question(loop, host, port),
      callback_(loop, std::move(callback)),
      options_(options),
      race_(
          loop, [this](auto result) { on_end(std::move(result)); }, options),
      delay_(loop, named<Timer, ActiveKind::connecting>([this] { race_.begin(); })) {}

// Resolves only the families that the local address allows.
void NamedConnect::start() {
  const Address& local = options_.local;
  ask(local.is_ip() ? family_of(local) : kIpv4 | kIpv6, true);
}

void NamedConnect::on_news() {
  race_.add_by_turns(take_addresses());
  if (is_answered()) race_.close(error());
  if (race_.has_begun()) return;
  if (!waits_for(options_.ipv6_first ? kIpv6 : kIpv4)) {
    delay_.stop();
    race_.begin();
  } else {
    delay_.start(options_.resolution_delay);
  }
}

void NamedConnect::on_end(Result<sys::Descriptor> result) {
  stop_asking();
  delay_.stop();
  callback_.call_last(std::move(result));
}

}  // namespace spate
