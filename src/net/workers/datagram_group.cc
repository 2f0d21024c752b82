#include "spate/net/datagram_group.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "core/user_code.h"
#include "net/datagram/datagram_socket.h"
#include "net/port_group.h"
#include "net/socket_address.h"
#include "spate/hooks.h"
#include "spate/net/workers.h"
#include "sys/datagram.h"
#include "sys/thread.h"

namespace spate {

namespace {

// A packet on its way to another worker.
struct Copied {
  explicit Copied(const Packet& packet)
      : bytes(packet.bytes.begin(), packet.bytes.end()),
        peer(packet.peer),
        local(packet.local),
        ecn(packet.ecn),
        truncated(packet.truncated) {}
  Packet view() const { return {bytes, peer, local, ecn, truncated}; }

  std::vector<std::byte> bytes;
  Address peer;
  Address local;
  Ecn ecn;
  bool truncated;
};

// Opens `count` sockets at one address, which the kernel treats as a group.
Result<std::vector<sys::Descriptor>> open_group(const Address& address, DatagramOptions options,
                                                std::size_t count) {
  const auto open = [&options](const Address& at, Sharing sharing) -> Result<sys::Descriptor> {
    options.reuse_port = sharing == Sharing::from_the_start;
    Result<sys::Descriptor> socket = open_datagram_socket(at, options);
    if (!socket || sharing == Sharing::from_the_start) return socket;
    if (const long result = allow_sharing(socket->get()); result < 0)
      return std::unexpected(sys::error_code(result));
    return socket;
  };
  return open_port_group(address, options.reuse_port, count, open);
}

}  // namespace

// ---- a worker's part

class DatagramGroup::Member final : public DatagramHandler {
 public:
  Member(State& state, unsigned index) : state_(state), index_(index) {}

  std::error_code start(Loop& loop, sys::Descriptor socket);
  // Closes the socket, and destroys the handler. Later calls have no effect.
  void end();
  bool has_ended() const { return has_ended_.load(); }
  // Counts packets that are being passed to this worker. Returns how many may be.
  std::size_t expect(std::size_t count);
  void take(const std::vector<Copied>& packets);

 private:
  friend class DatagramGroup;

  void on_packets(std::span<const Packet> packets) override;
  void on_error(std::error_code error) override {
    const auto service = service_;
    service->on_error(socket_, error);
  }
  void on_writable() override {
    const auto service = service_;
    service->on_writable(socket_);
  }
  void deliver(std::span<const Packet> packets) {
    const auto service = service_;
    service->on_packets(socket_, packets);
  }
  void sort(std::span<const Packet> packets);

  State& state_;
  const unsigned index_;
  std::optional<Cleanup> end_of_loop_;
  Datagram socket_;
  // Shared with its running functions: the group may be destroyed while one of them runs the loop.
  std::shared_ptr<DatagramService> service_;
  std::atomic<std::size_t> expected_{0};
  std::atomic<bool> has_ended_{false};
};

struct DatagramGroup::State {
  unsigned worker_of(Bytes bytes) const;
  bool is_steered() const { return options.steering.mask != 0 && members.size() > 1; }
  void forward(unsigned worker, std::vector<Copied> packets);
  std::error_code start(std::vector<sys::Descriptor> sockets);
  void end();

  Workers& workers;
  const MakeService make;
  const DatagramGroupOptions options;
  Address address;
  std::vector<std::shared_ptr<Member>> members{};
  std::atomic<std::uint64_t> forwarded{0};
  std::atomic<std::uint64_t> dropped{0};
};

std::error_code DatagramGroup::Member::start(Loop& loop, sys::Descriptor socket) {
  Result<Datagram> adopted = Datagram::adopt(loop, socket.get(), state_.options.socket);
  if (!adopted) return adopted.error();
  (void)socket.release();
  socket_ = std::move(*adopted);
  call_user("DatagramGroup", [&] { service_ = state_.make(loop, socket_); });
  end_of_loop_.emplace(loop, [this] { end(); });
  if (service_ == nullptr || !end_of_loop_->start()) return sys::error_code(-ENOMEM);
  socket_.start(*this);
  return {};
}

void DatagramGroup::Member::end() {
  socket_ = Datagram();
  service_.reset();
  end_of_loop_.reset();
  has_ended_ = true;
}

std::size_t DatagramGroup::Member::expect(std::size_t count) {
  const std::size_t max = state_.options.max_forwarded;
  const std::size_t before = expected_.fetch_add(count);
  const std::size_t fits = before >= max ? 0 : std::min(count, max - before);
  expected_ -= count - fits;
  return fits;
}

void DatagramGroup::Member::take(const std::vector<Copied>& packets) {
  expected_ -= packets.size();
  if (service_ == nullptr) return;
  std::vector<Packet> views;
  for (const Copied& packet : packets) views.push_back(packet.view());
  call_user("DatagramGroup", [&] { deliver(views); });
}

void DatagramGroup::Member::on_packets(std::span<const Packet> packets) {
  const auto is_own = [&](const Packet& packet) {
    return state_.worker_of(packet.bytes) == index_;
  };
  if (!state_.is_steered() || std::ranges::all_of(packets, is_own)) return deliver(packets);
  sort(packets);
}

// Passes packets on before it delivers its own, which remain valid during that call only.
void DatagramGroup::Member::sort(std::span<const Packet> packets) {
  std::vector<Packet> own;
  std::vector<std::vector<Copied>> others(state_.members.size());
  for (const Packet& packet : packets) {
    const unsigned worker = state_.worker_of(packet.bytes);
    worker == index_ ? own.push_back(packet) : (void)others[worker].emplace_back(packet);
  }
  for (unsigned worker = 0; worker < others.size(); ++worker) {
    if (!others[worker].empty()) state_.forward(worker, std::move(others[worker]));
  }
  if (!own.empty()) deliver(own);
}

// ---- all workers

unsigned DatagramGroup::State::worker_of(Bytes bytes) const {
  const auto [offset, mask] = options.steering;
  if (mask == 0 || bytes.size() < std::size_t{offset} + 4) return 0;
  std::uint32_t value = 0;
  for (const std::byte byte : bytes.subspan(offset, 4))
    value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return (value & mask) % static_cast<std::uint32_t>(members.size());
}

void DatagramGroup::State::forward(unsigned worker, std::vector<Copied> packets) {
  const std::shared_ptr<Member>& member = members[worker];
  const std::size_t count = packets.size();
  const std::size_t fits = member->expect(count);
  packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(fits), packets.end());
  const bool posted =
      fits > 0 && workers.post(worker, [member, some = std::move(packets)] { member->take(some); });
  if (!posted) member->expected_ -= fits;
  forwarded += posted ? fits : 0;
  dropped += posted ? count - fits : count;
}

std::error_code DatagramGroup::State::start(std::vector<sys::Descriptor> sockets) {
  std::vector<std::error_code> errors(members.size(), sys::error_code(-ECANCELED));
  sys::Latch done(static_cast<int>(members.size()));
  for (unsigned worker = 0; worker < members.size(); ++worker) {
    Loop& loop = workers.loop(worker);
    const bool posted = workers.post(worker, [&, worker] {
      errors[worker] = members[worker]->start(loop, std::move(sockets[worker]));
      done.count_down();
    });
    if (posted) continue;
    members[worker]->has_ended_ = true;
    done.count_down();
  }
  done.wait();
  const auto failed =
      std::ranges::find_if(errors, [](std::error_code error) { return bool(error); });
  return failed == errors.end() ? std::error_code() : *failed;
}

// Members whose loop has ended were ended by it.
void DatagramGroup::State::end() {
  sys::Latch done(static_cast<int>(members.size()));
  for (unsigned worker = 0; worker < members.size(); ++worker) {
    const std::shared_ptr<Member>& member = members[worker];
    const auto task = [&member, &done] {
      member->end();
      done.count_down();
    };
    bool is_posted = false;
    while (!member->has_ended() && !is_posted) is_posted = workers.post(worker, task);
    if (!is_posted) done.count_down();
  }
  done.wait();
}

DatagramGroup::DatagramGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}

DatagramGroup::~DatagramGroup() { state_->end(); }

// A kernel that does not steer distributes by a hash, and the workers pass packets on.
Result<std::unique_ptr<DatagramGroup>> DatagramGroup::create(Workers& workers,
                                                             const Address& address,
                                                             MakeService make,
                                                             const DatagramGroupOptions& options) {
  const auto [offset, mask] = options.steering;
  if (!address.is_ip() || (mask != 0 && options.socket.reuse_port))
    return std::unexpected(sys::error_code(-EINVAL));
  Result<std::vector<sys::Descriptor>> sockets =
      open_group(address, options.socket, workers.count());
  if (!sockets) return std::unexpected(sockets.error());
  if (mask != 0 && sockets->size() > 1)
    sys::steer_group(sockets->back().get(), offset, mask, workers.count());
  std::unique_ptr<State> state(new State{.workers = workers,
                                         .make = std::move(make),
                                         .options = options,
                                         .address = local_address_of(sockets->front().get())});
  for (unsigned worker = 0; worker < workers.count(); ++worker)
    state->members.push_back(std::make_shared<Member>(*state, worker));
  std::unique_ptr<DatagramGroup> group(new DatagramGroup(std::move(state)));
  if (const auto error = group->state_->start(std::move(*sockets))) return std::unexpected(error);
  return group;
}

const Address& DatagramGroup::address() const { return state_->address; }
unsigned DatagramGroup::worker_of(Bytes bytes) const { return state_->worker_of(bytes); }
std::uint64_t DatagramGroup::forwarded() const { return state_->forwarded; }
std::uint64_t DatagramGroup::dropped() const { return state_->dropped; }

}  // namespace spate
