// Hand-written io_uring, no library: the bound for completions. One receive stays armed, packets
// arrive in a pool of buffers that the kernel chooses from, and are sent from where they arrived;
// the sends go to the kernel with the call that waits.
//
// Policies to be compared: --buffers (the pool), --direct 1 (sendmmsg sends each arrival at once;
// with --batch 0 sendto does), --drain 1 (one call fetches all completions).
#include "harness/ring.h"

namespace {

constexpr std::size_t kPacket = 2048;

class Server {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : fd_(socket),
        batch_(options.number("batch", 1) != 0),
        direct_(options.number("direct") != 0),
        drain_(options.number("drain") != 0),
        tally_(tally),
        ring_(256, 4096),
        pool_(ring_, unsigned(options.number("buffers", 256)), kRoom),
        outgoing_(std::size_t(options.number("buffers", 256))) {
    shape_.msg_namelen = sizeof(sockaddr_in);
    receive();
  }

  void run() {
    for (;;) {
      if (drain_) {
        ring_.submit_and_fetch(4096);
        if (handle() == 0) ring_.submit_and_wait(1);
      } else {
        ring_.submit_and_wait(ring_.has_more() ? 0 : 1);
      }
      handle();
      if (direct_) send_all();
      if (pool_.publish() && !receiving_) receive();
    }
  }

  static void version() { bench_version("none", nullptr); }

 private:
  static constexpr std::uint64_t kReceive = UINT64_MAX;
  // The kernel's header and the source address precede the payload of a packet.
  static constexpr std::size_t kHead = sizeof(io_uring_recvmsg_out) + sizeof(sockaddr_in);
  static constexpr unsigned kRoom = kHead + kPacket;

  struct Outgoing {
    msghdr message;
    iovec part;
  };

  unsigned handle() {
    return ring_.each_completion([this](const io_uring_cqe& it) {
      if (it.user_data == kReceive) return on_received(it.res, it.flags);
      if (it.res < 0) bench_die("sendmsg");
      pool_.put_back(unsigned(it.user_data));
    });
  }

  void receive() {
    io_uring_sqe& entry = ring_.next_entry();
    entry.opcode = IORING_OP_RECVMSG;
    entry.fd = fd_;
    entry.addr = reinterpret_cast<std::uint64_t>(&shape_);
    entry.ioprio = IORING_RECV_MULTISHOT;
    entry.flags = IOSQE_BUFFER_SELECT;
    entry.user_data = kReceive;
    receiving_ = true;
  }

  void on_received(int result, std::uint32_t flags) {
    if (!(flags & IORING_CQE_F_MORE)) receiving_ = false;
    if (result >= 0)
      echo(flags >> IORING_CQE_BUFFER_SHIFT);
    else if (result != -ENOBUFS)
      bench_die("recvmsg");
    if (!receiving_ && result >= 0) receive();
  }

  void echo(unsigned buffer) {
    char* head = pool_.buffer(buffer);
    io_uring_recvmsg_out arrived;
    memcpy(&arrived, head, sizeof arrived);
    tally_.bytes += arrived.payloadlen;
    Outgoing& out = outgoing_[buffer];
    out.part = {head + kHead, arrived.payloadlen};
    out.message = {};
    out.message.msg_name = head + sizeof arrived;
    out.message.msg_namelen = arrived.namelen;
    out.message.msg_iov = &out.part;
    out.message.msg_iovlen = 1;
    if (direct_) return waiting_.push_back(buffer);
    io_uring_sqe& entry = ring_.next_entry();
    entry.opcode = IORING_OP_SENDMSG;
    entry.fd = fd_;
    entry.addr = reinterpret_cast<std::uint64_t>(&out.message);
    entry.len = 1;
    entry.user_data = buffer;
  }

  void send_all() {
    messages_.resize(waiting_.size());
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      messages_[i].msg_hdr = outgoing_[waiting_[i]].message;
      if (!batch_) sendmsg(fd_, &messages_[i].msg_hdr, MSG_DONTWAIT);
    }
    if (batch_ && !waiting_.empty())
      sendmmsg(fd_, messages_.data(), unsigned(messages_.size()), MSG_DONTWAIT);
    for (const unsigned buffer : waiting_) pool_.put_back(buffer);
    waiting_.clear();
  }

  const int fd_;
  const bool batch_, direct_, drain_;
  Tally& tally_;
  Ring ring_;
  Pool pool_;
  msghdr shape_ = {};
  bool receiving_ = false;
  std::vector<Outgoing> outgoing_;  // By buffer.
  std::vector<unsigned> waiting_;
  std::vector<mmsghdr> messages_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_DGRAM); }
