// Listener: waits for connections at an address and hands each over as a Stream.
//
// Ownership: a handle, as Stream. Destroying it stops listening at once, and resets those who wait
// in the backlog; close() hands them over first. Connections that were handed over stay. The loop
// may be destroyed first.
// Threads: the loop's thread only.
// Inside the callback: everything, destroying the Listener included. The Stream is the callback's:
// it is closed unless it is moved somewhere.
//
// Accepting takes what is there, `accepts_per_turn` at most, so that a flood of newcomers cannot
// keep those from their turn who are connected. When the process or the machine has no descriptor
// or no memory left, accepting rests a while and tries again: newcomers wait in the backlog, and no
// processor time is spent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/address.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

class StreamAcceptor;

struct ListenOptions {
  int backlog = 4096;                      // Newcomers that may wait; the kernel bounds it.
  int accepts_per_turn = 64;               // Less than 1 counts as 1.
  std::size_t max_connections = SIZE_MAX;  // That many open ones of this listener, then it rests.
  bool reuse_port = false;   // Other processes and listeners that say so share the port.
  bool v6_only = false;      // An IPv6 address takes no IPv4.
  bool no_delay = true;      // TCP: for every Stream that is handed over.
  Nanos defer_accept{0};     // TCP: wait so long for the first bytes. Whole seconds.
  int fast_open = 0;         // TCP: that many may send data with their first packet.
  bool replace_path = true;  // Unix: a socket file that nobody listens at is replaced.
};

class SPATE_EXPORT Listener {
 public:
  using OnAccept = std::move_only_function<void(Stream stream, const Address& peer)>;

  // Listens to nobody, as a closed one: telling it anything does nothing.
  Listener() = default;
  Listener(Listener&& other) noexcept : acceptor_(std::exchange(other.acceptor_, nullptr)) {}
  Listener& operator=(Listener&& other) noexcept {
    Listener moved(std::move(other));
    std::swap(acceptor_, moved.acceptor_);  // The old one goes now, not with `other`.
    return *this;
  }
  ~Listener();

  // Port 0 has the kernel choose one: address() tells. Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES,
  // EINVAL for an address of no family, EMFILE, ENFILE, ENOMEM, ENOENT for a path in no directory.
  [[nodiscard("a Listener that nobody keeps is closed at once")]]
  static Result<Listener> create(Loop& loop, const Address& address, OnAccept on_accept,
                                 const ListenOptions& options = {});
  // Takes over a socket that listens already, and leaves its options as they are. Errors: ENOTSOCK,
  // EBADF, EINVAL if it does not listen, ENOMEM; `fd` is still the caller's then.
  [[nodiscard("a Listener that nobody keeps is closed at once")]]
  static Result<Listener> adopt(Loop& loop, int fd, OnAccept on_accept,
                                const ListenOptions& options = {});
  // The listening sockets that a service manager has passed to this process (systemd's socket
  // activation: LISTEN_PID, LISTEN_FDS); close-on-exec from here on. Once.
  static std::vector<int> inherited();

  // Between the two, newcomers wait in the backlog.
  void pause();
  void resume();

  // Stops listening in good order: those who wait in the backlog, `backlog` of them at most, are
  // still handed over, in the loop's next turn, paused or not; then the socket is closed, which
  // resets who is left. Once `max_connections` are open, no more are taken. Whose first packet is
  // under way just then may find itself reset: to lose nobody, give the socket away.
  void close();
  // Gives the listening socket away, with all who wait, to another loop or process that adopts it:
  // close-on-exec and non-blocking. The Listener is empty then. Errors: EBADF if it is not open.
  [[nodiscard("the descriptor is yours now, and yours to close")]]
  Result<int> release();

  // Until close() is done.
  bool is_open() const { return fd() >= 0; }
  Address address() const;
  int fd() const;  // -1 if it is not open.
  // Handed over so far, and how many of those are still open.
  std::uint64_t accepted() const;
  std::size_t connections() const;
  // Why accepting rests just now, or rested last; no error if it never did.
  std::error_code last_error() const;

 private:
  explicit Listener(StreamAcceptor* acceptor) : acceptor_(acceptor) {}
  StreamAcceptor* own() const;

  StreamAcceptor* acceptor_ = nullptr;
};

}  // namespace spate
