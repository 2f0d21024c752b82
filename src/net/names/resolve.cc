// resolve() and configure_resolver(), over the loop's Resolver.
#include "core/user_code.h"
#include "net/names/resolver.h"
#include "spate/assert.h"
#include "sys/descriptor.h"

namespace spate {

// What a Resolving stands for. Its destructor cancels.
class ResolveAttempt {
 public:
  virtual ~ResolveAttempt() = default;
};

namespace {

class NameLookup final : public ResolveAttempt, private Question {
 public:
  NameLookup(Loop& loop, std::string_view host, std::uint16_t port, OnResolved callback)
      : Question(loop, host, port),
        callback_(std::move(callback)),
        limit_(loop, [this] { end(std::unexpected(make_error_code(NameError::timeout))); }) {}

  void start(const ResolveOptions& options) {
    if (options.timeout > Nanos{0}) limit_.start(options.timeout);
    ask((options.ipv6 ? kIpv6 : 0) | (options.ipv4 ? kIpv4 : 0), false);
  }

 private:
  void on_news() override {
    if (!is_answered()) return;
    std::vector<Address> addresses = take_addresses();
    if (addresses.empty()) return end(std::unexpected(error()));
    end(std::move(addresses));
  }

  // The last that is done: the callback may destroy us.
  void end(Result<std::vector<Address>> result) {
    limit_.stop();
    stop_asking();
    OnResolved callback = std::move(callback_);
    call_user("resolve()", [&] { callback(std::move(result)); });
  }

  OnResolved callback_;
  Timer limit_;
};

}  // namespace

void ResolveAttemptEnd::operator()(ResolveAttempt* attempt) const { delete attempt; }

Resolving resolve(Loop& loop, std::string_view host, std::uint16_t port, OnResolved callback,
                  const ResolveOptions& options) {
  SPATE_ASSERT(options.ipv4 || options.ipv6, "ask for one family at least");
  auto lookup = std::make_unique<NameLookup>(loop, host, port, std::move(callback));
  lookup->start(options);
  return Resolving(lookup.release());
}

std::error_code configure_resolver(Loop& loop, const ResolverOptions& options) {
  Resolver* resolver = Resolver::of(loop);
  if (resolver == nullptr) return sys::error_code(-ENOMEM);
  return resolver->configure(options);
}

}  // namespace spate
