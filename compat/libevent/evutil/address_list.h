// Lists of addresses that this library allocates, marked by the uppermost flag for
// evutil_freeaddrinfo(). Others are libc's.
#pragma once

#include <event2/util.h>

#include <climits>

namespace spate::libevent {

inline constexpr int kOwnAddressFlag = INT_MIN;

// Returns two entries for hints without a type and a protocol: for a stream and for datagrams. The
// port is in network byte order. Returns null without memory.
evutil_addrinfo* make_address_list(const sockaddr& address, int size, ev_uint16_t port,
                                   const evutil_addrinfo& hints);

// Either may be null.
evutil_addrinfo* join_address_lists(evutil_addrinfo* first, evutil_addrinfo* second);

[[nodiscard]] inline bool is_own_address_list(const evutil_addrinfo& list) {
  return (list.ai_flags & kOwnAddressFlag) != 0;
}
void free_own_address_list(evutil_addrinfo* list);

}  // namespace spate::libevent
