// Hand-written io_uring, no library: the bound for completions, as `floor` is for readiness. Bytes
// arrive in a pool of buffers that the kernel chooses from, and are sent from where they arrived,
// one send a connection at a time. What was asked for goes to the kernel with the call that waits.
// No idle timeouts.
//
// Policies to be compared: --buffers and --buffer_size (the pool), --direct 1 (what has arrived is
// sent by send(2) at once), --oneshot 1 (a receive is asked for again after each arrival), --drain
// 1 (all that is ready is fetched with one call; else the kernel hands out twenty a call).
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>

#include "harness/server.h"

namespace {

template <class T>
T load_acquire(T* at) {
  return std::atomic_ref(*at).load(std::memory_order_acquire);
}
template <class T>
void store_release(T* at, T value) {
  std::atomic_ref(*at).store(value, std::memory_order_release);
}

// The two queues, mapped.
class Ring {
 public:
  Ring(unsigned entries, unsigned completions) {
    io_uring_params p = {};
    p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
              IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE;
    p.cq_entries = completions;
    fd_ = int(syscall(SYS_io_uring_setup, entries, &p));
    if (fd_ < 0) bench_die("io_uring_setup");
    const std::size_t size = std::max(p.sq_off.array + p.sq_entries * sizeof(unsigned),
                                      p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe));
    char* queues = map(size, IORING_OFF_SQ_RING);
    const auto at = [&](unsigned offset) { return reinterpret_cast<unsigned*>(queues + offset); };
    entries_ =
        reinterpret_cast<io_uring_sqe*>(map(p.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
    sq_tail_ = at(p.sq_off.tail);
    sq_flags_ = at(p.sq_off.flags);
    sq_entries_ = p.sq_entries;
    for (unsigned i = 0; i < p.sq_entries; ++i) at(p.sq_off.array)[i] = i;
    cq_head_ = at(p.cq_off.head);
    cq_tail_ = at(p.cq_off.tail);
    cq_mask_ = p.cq_entries - 1;
    completions_ = reinterpret_cast<io_uring_cqe*>(queues + p.cq_off.cqes);
  }

  int fd() const { return fd_; }

  io_uring_sqe& next_entry() {
    if (asked_ == sq_entries_) enter(0, 0, nullptr);
    io_uring_sqe& entry = entries_[tail_++ & (sq_entries_ - 1)];
    ++asked_;
    entry = {};
    return entry;
  }

  // Whether the kernel has more than it has told of.
  bool has_more() const {
    return (std::atomic_ref(*sq_flags_).load(std::memory_order_relaxed) &
            (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }

  void submit_and_wait(unsigned count) { enter(count, IORING_ENTER_GETEVENTS, nullptr); }
  // As many as are there, `count` at most.
  void submit_and_fetch(unsigned count) {
    static __kernel_timespec none = {0, 0};
    enter(count, IORING_ENTER_GETEVENTS, &none);
  }

  template <class Function>
  unsigned each_completion(Function function) {
    unsigned head = *cq_head_;
    const unsigned tail = load_acquire(cq_tail_), count = tail - head;
    for (; head != tail; ++head) function(completions_[head & cq_mask_]);
    store_release(cq_head_, head);
    return count;
  }

 private:
  char* map(std::size_t size, off_t what) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, what);
    if (at == MAP_FAILED) bench_die("mmap");
    return static_cast<char*>(at);
  }

  void enter(unsigned wait, unsigned flags, const __kernel_timespec* timeout) {
    store_release(sq_tail_, tail_);
    io_uring_getevents_arg argument = {};
    argument.ts = reinterpret_cast<std::uint64_t>(timeout);
    const long count = timeout == nullptr
                           ? syscall(SYS_io_uring_enter, fd_, asked_, wait, flags, nullptr, 0)
                           : syscall(SYS_io_uring_enter, fd_, asked_, wait,
                                     flags | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
    if (count >= 0)
      asked_ -= unsigned(count);
    else if (errno == ETIME)
      asked_ = 0;
    else if (errno != EINTR && errno != EBUSY)
      bench_die("io_uring_enter");
  }

  int fd_;
  io_uring_sqe* entries_;
  unsigned *sq_tail_, *sq_flags_, sq_entries_, tail_ = 0, asked_ = 0;
  unsigned *cq_head_, *cq_tail_, cq_mask_;
  io_uring_cqe* completions_;
};

// Buffers that the kernel takes from the front of a ring, and that we give back at its end.
class Pool {
 public:
  Pool(const Ring& ring, unsigned count, unsigned size) : count_(count), size_(size) {
    const std::size_t list = (count * sizeof(io_uring_buf) + 4095) / 4096 * 4096;
    void* at = mmap(nullptr, list + std::size_t(count) * size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) bench_die("mmap");
    ring_ = static_cast<io_uring_buf_ring*>(at);
    entries_ = static_cast<io_uring_buf*>(at);
    bytes_ = static_cast<char*>(at) + list;
    io_uring_buf_reg registration = {};
    registration.ring_addr = reinterpret_cast<std::uint64_t>(at);
    registration.ring_entries = count;
    if (syscall(SYS_io_uring_register, ring.fd(), IORING_REGISTER_PBUF_RING, &registration, 1) != 0)
      bench_die("IORING_REGISTER_PBUF_RING");
    for (unsigned i = 0; i < count; ++i) put_back(i);
    publish();
  }

  char* buffer(unsigned i) { return bytes_ + std::size_t(i) * size_; }
  void put_back(unsigned i) {
    io_uring_buf& entry = entries_[tail_++ & (count_ - 1)];
    entry.addr = reinterpret_cast<std::uint64_t>(buffer(i));
    entry.len = size_;
    entry.bid = std::uint16_t(i);
  }
  // True if there are more than before.
  bool publish() {
    if (ring_->tail == tail_) return false;
    store_release(&ring_->tail, tail_);
    return true;
  }

 private:
  io_uring_buf_ring* ring_;
  io_uring_buf* entries_;  // Where the header's `bufs` is in C, and not in C++.
  char* bytes_;
  const unsigned count_, size_;
  std::uint16_t tail_ = 0;
};

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
  enum Kind : std::uint64_t { kAccept, kReceive, kSend };
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
    receive(std::uint32_t(fd));
    if (!(flags & IORING_CQE_F_MORE)) accept_all();
  }

  // Nothing is there yet most times, which need not be found out.
  void receive(std::uint32_t fd) {
    io_uring_sqe& entry = ask(kReceive, int(fd), IORING_OP_RECV);
    entry.ioprio = IORING_RECVSEND_POLL_FIRST;
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

  // A connection that has failed takes everything: receiving tells of its end.
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
    close(int(fd));
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
