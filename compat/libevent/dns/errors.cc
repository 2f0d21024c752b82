// Semantics: event2/dns.h; probed: the texts.
#include "compat/libevent/dns_api.h"

const char* evdns_err_to_string(int error) {
  switch (error) {
    case DNS_ERR_NONE:
      return "no error";
    case DNS_ERR_FORMAT:
      return "misformatted query";
    case DNS_ERR_SERVERFAILED:
      return "server failed";
    case DNS_ERR_NOTEXIST:
      return "name does not exist";
    case DNS_ERR_NOTIMPL:
      return "query not implemented";
    case DNS_ERR_REFUSED:
      return "refused";
    case DNS_ERR_TRUNCATED:
      return "reply truncated or ill-formed";
    case DNS_ERR_UNKNOWN:
      return "unknown";
    case DNS_ERR_TIMEOUT:
      return "request timed out";
    case DNS_ERR_SHUTDOWN:
      return "dns subsystem shut down";
    case DNS_ERR_CANCEL:
      return "dns request canceled";
    case DNS_ERR_NODATA:
      return "no records in the reply";
    default:
      return "[Unknown error code]";
  }
}

// These have no effect: all random numbers come from evutil_secure_rng_get_bytes().
void evdns_set_transaction_id_fn(ev_uint16_t (*)()) {}
void evdns_set_random_bytes_fn(void (*)(char*, size_t)) {}
