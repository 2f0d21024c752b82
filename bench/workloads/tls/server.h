// The requests to the servers of tls: echo the input or, with --kind bulk, send 1 MiB for each 64
// bytes. Their certificate and its key are files, --chain and --key.
#ifndef BENCH_WORKLOADS_TLS_SERVER_H
#define BENCH_WORKLOADS_TLS_SERVER_H

#include <string>
#include <string_view>

#include "harness/server.h"

inline constexpr std::size_t kAskSize = 64;
inline constexpr std::size_t kBulkSize = 1024 * 1024;

inline const std::string& bench_bulk() {
  static const std::string bytes(kBulkSize, 'b');
  return bytes;
}

struct TlsServerKind {
  explicit TlsServerKind(const ServerOptions& options)
      : chain(bench_text(options.argc, options.argv, "chain", "")),
        key(bench_text(options.argc, options.argv, "key", "")),
        is_bulk(std::string_view(bench_text(options.argc, options.argv, "kind", "")) == "bulk") {}

  const char* chain;
  const char* key;
  bool is_bulk;
};

// For --kind bulk: counts the replies that are due for one connection's input.
class Asked {
 public:
  std::size_t take(std::size_t arrived) {
    arrived_ += arrived;
    const std::size_t answers = arrived_ / kAskSize;
    arrived_ %= kAskSize;
    return answers;
  }

 private:
  std::size_t arrived_ = 0;
};

#endif
