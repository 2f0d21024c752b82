// Listener: a listening socket. It passes each accepted connection to a callback as a Stream.
//
// Ownership: a handle, as Stream. Destroying it closes the socket at once, which resets connections
// in the backlog; close() accepts them first. Accepted connections stay open. The loop may be
// destroyed first.
// Threads: the loop's thread only.
// Inside the callback everything is allowed, destroying the Listener included. The Stream is the
// callback's: it is closed unless it is moved.
//
// At most `accepts_per_turn` connections are accepted per turn, so that a flood of them does not
// starve open ones. On EMFILE, ENFILE or ENOMEM accepting pauses for 50 ms: connections wait in the
// backlog, and no processor time is spent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

class StreamAcceptor;

struct ListenOptions {
  int backlog = 4096;                      // The kernel bounds it; below 0: its own limit.
  int accepts_per_turn = 64;               // Less than 1 counts as 1.
  std::size_t max_connections = SIZE_MAX;  // Open connections of this listener; accepting pauses at
                                           // this number.
  bool reuse_port = false;                 // SO_REUSEPORT: share the port with others that set it.
  bool v6_only = false;                    // An IPv6 socket accepts no IPv4.
  bool no_delay = true;                    // TCP: for every accepted Stream.
  Nanos defer_accept{0};  // TCP_DEFER_ACCEPT: wait for the first bytes. Whole seconds.
  int fast_open = 0;      // TCP_FASTOPEN: the length of its queue.
  // TCP_NOTSENT_LOWAT: how many unsent bytes the kernel buffers for a connection whose peer does
  // not read. 0: as many as its buffer holds, up to megabytes.
  int max_unsent = 0;
  // Unix: replaces a socket file to which no process is bound any more. A file PATH.lock exists
  // while a server starts there.
  bool replace_path = true;
  // A listening socket to accept from, instead of a new one at the address, which is then ignored.
  // It is duplicated, and stays the caller's. -1: none. Errors: those of adopt(), EMFILE.
  int socket = -1;
};

class SPATE_EXPORT Listener {
 public:
  using OnAccept = Function<void(Stream stream, const Address& peer)>;

  // Behaves as a closed Listener.
  Listener() = default;
  Listener(Listener&& other) noexcept : acceptor_(std::exchange(other.acceptor_, nullptr)) {}
  Listener& operator=(Listener&& other) noexcept {
    Listener moved(std::move(other));
    std::swap(acceptor_, moved.acceptor_);  // Destroys the old one here, not with `other`.
    return *this;
  }
  ~Listener();

  // Listens at `address`. With port 0 the kernel chooses one: see address(). Errors: EADDRINUSE,
  // EADDRNOTAVAIL, EACCES, EINVAL for an address without a family, ENOENT if a path's directory
  // does not exist, EMFILE, ENFILE, ENOMEM.
  [[nodiscard("a discarded Listener is closed at once")]]
  static Result<Listener> create(Loop& loop, const Address& address, OnAccept on_accept,
                                 const ListenOptions& options = {});
  // Takes ownership of a listening socket. Sets the TCP options that are given; `backlog` bounds
  // close() only. On an error `fd` stays the caller's. Errors: ENOTSOCK, EBADF, ENOMEM; EINVAL if
  // it does not listen, or lacks `reuse_port` or `v6_only`, which have no effect after bind().
  [[nodiscard("a discarded Listener is closed at once")]]
  static Result<Listener> adopt(Loop& loop, int fd, OnAccept on_accept,
                                const ListenOptions& options = {});
  // Returns a listening socket, for ListenOptions::socket and ProcessOptions::listening:
  // close-on-exec and non-blocking. Errors: those of create().
  [[nodiscard("the caller owns the descriptor and must close it")]]
  static Result<int> open(const Address& address, const ListenOptions& options = {});
  // Returns the listening sockets that a service manager passed to this process (systemd's socket
  // activation: LISTEN_PID, LISTEN_FDS), or its parent by ProcessOptions::listening, now
  // close-on-exec. Only the first call returns them.
  static std::vector<int> inherited();

  // While paused, accepts nothing: connections wait in the backlog.
  void pause();
  void resume();

  // Stops listening gracefully. In the next turn, paused or not, accepts the connections in the
  // backlog, up to `backlog` and `max_connections`, and closes the socket, which resets the rest. A
  // connection that is being established at that moment may be reset; to avoid that, pass the
  // socket on with release().
  void close();
  // Returns the listening socket, with its backlog, for another loop or process that adopts it:
  // close-on-exec and non-blocking. The Listener is then empty. Errors: EBADF if it is not open.
  [[nodiscard("the caller owns the descriptor and must close it")]]
  Result<int> release();

  // True until close() is done.
  bool is_open() const { return fd() >= 0; }
  Address address() const;
  int fd() const;  // -1 if it is not open.
  // Return the number of connections accepted, and how many of them are open.
  std::uint64_t accepted() const;
  std::size_t connections() const;
  // Returns why accepting paused last; no error if it never did.
  std::error_code last_error() const;

 private:
  explicit Listener(StreamAcceptor* acceptor) : acceptor_(acceptor) {}
  StreamAcceptor* own() const;

  StreamAcceptor* acceptor_ = nullptr;
};

}  // namespace spate
