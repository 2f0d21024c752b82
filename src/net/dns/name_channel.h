// NameChannel: DNS queries by c-ares.
//
// The sockets of c-ares are opened, used and closed through src/sys, and watched by the loop.
// c-ares itself makes system calls to read resolv.conf and similar files when a channel is opened,
// to read the clock, and to find source addresses when it sorts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "spate/active.h"
#include "spate/error.h"
#include "spate/io.h"
#include "spate/net/resolver.h"
#include "spate/timer.h"

struct ares_addrinfo;
struct ares_channeldata;

namespace spate {

// Address families, as bits.
using Families = unsigned;
inline constexpr Families kIpv4 = 1;
inline constexpr Families kIpv6 = 2;

Families family_of(const Address& address);

class NameChannel {
 public:
  struct Query;

  // The receiver of answers.
  class Asker {
   public:
    // Called once for each ask(), unless it was cancelled; possibly from inside ask(). It must not
    // call the channel: c-ares is on the stack.
    virtual void on_answer(Query& query, std::vector<Address> addresses, std::error_code error) = 0;

   protected:
    ~Asker() = default;
  };

  struct Query {
    NameChannel& channel;
    Asker* asker;  // nullptr after cancelling.
    Families families;
    std::uint16_t port;
    Nanos ttl{0};  // The shortest time to live in the answer.
  };

  static Result<std::unique_ptr<NameChannel>> open(Loop& loop, const ResolverOptions& options);
  NameChannel(const NameChannel&) = delete;
  NameChannel& operator=(const NameChannel&) = delete;
  // No call follows.
  ~NameChannel();

  // Returns the order of lookups: 'f' for the hosts file, 'b' for name servers.
  const std::string& sources() const { return sources_; }
  bool is_idle() const { return queries_ == 0; }

  // Starts a query. Sets `query` before the answer can arrive. The channel owns it until then.
  void ask(Asker& asker, Query*& query, const std::string& host, Families families,
           std::uint16_t port);
  // Cancels all queries. No Asker may be waiting.
  void forget_all();

 private:
  struct Sockets;

  explicit NameChannel(Loop& loop);
  std::error_code open(const ResolverOptions& options);
  std::error_code read_system(std::optional<std::vector<std::string>>& domains);
  std::error_code set_servers(const std::vector<Address>& servers);

  static void describe(const Node& node, ActiveInfo& info);
  void watch(int fd, bool to_read, bool to_write);
  void on_ready(Io& io, Events events);
  void on_time();
  void arm();
  void finish(Query& query, int status, const ares_addrinfo* found);
  std::error_code error_of(int status) const;

  Loop& loop_;
  ares_channeldata* channel_ = nullptr;
  std::string sources_;
  Nanos first_timeout_{0};  // The timeout for a first answer.
  Timer timer_;
  std::list<Io> sockets_;
  std::size_t queries_ = 0;
  int trouble_ = 0;  // The errno of the last socket call; 0 if it succeeded.
};

}  // namespace spate
