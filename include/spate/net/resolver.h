// resolve(): the addresses of a host name.
//
// Ownership: the Resolving that is returned is the query; destroying it cancels, without a
// callback. If the loop is destroyed first, there is no callback either.
// Threads: the loop's thread only; each loop has its own resolver. No thread is started.
// The callback is called once, from the loop and never from inside resolve(). Inside it everything
// is allowed, destroying the Resolving included.
//
// The system's configuration applies: the hosts file, and the name servers, search list, timeout
// and attempts of resolv.conf, in the order of nsswitch.conf (files and dns). It is read at a
// loop's first query; resolv.conf is read again when it has changed and no query is in progress.
// There is no cache. "localhost" and names below it are the loopback addresses unless the hosts
// file says otherwise. An IP address as text is returned as it is; unix sockets are not resolved:
// see Address.
//
// A truncated answer is queried again over TCP. When a server fails or times out, the next one is
// tried; the query fails when all have been tried as often as configured. Queries are made by
// c-ares on sockets that the loop watches; they keep the loop alive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/address.h"
#include "spate/time.h"

namespace spate {

class Loop;

// Why there is no address: the category "spate.names".
enum class NameError {
  no_such_host = 1,    // The name does not exist.
  no_address = 2,      // The name exists, but has no address of the requested families.
  server_failure = 3,  // The name servers returned a failure or refused.
  bad_answer = 4,      // A name server's answer is malformed.
  unreachable = 5,     // No name server can be reached.
  timeout = 6,         // No name server answered in time, or ResolveOptions::timeout expired.
  bad_name = 7,        // Not a valid host name: empty, too long, with blanks or colons, ...
};

SPATE_EXPORT const std::error_category& name_category();
SPATE_EXPORT std::error_code make_error_code(NameError error);

struct ResolveOptions {
  Nanos timeout{0};  // In total; zero leaves it to the configuration.
  bool ipv6 = true;
  bool ipv4 = true;  // At least one of the two.
};

using OnResolved = std::move_only_function<void(Result<std::vector<Address>>)>;

class ResolveAttempt;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT ResolveAttemptEnd {
  void operator()(ResolveAttempt* attempt) const;
};

class [[nodiscard("a Resolving that nobody keeps gives the question up at once")]] Resolving {
 public:
  Resolving() = default;
  explicit Resolving(ResolveAttempt* attempt) : attempt_(attempt) {}

  // No callback follows.
  void cancel() { attempt_.reset(); }

 private:
  std::unique_ptr<ResolveAttempt, ResolveAttemptEnd> attempt_;
};

// The addresses of `host`, at least one, each with `port`; best first (RFC 6724), those of the
// hosts file in its order. A host is a name, or an address as text: "192.0.2.1", "fe80::1%eth0".
// Errors of the callback: a NameError; ENODEV for a scope that is not an interface; EMFILE, ENFILE,
// ENOMEM.
SPATE_EXPORT Resolving resolve(Loop& loop, std::string_view host, std::uint16_t port,
                               OnResolved callback, const ResolveOptions& options = {});

// Called with the addresses of one family, at least one, as soon as they are known.
using OnAddresses = std::move_only_function<void(std::vector<Address>)>;
// Called at the end: without an error if there was an address.
using OnResolvedAll = std::move_only_function<void(std::error_code)>;

// The same without waiting for the slower family, which may be either one. `on_addresses` is called
// at most twice, then `on_done` once, with the errors of resolve(); with NameError::timeout if
// `options.timeout` expires before both families have been answered, even if one has.
SPATE_EXPORT Resolving resolve_each(Loop& loop, std::string_view host, std::uint16_t port,
                                    OnAddresses on_addresses, OnResolvedAll on_done,
                                    const ResolveOptions& options = {});

// Replaces the system's configuration, for tests and for programs that have their own.
struct ResolverOptions {
  std::vector<Address> servers{};  // Best first; port 0 is 53. Empty: those of resolv.conf.
  std::string resolv_conf = "/etc/resolv.conf";
  std::string hosts = "/etc/hosts";  // A missing or unreadable file counts as empty.
  // Per query, in whole milliseconds; doubled after each round of all servers, with jitter that
  // shortens it by less than half. Zero: that of resolv.conf, else five seconds.
  Nanos timeout{0};
  int tries = 0;  // Rounds; zero: that of resolv.conf, else four.
};

// Applies to this loop's queries from now on. Errors, with which nothing changes: EINVAL for a
// server that is not an IP address, a timeout above two minutes, negative tries or more than ten;
// EBUSY while a query is in progress; EMFILE, ENFILE, ENOMEM.
SPATE_EXPORT std::error_code configure_resolver(Loop& loop, const ResolverOptions& options);

}  // namespace spate

template <>
struct std::is_error_code_enum<spate::NameError> : std::true_type {};
