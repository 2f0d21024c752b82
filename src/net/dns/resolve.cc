// resolve() and configure_resolver(), with the loop's Resolver.
#include "base/abandonable.h"
#include "core/loop_function.h"
#include "core/user_code.h"
#include "net/dns/resolver.h"
#include "spate/assert.h"
#include "spate/named_callback.h"
#include "sys/descriptor.h"

namespace spate {

// The state behind a Resolving.
class ResolveAttempt {
 public:
  virtual void cancel() = 0;

 protected:
  ~ResolveAttempt() = default;
};

namespace {

// A user's query, with its timeout.
class Lookup : public ResolveAttempt, protected Question, private Abandonable<Lookup> {
 public:
  void start(const ResolveOptions& options, bool apart) {
    SPATE_ASSERT(options.ipv4 || options.ipv6, "enable at least one of ipv4 and ipv6");
    if (options.timeout > Nanos{0}) limit_.start(options.timeout);
    ask((options.ipv6 ? kIpv6 : 0) | (options.ipv4 ? kIpv4 : 0), apart);
  }
  void cancel() final {
    stop();
    abandon();
  }

 protected:
  Lookup(Loop& loop, std::string_view host, std::uint16_t port)
      : Question(loop, host, port), limit_(loop, named<Timer, ActiveKind::name_lookup>([this] {
                                             end(make_error_code(NameError::timeout));
                                           })) {}

  // Must be the last call: the callback may destroy this.
  virtual void end(std::error_code error) = 0;
  void stop() {
    limit_.stop();
    stop_asking();
  }
  // Calls a callback. False if it has destroyed this.
  template <class Function>
  bool tell(Function function) {
    return call([&] { call_user("resolve()", function); });
  }

 private:
  friend class Abandonable<Lookup>;

  Timer limit_;
};

// Reports all addresses at once.
class WholeLookup final : public Lookup {
 public:
  WholeLookup(Loop& loop, std::string_view host, std::uint16_t port, OnResolved callback)
      : Lookup(loop, host, port), callback_(loop, std::move(callback)) {}

 private:
  void on_news() override {
    if (is_answered()) end(error());
  }
  void end(std::error_code error) override {
    stop();
    Result<std::vector<Address>> result = take_addresses();
    if (result->empty()) result = std::unexpected(error);
    tell([&] { callback_.call_last(std::move(result)); });
  }

  LoopFunction<void(Result<std::vector<Address>>)> callback_;
};

// Reports each family's addresses as they arrive.
class EachLookup final : public Lookup {
 public:
  EachLookup(Loop& loop, std::string_view host, std::uint16_t port, OnAddresses on_addresses,
             OnResolvedAll on_done)
      : Lookup(loop, host, port),
        on_addresses_(loop, std::move(on_addresses)),
        on_done_(loop, std::move(on_done)) {}

 private:
  void on_news() override {
    std::vector<Address> addresses = take_addresses();
    has_some_ = has_some_ || !addresses.empty();
    if (!addresses.empty() && !tell([&] { on_addresses_(std::move(addresses)); })) return;
    if (is_answered()) end(has_some_ ? std::error_code() : error());
  }
  void end(std::error_code error) override {
    stop();
    // A callback that ran the loop may have finished already.
    tell([&] {
      on_done_.call_last(error);
    });
  }

  LoopFunction<void(std::vector<Address>)> on_addresses_;
  LoopFunction<void(std::error_code)> on_done_;
  bool has_some_ = false;
};

}  // namespace

void ResolveAttemptEnd::operator()(ResolveAttempt* attempt) const { attempt->cancel(); }

Resolving resolve(Loop& loop, std::string_view host, std::uint16_t port, OnResolved callback,
                  const ResolveOptions& options) {
  auto* lookup = new WholeLookup(loop, host, port, std::move(callback));
  lookup->start(options, false);
  return Resolving(lookup);
}

Resolving resolve_each(Loop& loop, std::string_view host, std::uint16_t port,
                       OnAddresses on_addresses, OnResolvedAll on_done,
                       const ResolveOptions& options) {
  auto* lookup = new EachLookup(loop, host, port, std::move(on_addresses), std::move(on_done));
  lookup->start(options, true);
  return Resolving(lookup);
}

std::error_code configure_resolver(Loop& loop, const ResolverOptions& options) {
  Resolver* resolver = Resolver::of(loop);
  if (resolver == nullptr) return sys::error_code(-ENOMEM);
  return resolver->configure(options);
}

}  // namespace spate
