// Lookups by libc, and the texts of their errors.
//
// Semantics: event2/util.h; probed: missing hints, and the texts.
#include <event2/util.h>
#include <netdb.h>

#include <climits>

#include "compat/libevent/evutil/address_list.h"

namespace {

// As in libevent, which has its own texts for errors that its own resolver can return.
const char* own_text(int error) {
  switch (error) {
    case 0:
      return "No error";
    case EVUTIL_EAI_CANCEL:
      return "Request canceled";
    case EVUTIL_EAI_ADDRFAMILY:
      return "address family for nodename not supported";
    case EVUTIL_EAI_AGAIN:
      return "temporary failure in name resolution";
    case EVUTIL_EAI_BADFLAGS:
      return "invalid value for ai_flags";
    case EVUTIL_EAI_FAIL:
      return "non-recoverable failure in name resolution";
    case EVUTIL_EAI_FAMILY:
      return "ai_family not supported";
    case EVUTIL_EAI_MEMORY:
      return "memory allocation failure";
    case EVUTIL_EAI_NODATA:
      return "no address associated with nodename";
    case EVUTIL_EAI_NONAME:
      return "nodename nor servname provided, or not known";
    case EVUTIL_EAI_SERVICE:
      return "servname not supported for ai_socktype";
    case EVUTIL_EAI_SOCKTYPE:
      return "ai_socktype not supported";
    case EVUTIL_EAI_SYSTEM:
      return "system error";
    default:
      return nullptr;
  }
}

}  // namespace

// Without hints there are no flags: libc's default, AI_ADDRCONFIG and AI_V4MAPPED, is not
// libevent's. The uppermost flag is libevent's own, and must not reach libc.
int evutil_getaddrinfo(const char* node, const char* service, const evutil_addrinfo* hints,
                       evutil_addrinfo** result) {
  evutil_addrinfo wanted{};
  if (hints != nullptr) wanted = *hints;
  wanted.ai_flags &= INT_MAX;
  return getaddrinfo(node, service, &wanted, result);
}

// libc's memory is freed by libc, not by the program's functions.
void evutil_freeaddrinfo(evutil_addrinfo* list) {
  if (list == nullptr) return;
  if (spate::libevent::is_own_address_list(*list)) {
    spate::libevent::free_own_address_list(list);
  } else {
    freeaddrinfo(list);
  }
}

const char* evutil_gai_strerror(int error) {
  const char* text = own_text(error);
  return text != nullptr ? text : gai_strerror(error);
}
