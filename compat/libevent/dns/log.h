// The resolver's log messages: to the program's own function, or to the library's log.
//
// Semantics: event2/dns.h (evdns_set_log_fn). The texts differ from the original's; there are only
// those about name servers and about failures.
#pragma once

namespace spate::libevent::dns {

enum class Note { message, warning };

[[gnu::format(printf, 2, 3)]] void log(Note note, const char* format, ...);

}  // namespace spate::libevent::dns
