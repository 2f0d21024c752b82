// DatagramGroup: one UDP address that is served by all Workers, with a socket per worker.
//
// Ownership: destroying the group closes its sockets and destroys its handlers, each on its
// worker's thread. Workers::stop() does so, too.
// Threads: create() and the destructor from the thread that may stop the Workers, which must not be
// a worker: they wait for all workers. All other functions from any thread.
// Callbacks: the functions of a DatagramService on its worker's thread only. Inside them everything
// is allowed that a loop allows; the group must not be destroyed there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/datagram.h"

namespace spate {

class Workers;

// One worker's handler. Created on the worker's thread, and called and destroyed there.
class DatagramService {
 public:
  virtual ~DatagramService() = default;
  // As the functions of DatagramHandler. `socket` is the worker's, for sending.
  virtual void on_packets(Datagram& socket, std::span<const Packet> packets) = 0;
  virtual void on_error([[maybe_unused]] Datagram& socket, std::error_code) {}
  virtual void on_writable([[maybe_unused]] Datagram& socket) {}
};

// Chooses the worker of a packet by its contents, such as a QUIC connection ID, so that a client
// stays at its worker when its address changes. With `mask` 0, the kernel chooses by a hash of the
// addresses.
//
// The worker is (the 4 bytes at `offset`, in network order, & mask) % Workers::count(); 0 for a
// packet that ends before. The kernel selects the socket (SO_ATTACH_REUSEPORT_CBPF). A packet that
// arrives at another worker nevertheless is copied and passed on.
struct DatagramSteering {
  std::uint16_t offset = 0;
  std::uint32_t mask = 0;
};

struct DatagramGroupOptions {
  DatagramOptions socket{};
  DatagramSteering steering{};
  // How many packets may be on their way to one worker from the others. More are dropped.
  std::size_t max_forwarded = 1024;
};

class SPATE_EXPORT DatagramGroup {
 public:
  // Creates the handler. May return nullptr (out of memory): create() then fails.
  using MakeService =
      Function<std::unique_ptr<DatagramService>(Loop& loop, Datagram& socket) const>;

  // Binds a socket per worker to `address`, calls `make` on each worker's thread, and starts
  // receiving. A second copy of the program gets EADDRINUSE, unless both set `reuse_port`. Errors:
  // those of Datagram::create(); EINVAL for a unix address, and for steering with `reuse_port`,
  // because other programs' sockets would count; ECANCELED when a worker takes no tasks: after
  // Workers::stop(), or when memory runs out.
  [[nodiscard("a discarded group is closed at once")]]
  static Result<std::unique_ptr<DatagramGroup>> create(Workers& workers, const Address& address,
                                                       MakeService make,
                                                       const DatagramGroupOptions& options = {});
  DatagramGroup(const DatagramGroup&) = delete;
  DatagramGroup& operator=(const DatagramGroup&) = delete;
  ~DatagramGroup();

  // Returns the bound address, with the kernel's choice for port 0.
  const Address& address() const;
  // Returns the number of the worker that gets a packet with these contents. 0 without steering.
  unsigned worker_of(Bytes bytes) const;
  // Returns how many packets were passed from one worker to another since create().
  std::uint64_t forwarded() const;
  // Returns how many packets were dropped, because memory ran out or `max_forwarded` were on their
  // way.
  std::uint64_t dropped() const;

 private:
  class Member;
  struct State;

  explicit DatagramGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace spate
