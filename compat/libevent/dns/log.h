// What the resolver has to say: to the program's own function, or as all other lines.
//
// Semantics: event2/dns.h (evdns_set_log_fn). The texts are this library's own, and there are only
// those about name servers and about what could not be done.
#pragma once

namespace spate::libevent::dns {

enum class Note { message, warning };

[[gnu::format(printf, 2, 3)]] void log(Note note, const char* format, ...);

}  // namespace spate::libevent::dns
