// resolve(): looks up the addresses of a host name.
//
// Ownership: the returned Resolving is the handle of the query; destroying it cancels, without a
// callback. If the loop is destroyed first, there is no callback either.
// Threads: the loop's thread only; each loop has its own resolver. No thread is started.
// The callback is called once, from the loop and never from inside resolve(). Inside it everything
// is allowed, destroying the Resolving included.
//
// The system's configuration applies: the hosts file, and the name servers, search list, timeout
// and attempts of resolv.conf, in the order of nsswitch.conf (files and dns). It is read at a
// loop's first query. resolv.conf is read again when it has changed and no query is in progress,
// the hosts file at each query. There is no cache. "localhost" and names below it are the loopback
// addresses unless the hosts file has other ones. An IP address as text is returned unchanged. Unix
// sockets are not resolved: see Address.
//
// A truncated answer is queried again over TCP. When a server fails or times out, the next one is
// tried; the query fails when all have been tried as often as configured. Queries are made by
// c-ares on sockets that the loop watches; they keep the loop alive.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/time.h"

namespace spate {

class Loop;

// The reasons for a failed query, in the category "spate.names".
enum class NameError {
  no_such_host = 1,    // The name does not exist.
  no_address = 2,      // The name exists, but has no address of the requested families.
  server_failure = 3,  // The name servers returned a failure, refused, or ended the connection.
  bad_answer = 4,      // A name server's answer is malformed.
  unreachable = 5,     // No name server can be reached.
  timeout = 6,         // No name server answered in time, or ResolveOptions::timeout expired.
  bad_name = 7,        // Not a valid host name: empty, too long, with blanks or colons, ...
};

SPATE_EXPORT const std::error_category& name_category();
SPATE_EXPORT std::error_code make_error_code(NameError error);

struct ResolveOptions {
  Nanos timeout{0};  // Total; zero leaves it to the configuration.
  bool ipv6 = true;
  bool ipv4 = true;  // At least one of the two.
};

using OnResolved = Function<void(Result<std::vector<Address>>)>;

class ResolveAttempt;

// A deleter in the library, so that programs may be compiled with RTTI and the library without.
struct SPATE_EXPORT ResolveAttemptEnd {
  void operator()(ResolveAttempt* attempt) const;
};

class [[nodiscard("a discarded Resolving cancels the query at once")]] Resolving {
 public:
  Resolving() = default;
  explicit Resolving(ResolveAttempt* attempt) : attempt_(attempt) {}

  // Cancels the query. No callback follows.
  void cancel() { attempt_.reset(); }

 private:
  std::unique_ptr<ResolveAttempt, ResolveAttemptEnd> attempt_;
};

// Calls `callback` with the addresses of `host`, at least one, each with `port`. They are sorted
// best first (RFC 6724), those of the hosts file in its order. A host is a name, or an address as
// text: "192.0.2.1", "fe80::1%eth0". Errors of the callback: a NameError; ENODEV for a scope that
// is not an interface; EMFILE, ENFILE, ENOMEM.
SPATE_EXPORT Resolving resolve(Loop& loop, std::string_view host, std::uint16_t port,
                               OnResolved callback, const ResolveOptions& options = {});

// Called with the addresses of one family, at least one, as soon as they are known.
using OnAddresses = Function<void(std::vector<Address>)>;
// Called at the end; without an error if there was an address.
using OnResolvedAll = Function<void(std::error_code)>;

// As resolve(), without waiting for the slower family. Calls `on_addresses` for each family that
// has addresses, at most twice and in either order, then `on_done` once. Errors of `on_done`: as
// resolve(); NameError::timeout if `options.timeout` expires before both families have been
// answered, even if one has.
SPATE_EXPORT Resolving resolve_each(Loop& loop, std::string_view host, std::uint16_t port,
                                    OnAddresses on_addresses, OnResolvedAll on_done,
                                    const ResolveOptions& options = {});

// Replaces the system's configuration, for tests and for programs that have their own.
// A cache of the answers of name servers, one for each loop. An answer is kept for its time to live
// (TTL). A configuration that is set or read again empties it.
struct NameCacheOptions {
  std::size_t entries = 0;         // 0: no cache. At the limit, the least recently used one goes.
  Nanos max_ttl{300'000'000'000};  // Limits the time to live; an answer with zero is not kept.
  Nanos negative_ttl{5'000'000'000};  // For NameError::no_such_host and no_address; zero: not kept.
};

struct ResolverOptions {
  std::vector<Address> servers{};  // Best first; port 0 is 53. Empty: those of resolv.conf.
  std::string resolv_conf = "/etc/resolv.conf";
  std::string hosts = "/etc/hosts";  // A missing or unreadable file counts as empty.
  // Per query, in whole milliseconds; doubled after each round of all servers, with jitter that
  // shortens it by less than half. Zero: the value of resolv.conf, otherwise five seconds.
  Nanos timeout{0};
  int tries = 0;  // Rounds; zero: the value of resolv.conf, otherwise four.
  NameCacheOptions cache{};
};

// Replaces the configuration for this loop's queries from now on. On an error nothing changes.
// Errors: EINVAL for a server that is not an IP address, a timeout above two minutes, a negative
// time of the cache, negative tries or more than ten; EBUSY while a query is in progress; EMFILE,
// ENFILE, ENOMEM.
SPATE_EXPORT std::error_code configure_resolver(Loop& loop, const ResolverOptions& options);

}  // namespace spate

template <>
struct std::is_error_code_enum<spate::NameError> : std::true_type {};
