// resolve(): the addresses behind a host's name.
//
// Ownership: the Resolving that is returned stands for the question; destroying it cancels, and
// nobody is called. The loop may be destroyed first: then nobody is called either.
// Threads: the loop's thread only; each loop asks for itself. No thread is started.
// The callback is called once, from the loop and never from inside resolve(). Everything is allowed
// inside, destroying the Resolving included.
//
// The system's configuration decides: the hosts file, and the name servers, the search list, the
// timeout and the attempts of resolv.conf, in the order of nsswitch.conf (files and dns). It is
// read when a loop asks for the first time; resolv.conf is read again when it has changed and no
// question is under way. Nothing is remembered: each question is asked, but for the hosts file and
// for "localhost" and names below it, which are the loopback addresses wherever they are not in the
// hosts file. An address written as text is that address, without asking; unix sockets' names are
// Address's business.
//
// A truncated answer is asked for again over TCP. A server that fails or is silent is followed by
// the next one; when all have been tried as often as configured, the question fails. Questions are
// asked through c-ares; its sockets are watched by the loop, and keep it alive while somebody
// waits.
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
  no_address = 2,      // The name exists, and has no address of the families that were asked for.
  server_failure = 3,  // The name servers answer that they cannot, or will not, find out.
  bad_answer = 4,      // What a name server answered makes no sense.
  unreachable = 5,     // No name server can be reached.
  timeout = 6,         // No name server has answered in time, or ResolveOptions::timeout is over.
  bad_name = 7,        // No host can be called that: empty, too long, blanks or colons in it, ...
};

SPATE_EXPORT const std::error_category& name_category();
SPATE_EXPORT std::error_code make_error_code(NameError error);

struct ResolveOptions {
  Nanos timeout{0};  // For all of it; zero leaves it to the configuration.
  bool ipv6 = true;
  bool ipv4 = true;  // One of the two at least.
};

using OnResolved = std::move_only_function<void(Result<std::vector<Address>>)>;

class ResolveAttempt;

// Ends an attempt. In the library, so that programs may be compiled with RTTI and it without.
struct SPATE_EXPORT ResolveAttemptEnd {
  void operator()(ResolveAttempt* attempt) const;
};

class [[nodiscard("a Resolving that nobody keeps gives the question up at once")]] Resolving {
 public:
  Resolving() = default;
  explicit Resolving(ResolveAttempt* attempt) : attempt_(attempt) {}

  // Nobody is called any more.
  void cancel() { attempt_.reset(); }

 private:
  std::unique_ptr<ResolveAttempt, ResolveAttemptEnd> attempt_;
};

// The addresses of `host`, one at least, each with `port`; best first (RFC 6724), those of the
// hosts file as they stand there. A host is a name, or an address as text: "192.0.2.1",
// "fe80::1%eth0". Errors of the callback: a NameError; ENODEV for a scope that names no interface
// here; EMFILE, ENFILE, ENOMEM.
SPATE_EXPORT Resolving resolve(Loop& loop, std::string_view host, std::uint16_t port,
                               OnResolved callback, const ResolveOptions& options = {});

// Called for each family with the addresses that it has, as soon as they are known; never with
// none.
using OnAddresses = std::move_only_function<void(std::vector<Address>)>;
// Called when there will be no more: no error if an address has come.
using OnResolvedAll = std::move_only_function<void(std::error_code)>;

// The same for who can use one family while the other one's answer is late: addresses come in no
// order among the families. `on_addresses` is called twice at most, then `on_done` once, with the
// errors of resolve(); with NameError::timeout if `options.timeout` is over before both families
// have been answered, whatever has come.
SPATE_EXPORT Resolving resolve_each(Loop& loop, std::string_view host, std::uint16_t port,
                                    OnAddresses on_addresses, OnResolvedAll on_done,
                                    const ResolveOptions& options = {});

// In place of what the system says, for tests and for programs that have their own configuration.
struct ResolverOptions {
  std::vector<Address> servers{};  // To ask, best first; port 0 is 53. None: resolv.conf's.
  std::string resolv_conf = "/etc/resolv.conf";
  std::string hosts = "/etc/hosts";  // A file that is not there, or not for us, holds nothing.
  // For an answer, in whole milliseconds; doubled each time all servers have been asked, and made
  // shorter by chance, by less than a half. Zero: resolv.conf's, else five seconds.
  Nanos timeout{0};
  int tries = 0;  // How often each server is asked; zero: resolv.conf's, else four times.
};

// How this loop asks from now on. Errors: EINVAL for a server that is no IP address, a timeout
// above two minutes, more than ten tries, or less than none; EBUSY while a question is under way;
// EMFILE, ENFILE, ENOMEM. Then it goes on as before.
SPATE_EXPORT std::error_code configure_resolver(Loop& loop, const ResolverOptions& options);

}  // namespace spate

template <>
struct std::is_error_code_enum<spate::NameError> : std::true_type {};
