// NameChannel: questions to the name servers, carried by c-ares.
//
// The sockets that c-ares asks for are made, used and closed by src/sys, and watched by the loop.
// What c-ares does in the kernel by itself, outside src/sys: it reads resolv.conf and its like when
// a channel is opened, reads the clock, and asks for the own address of a socket that it has made
// to sort addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "spate/error.h"
#include "spate/io.h"
#include "spate/net/resolver.h"
#include "spate/timer.h"

struct ares_addrinfo;
struct ares_channeldata;

namespace spate {

// Kinds of addresses, as bits.
using Families = unsigned;
inline constexpr Families kIpv4 = 1;
inline constexpr Families kIpv6 = 2;

Families family_of(const Address& address);

class NameChannel {
 public:
  struct Query;

  // Receives answers.
  class Asker {
   public:
    // Once for each ask(), unless `asker` was taken back; maybe from inside ask(). Not the place to
    // ask or to forget anything: c-ares is at work.
    virtual void on_answer(Query& query, std::vector<Address> addresses, std::error_code error) = 0;

   protected:
    ~Asker() = default;
  };

  struct Query {
    NameChannel& channel;
    Asker* asker;  // nullptr when cancelled.
    Families families;
    std::uint16_t port;
  };

  static Result<std::unique_ptr<NameChannel>> open(Loop& loop, const ResolverOptions& options);
  NameChannel(const NameChannel&) = delete;
  NameChannel& operator=(const NameChannel&) = delete;
  // No call follows.
  ~NameChannel();

  // Where names are to be looked up, in this order: 'f' for the hosts file, 'b' for name servers.
  const std::string& sources() const { return sources_; }
  bool is_idle() const { return queries_ == 0; }

  // `query` says what is under way, before any answer can come. It is the channel's, and gone when
  // the answer has been given.
  void ask(Asker& asker, Query*& query, const std::string& host, Families families,
           std::uint16_t port);
  // Cancels all queries, for which no Asker may be waiting any more.
  void forget_all();

 private:
  struct Sockets;

  explicit NameChannel(Loop& loop);
  std::error_code open(const ResolverOptions& options);
  std::error_code read_system();
  std::error_code set_servers(const std::vector<Address>& servers);

  void watch(int fd, bool to_read, bool to_write);
  void on_ready(Io& io, Events events);
  void on_time();
  void arm();
  void finish(Query& query, int status, const ares_addrinfo* found);
  std::error_code error_of(int status) const;

  Loop& loop_;
  ares_channeldata* channel_ = nullptr;
  std::string sources_;
  Nanos patience_{0};  // For a first answer.
  Timer timer_;
  std::list<Io> sockets_;
  std::size_t queries_ = 0;
  int trouble_ = 0;  // Why the last use of a socket failed; 0 if it did not.
};

}  // namespace spate
