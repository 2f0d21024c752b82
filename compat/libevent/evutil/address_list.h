// Lists of addresses that this library makes itself, marked by the uppermost flag as
// evutil_freeaddrinfo() expects it. The others are libc's.
#pragma once

#include <event2/util.h>

#include <climits>

namespace spate::libevent {

inline constexpr int kOwnAddressFlag = INT_MIN;

// Of hints that name no type, nor protocol, there are two: for a stream and for datagrams. The port
// is in network byte order. Null if there is no memory.
evutil_addrinfo* make_address_list(const sockaddr& address, int size, ev_uint16_t port,
                                   const evutil_addrinfo& hints);

// Either may be null.
evutil_addrinfo* join_address_lists(evutil_addrinfo* first, evutil_addrinfo* second);

inline bool is_own_address_list(const evutil_addrinfo& list) {
  return (list.ai_flags & kOwnAddressFlag) != 0;
}
void free_own_address_list(evutil_addrinfo* list);

}  // namespace spate::libevent
