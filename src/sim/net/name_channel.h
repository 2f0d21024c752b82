// Replaces a channel of c-ares in a World, because c-ares has its own clock and random numbers.
#pragma once

#include <ares.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/kernel/file.h"
#include "sim/net/network.h"
#include "spate/sim/link.h"

namespace spate::sim {

class NameChannel {
 public:
  NameChannel(Network& network, const ares_options& options, int mask);

  void set_functions(const ares_socket_functions* functions, void* context) {
    functions_ = functions;
    context_ = context;
  }
  int timeout_ms() const { return timeout_ms_; }
  void ask(std::string_view name, int family, ares_addrinfo_callback callback, void* context);
  // Reports the queries whose answer has arrived.
  void process();
  // Reports `status` to all queries.
  void end_all(int status);

 private:
  struct Query {
    std::uint64_t number;
    int family;
    ares_addrinfo_callback callback;
    void* context;
    NameAnswer answer;
    bool is_due = false;
  };
  // The queue of answers: readable when one has arrived. The loop learns of it by c-ares' callback.
  struct Inbox {
    std::vector<Query> queries;
    std::shared_ptr<EventCounter> bell = std::make_shared<EventCounter>();
  };

  // Returns the time until all servers were tried as often as configured.
  Nanos timeouts() const;
  Nanos delay_of(const NameAnswer& answer);
  // False if no descriptor is left.
  bool open();
  void close_if_idle();
  static void tell(const Query& query, int status);

  Kernel& kernel_;
  Zone& zone_;
  const ares_sock_state_cb on_state_;
  void* const state_context_;
  const int timeout_ms_;
  const int tries_;
  const ares_socket_functions* functions_ = nullptr;
  void* context_ = nullptr;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  int fd_ = -1;
};

}  // namespace spate::sim
