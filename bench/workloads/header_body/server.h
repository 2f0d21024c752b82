// The messages of evpp's header_body: eight bytes in network order, then the body. The server
// answers each with the same body and a count that is higher by one.
#ifndef BENCH_WORKLOADS_HEADER_BODY_SERVER_H
#define BENCH_WORKLOADS_HEADER_BODY_SERVER_H

#include "harness/server.h"
#include "workloads/header_body/message.h"

// For contestants that have the input in one piece: turns each whole message into its reply, in
// place. Returns the size of the replies, which start at the front.
inline std::size_t answer_whole(char* bytes, std::size_t size) {
  std::size_t used = 0;
  while (size - used >= sizeof(Header)) {
    Header header = header_at(bytes + used);
    const std::size_t whole = header.message_size();
    if (size - used < whole) break;
    header.count_up();
    memcpy(bytes + used, &header, sizeof header);
    used += whole;
  }
  return used;
}

#endif
