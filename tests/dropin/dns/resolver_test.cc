// The resolver and the server port with malicious peers, and with threads.
#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../threads/running_base.h"

namespace spate::dropin {
namespace {

using Bytes = std::vector<std::uint8_t>;

// A socket on loopback.
class Udp {
 public:
  Udp() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(::bind(fd_, any(), size), 0);
    EXPECT_EQ(::getsockname(fd_, any(), &size), 0);
  }
  ~Udp() {
    if (fd_ >= 0) ::close(fd_);
  }
  Udp(const Udp&) = delete;
  Udp& operator=(const Udp&) = delete;

  sockaddr* any() { return reinterpret_cast<sockaddr*>(&address_); }
  int give_away() { return std::exchange(fd_, -1); }

  void send(const Bytes& bytes, const sockaddr_in& to) const {
    ::sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  // Empty if nothing has arrived.
  Bytes receive(sockaddr_in& from) const {
    Bytes bytes(2000);
    socklen_t size = sizeof from;
    const ssize_t got =
        ::recvfrom(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

 private:
  int fd_;
  sockaddr_in address_{};
};

struct Outcome {
  int calls = 0;
  int error = -1;
  in_addr_t first = 0;
};

void note(int error, char, int count, int, void* found, void* argument) {
  auto& outcome = *static_cast<Outcome*>(argument);
  ++outcome.calls;
  outcome.error = error;
  if (error == DNS_ERR_NONE && count > 0) outcome.first = *static_cast<const in_addr_t*>(found);
}

Bytes answer_to(Bytes query, std::uint8_t last) {
  query[2] |= 0x80;
  query[7] = 1;
  const Bytes record{0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last};
  query.insert(query.end(), record.begin(), record.end());
  return query;
}

struct Resolver {
  Resolver() : base(make_base("epoll")), dns(evdns_base_new(base.get(), 0)) {
    evdns_base_nameserver_sockaddr_add(dns, server.any(), sizeof(sockaddr_in), 0);
  }
  ~Resolver() { evdns_base_free(dns, 0); }
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  void turn() const { event_base_loop(base.get(), EVLOOP_NONBLOCK); }

  Udp server;
  Base base;
  evdns_base* dns;
};

TEST(DnsResolver, AcceptsResponsesOnlyFromQueriedServer) {
  Resolver resolver;
  const Udp stranger;
  Outcome outcome;
  evdns_base_resolve_ipv4(resolver.dns, "www.example.com", 0, note, &outcome);
  sockaddr_in from{};
  const Bytes query = resolver.server.receive(from);
  stranger.send(answer_to(query, 66), from);
  resolver.turn();
  EXPECT_EQ(outcome.calls, 0);
  resolver.server.send(answer_to(query, 1), from);
  while (outcome.calls == 0) resolver.turn();
  EXPECT_EQ(outcome.error, DNS_ERR_NONE);
  EXPECT_EQ(outcome.first, inet_addr("192.0.2.1"));
}

TEST(DnsResolver, IgnoresResponsesWithAnotherId) {
  Resolver resolver;
  Outcome outcome;
  evdns_base_resolve_ipv4(resolver.dns, "www.example.com", 0, note, &outcome);
  sockaddr_in from{};
  const Bytes query = resolver.server.receive(from);
  Bytes wrong = answer_to(query, 66);
  for (int other = 1; other < 100; ++other) {
    wrong[1] = static_cast<std::uint8_t>(query[1] + other);
    resolver.server.send(wrong, from);
  }
  for (int i = 0; i < 5; ++i) resolver.turn();
  EXPECT_EQ(outcome.calls, 0);
  resolver.server.send(answer_to(query, 1), from);
  while (outcome.calls == 0) resolver.turn();
  EXPECT_EQ(outcome.first, inet_addr("192.0.2.1"));
}

TEST(DnsResolver, RandomizesCaseAndIdOfEachQuery) {
  Resolver resolver;
  Outcome outcomes[2];
  sockaddr_in from{};
  Bytes queries[2];
  for (int i = 0; i < 2; ++i) {
    evdns_base_resolve_ipv4(resolver.dns, "a-name-of-many-many-letters.example.com", 0, note,
                            &outcomes[i]);
    queries[i] = resolver.server.receive(from);
  }
  EXPECT_NE(Bytes(queries[0].begin(), queries[0].begin() + 2),
            Bytes(queries[1].begin(), queries[1].begin() + 2));
  EXPECT_NE(Bytes(queries[0].begin() + 12, queries[0].end()),
            Bytes(queries[1].begin() + 12, queries[1].end()));
  evdns_base_free(std::exchange(resolver.dns, evdns_base_new(resolver.base.get(), 0)), 1);
  while (outcomes[1].calls == 0) resolver.turn();
  EXPECT_EQ(outcomes[0].error, DNS_ERR_SHUTDOWN);
}

// Whatever else arrives, each lookup ends once, with its response or before it.
TEST(DnsResolver, SurvivesRandomResponses) {
  std::mt19937 random(7);
  Resolver resolver;
  evdns_base_search_add(resolver.dns, "search.test");
  for (int i = 0; i < 1500; ++i) {
    Outcome outcome;
    evdns_base_resolve_ipv4(resolver.dns, i % 2 != 0 ? "www.example.com" : "www", 0, note,
                            &outcome);
    while (outcome.calls == 0) {
      sockaddr_in from{};
      const Bytes query = resolver.server.receive(from);
      if (query.size() > 12) {
        Bytes odd = answer_to(query, 1);
        for (auto changes = random() % 5; changes > 0; --changes) {
          odd[2 + random() % (odd.size() - 2)] = static_cast<std::uint8_t>(random());
        }
        if (random() % 5 == 0) odd.resize(random() % odd.size());
        resolver.server.send(odd, from);
        resolver.server.send(answer_to(query, 1), from);
      }
      resolver.turn();
    }
    EXPECT_EQ(outcome.calls, 1);
  }
}

void answer_one_address(evdns_server_request* request, void*) {
  const in_addr address{htonl(0xc0000201)};
  evdns_server_request_add_a_reply(request, "a", 1, &address, 60);
  evdns_server_request_respond(request, 0);
}

// Opens a server that closes its socket itself.
evdns_server_port* open_port(event_base* base, Udp& udp, evdns_request_callback_fn_type callback) {
  return evdns_add_server_port_with_base(base, udp.give_away(), 0, callback, nullptr);
}

TEST(DnsServer, SurvivesRandomMessages) {
  std::mt19937 random(9);
  const Base base = make_base("epoll");
  Udp server;
  const Udp client;
  const sockaddr_in address = *reinterpret_cast<sockaddr_in*>(server.any());
  evdns_server_port* port = open_port(base.get(), server, answer_one_address);
  const Bytes good{1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 'w', 'w', 'w', 0, 0, 1, 0, 1};
  int answers = 0;
  for (int i = 0; i < 4000; ++i) {
    Bytes bytes = good;
    for (auto changes = random() % 5; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    }
    bytes.resize(random() % 5 == 0 ? random() % bytes.size() : bytes.size());
    client.send(bytes, address);
    event_base_loop(base.get(), EVLOOP_NONBLOCK);
    sockaddr_in from{};
    if (!client.receive(from).empty()) ++answers;
  }
  EXPECT_GT(answers, 1000);
  evdns_close_server_port(port);
}

TEST(DnsServer, SendsOnlyWholeRecords) {
  const Base base = make_base("epoll");
  Udp server;
  const Udp client;
  const sockaddr_in address = *reinterpret_cast<sockaddr_in*>(server.any());
  evdns_server_port* port = open_port(base.get(), server, [](evdns_server_request* request, void*) {
    const in_addr many[10] = {};
    for (int i = 0; i < 100; ++i) {
      evdns_server_request_add_a_reply(request, "www", 10, many, 60);
    }
    evdns_server_request_respond(request, 0);
  });
  client.send({1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 'w', 'w', 'w', 0, 0, 1, 0, 1}, address);
  event_base_loop(base.get(), EVLOOP_ONCE);
  sockaddr_in from{};
  const Bytes reply = client.receive(from);
  ASSERT_GT(reply.size(), 12U);
  EXPECT_EQ(reply[2] & 2, 2);
  EXPECT_EQ(reply.size(), 21U + reply[7] * 52U);
  EXPECT_LE(reply.size(), 512U);
  evdns_close_server_port(port);
}

// ---- threads

std::atomic<int> ended{0};

void count(int, char, int, int, void*, void*) { ++ended; }
void count_addresses(int, evutil_addrinfo* list, void*) {
  if (list != nullptr) evutil_freeaddrinfo(list);
  ++ended;
}

TEST(DnsConcurrency, QueryAndCancelWhileLoopRuns) {
  constexpr int kThreads = 4;
  constexpr int kLookups = 150;
  ended = 0;
  Udp server;
  RunningBase running(make_base("epoll"));
  evdns_base* dns = evdns_base_new(running.get(), 0);
  evdns_base_nameserver_sockaddr_add(dns, server.any(), sizeof(sockaddr_in), 0);
  evdns_server_port* port = open_port(running.get(), server, answer_one_address);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([dns, t] {
      for (int i = 0; i < kLookups; ++i) {
        const std::string name = "a" + std::to_string(t) + ".example";
        if (i % 3 != 0) {
          evdns_base_resolve_ipv4(dns, name.c_str(), 0, count, nullptr);
        } else if (evdns_getaddrinfo(dns, name.c_str(), "80", nullptr, count_addresses, nullptr) ==
                   nullptr) {
          ADD_FAILURE();
        }
        if (i % 10 == 0) evdns_base_search_add(dns, "search.test");
        if (i % 10 == 5) evdns_base_search_clear(dns);
        if (i % 50 == 0) evdns_base_count_nameservers(dns);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (ended < kThreads * kLookups) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.stop();
  evdns_base_free(dns, 1);
  evdns_close_server_port(port);
}

}  // namespace
}  // namespace spate::dropin
