// Hand-written io_uring, no library: the bound for completions, as `floor` is for readiness. Bytes
// arrive in a pool of buffers that the kernel chooses from, and are sent from where they arrived,
// one send a connection at a time. The call that waits also submits all requests, closing included.
// No idle timeouts.
//
// Policies to be compared: --buffers and --buffer_size (the pool), --direct 1 (send(2) sends each
// arrival at once), --oneshot 1 (each receive is submitted separately), --drain 1 (one call fetches
// all completions; otherwise the kernel returns twenty a call).
#include "harness/ring.h"

namespace {

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : listener_(socket),
        tally_(tally),
        direct_(options.number("direct") != 0),
        oneshot_(options.number("oneshot") != 0),
        drain_(unsigned(options.number("drain"))),
        ring_(1024, 16384),
        pool_(ring_, unsigned(options.number("buffers", 256)),
              unsigned(options.number("buffer_size", 16384))),
        pieces_(std::size_t(options.number("buffers", 256))) {
    accept_all();
  }

  void run() {
    for (;;) {
      if (drain_ != 0) {
        ring_.submit_and_fetch(4096);
        if (handle() == 0) ring_.submit_and_wait(1);
      } else {
        ring_.submit_and_wait(ring_.has_more() ? 0 : 1);
      }
      handle();
      if (pool_.publish()) ask_again();
    }
  }

  static void version() { bench_version("none", nullptr); }

 private:
  enum Kind : std::uint64_t { kAccept, kReceive, kSend, kClose };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Bytes that wait to be sent, in the buffer of the same number.
  struct Piece {
    std::uint32_t begin, size, next;
  };
  struct Connection {
    std::uint32_t first = kNone, last = kNone;  // Pieces; the first is being sent.
    bool receiving = false, failed = false;
  };

  unsigned handle() {
    return ring_.each_completion([this](const io_uring_cqe& it) {
      const auto fd = std::uint32_t(it.user_data >> 2);
      switch (Kind(it.user_data & 3)) {
        case kAccept:
          return on_accepted(it.res, it.flags);
        case kReceive:
          return on_received(fd, it.res, it.flags);
        case kSend:
          return on_sent(fd, it.res);
        case kClose:
          bench_die("close");  // Only failures are reported.
      }
    });
  }

  io_uring_sqe& ask(Kind kind, int fd, std::uint8_t operation) {
    io_uring_sqe& entry = ring_.next_entry();
    entry.opcode = operation;
    entry.fd = fd;
    entry.user_data = std::uint64_t(fd) << 2 | kind;
    return entry;
  }

  void accept_all() {
    io_uring_sqe& entry = ask(kAccept, listener_, IORING_OP_ACCEPT);
    entry.ioprio = IORING_ACCEPT_MULTISHOT;
    entry.accept_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  }

  void on_accepted(int fd, std::uint32_t flags) {
    if (fd < 0) bench_die("accept");
    bench_no_delay(fd);
    if (std::size_t(fd) >= connections_.size()) connections_.resize(std::size_t(fd) * 2);
    connections_[std::size_t(fd)] = {};
    ++tally_.accepted;
    receive(std::uint32_t(fd), 0);
    if (!(flags & IORING_CQE_F_MORE)) accept_all();
  }

  // Most times nothing is there yet, which need not be found out; those that have just connected
  // often have something to say.
  void receive(std::uint32_t fd, std::uint16_t policy = IORING_RECVSEND_POLL_FIRST) {
    io_uring_sqe& entry = ask(kReceive, int(fd), IORING_OP_RECV);
    entry.ioprio = policy;
    if (!oneshot_) entry.ioprio |= IORING_RECV_MULTISHOT;
    entry.flags = IOSQE_BUFFER_SELECT;
    connections_[fd].receiving = true;
  }

  void on_received(std::uint32_t fd, int result, std::uint32_t flags) {
    Connection& connection = connections_[fd];
    const bool is_over = !(flags & IORING_CQE_F_MORE);
    if (is_over) connection.receiving = false;
    if (result > 0) {
      tally_.bytes += std::size_t(result);
      echo(fd, flags >> IORING_CQE_BUFFER_SHIFT, std::uint32_t(result));
    } else if (result != -ENOBUFS) {
      connection.failed = true;
      return settle(fd);
    }
    if (!is_over) return;
    if (result > 0) return receive(fd);
    starved_.push_back(fd);
  }

  void echo(std::uint32_t fd, std::uint32_t buffer, std::uint32_t size) {
    Connection& connection = connections_[fd];
    pieces_[buffer] = {0, size, kNone};
    if (connection.first != kNone) {
      pieces_[connection.last].next = buffer;
      connection.last = buffer;
      return;
    }
    if (direct_) {
      const std::size_t sent = bench_send(int(fd), pool_.buffer(buffer), size);
      if (sent == size) return pool_.put_back(buffer);
      pieces_[buffer] = {std::uint32_t(sent), std::uint32_t(size - sent), kNone};
    }
    connection.first = connection.last = buffer;
    send_first(fd);
  }

  void send_first(std::uint32_t fd) {
    const std::uint32_t buffer = connections_[fd].first;
    const Piece& piece = pieces_[buffer];
    io_uring_sqe& entry = ask(kSend, int(fd), IORING_OP_SEND);
    entry.addr = reinterpret_cast<std::uint64_t>(pool_.buffer(buffer) + piece.begin);
    entry.len = piece.size;
    entry.msg_flags = MSG_NOSIGNAL;
  }

  // If the connection failed, drop the rest: the receive reports the error.
  void on_sent(std::uint32_t fd, int result) {
    Connection& connection = connections_[fd];
    const std::uint32_t buffer = connection.first;
    Piece& piece = pieces_[buffer];
    const std::uint32_t sent = result < 0 ? piece.size : std::uint32_t(result);
    piece.begin += sent;
    piece.size -= sent;
    if (piece.size > 0) return send_first(fd);
    connection.first = piece.next;
    pool_.put_back(buffer);
    if (connection.first != kNone) return send_first(fd);
    if (connection.failed) settle(fd);
  }

  // Closed when nothing of it is with the kernel.
  void settle(std::uint32_t fd) {
    const Connection& connection = connections_[fd];
    if (connection.receiving || connection.first != kNone) return;
    io_uring_sqe& entry = ask(kClose, int(fd), IORING_OP_CLOSE);
    entry.flags = IOSQE_CQE_SKIP_SUCCESS;
    ++tally_.closed;
  }

  // The pool had run dry, and has buffers again.
  void ask_again() {
    for (const std::uint32_t fd : starved_) receive(fd);
    starved_.clear();
  }

  const int listener_;
  Tally& tally_;
  const bool direct_, oneshot_;
  const unsigned drain_;
  Ring ring_;
  Pool pool_;
  std::vector<Piece> pieces_;
  std::vector<Connection> connections_;  // By descriptor.
  std::vector<std::uint32_t> starved_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
