// The connections of a World.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chaos/verdict.h"
#include "chaos/world.h"
#include "support/own_loopback.h"

namespace spate::chaos {

namespace {

constexpr std::size_t kMaxOfLinks = 12;

// A listening socket for all programs of this process.
int shared_listener(sockaddr_in& address) {
  static sockaddr_in bound{};
  static const int listener = [] {
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bound.sin_family = AF_INET;
    bound.sin_addr.s_addr = htonl(testing::own_loopback());
    socklen_t size = sizeof(bound);
    const bool is_bound = ::bind(made, reinterpret_cast<sockaddr*>(&bound), size) == 0 &&
                          ::listen(made, 16) == 0 &&
                          ::getsockname(made, reinterpret_cast<sockaddr*>(&bound), &size) == 0;
    return is_bound ? made : -1;
  }();
  address = bound;
  return listener;
}

bool open_tcp(int fds[2]) {
  sockaddr_in address;
  const int listener = shared_listener(address);
  fds[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fds[0], reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0)
    fds[1] = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  else
    fds[1] = -1;
  if (fds[1] < 0) ::close(fds[0]);
  return fds[1] >= 0;
}

// With a small window, TCP would wait for the kernel's timers.
void make_small(int fd, Kind kind) {
  const int size = kind == Kind::tcp ? 16384 : 4096;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
  if (kind != Kind::tcp) ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

}  // namespace

void prepare_links() {
  sockaddr_in address;
  shared_listener(address);
}

void World::make_link(const Step& step) {
  if (channels_.size() >= kMaxOfLinks) return;
  const std::size_t choice = step.a % 16;
  const Kind kind = choice < 5    ? Kind::memory
                    : choice < 11 ? Kind::local
                    : choice < 13 ? Kind::tcp
                                  : Kind::pipe;
  if (!open_link(kind, step)) check(is_stormy(), "link_opens", "no connection");
}

bool World::open_link(Kind kind, const Step& step) {
  if (kind == Kind::memory || (kind == Kind::local && step.a / 16 % 2 == 0)) {
    auto pair = kind == Kind::memory ? Stream::memory_pair(*loop_) : Stream::socket_pair(*loop_);
    if (!pair) return false;
    add_pair(kind, std::move(pair->first), std::move(pair->second), step);
    return true;
  }
  int fds[2];
  const bool is_open = kind == Kind::tcp ? open_tcp(fds)
                       : kind == Kind::pipe
                           ? ::pipe2(fds, O_CLOEXEC) == 0
                           : ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0;
  if (!is_open) return false;
  if (kind != Kind::pipe && step.b % 3 == 0) {
    make_small(fds[0], kind);
    make_small(fds[1], kind);
  }
  if (kind == Kind::pipe && step.b % 3 == 0) ::fcntl(fds[0], F_SETPIPE_SZ, 4096);
  add_fds(kind, fds[0], fds[1], step);
  return true;
}

void World::add_pair(Kind kind, Stream first, Stream second, const Step& step) {
  End& left = add_end(kind, std::move(first));
  End& right = add_end(kind, std::move(second));
  join_parties(left, right);
  left.prepare(step);
  right.prepare(step);
  if (step.b % 8 != 7) left.start();
  if (step.b % 8 != 6) right.start();
  if (step.b % 16 == 5 && !is_left_out("secure")) secure(left, step);
}

// A pipe is written at its second end.
void World::add_fds(Kind kind, int first, int second, const Step& step) {
  const std::size_t choice = step.a / 64 % 4;
  Party* parties[2];
  for (int i = 0; i < 2; ++i) {
    const int fd = i == 0 ? first : second;
    const bool is_raw = choice == 0 ? false : choice == 1 ? i == 0 : i == 1;
    if (!is_raw) {
      auto made = Stream::adopt(*loop_, fd);
      if (made) {
        parties[i] = &add_end(kind, std::move(*made));
        continue;
      }
      check(is_stormy(), "adopts", "%s", made.error().message().c_str());
    }
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    parties[i] = &add_raw(kind, fd);
  }
  join_parties(*parties[0], *parties[1]);
  for (Party* party : parties) {
    if (!party->is_raw && (step.b % 8 != 7 || party->number % 2 == 0))
      static_cast<End*>(party)->start();
    if (!party->is_raw) static_cast<End*>(party)->prepare(step);
  }
}

End& World::add_end(Kind kind, Stream stream) {
  return add_end(kind, std::make_unique<Stream>(std::move(stream)));
}

End& World::add_end(Kind kind, std::unique_ptr<Stream> stream) {
  return *ends_.emplace_back(std::make_unique<End>(*this, next_number(), kind, std::move(stream)));
}

Raw& World::add_raw(Kind kind, int fd) {
  return *raws_.emplace_back(std::make_unique<Raw>(*this, next_number(), kind, fd));
}

Channel* World::make_channel(Kind kind) {
  return channels_
      .emplace_back(std::make_unique<Channel>(static_cast<unsigned>(channels_.size()) + 1, kind))
      .get();
}

void World::join_parties(Party& first, Party& second) {
  first.peer = &second;
  second.peer = &first;
  first.in = second.out = make_channel(first.kind);
  Channel* back = make_channel(first.kind);
  if (first.kind != Kind::pipe) first.out = second.in = back;
  tell("  link of %u and %u (%s)", first.number, second.number,
       kKindNames[static_cast<int>(first.kind)]);
}

void World::meet(std::uint16_t port, Side side, Party& party) {
  if (party.peer != nullptr && has_met(*party.peer)) return;  // By its bytes.
  const auto half = halves_.find(port);
  if (half == halves_.end() || half->second.side == side) {
    if (party.out == nullptr) await(party);
    halves_[port] = {side, &party};
    return;
  }
  Party& other = *half->second.party;
  halves_.erase(half);
  join_halves(party, other);
}

void World::await(Party& party) {
  party.in = make_channel(party.kind);
  party.out = make_channel(party.kind);
  party.peer = &ghost_;
}

// Connects the halves: bytes that one has written, even before it was connected, are those that the
// other reads.
void World::join_halves(Party& party, Party& other) {
  if (party.out == nullptr) party.out = other.in;
  if (other.in->is_lossy()) party.out->lose(other.in->loss());
  if (party.in != nullptr && party.in->is_lossy()) other.out->lose(party.in->loss());
  other.in = party.out;
  party.in = other.out;
  party.peer = &other;
  other.peer = &party;
  tell("  %u meets %u", party.number, other.number);
}

void World::identify(Party& party, Bytes bytes) {
  if (has_met(*party.peer)) return;
  std::vector<Party*> callers(lost_callers_.begin(), lost_callers_.end());
  for (const auto& [port, half] : halves_) {
    if (half.side == Side::calling) callers.push_back(half.party);
  }
  for (const auto& end : ends_) {
    if (end->is_connecting() && end->out != nullptr) callers.push_back(end.get());
  }
  for (Party* caller : callers) {
    if (!caller->out->begins_with(bytes)) continue;
    std::erase(lost_callers_, caller);
    std::erase_if(halves_, [&](const auto& half) {
      return half.second.party == &party || half.second.party == caller;
    });
    return join_halves(*caller, party);
  }
}

void World::hand_on(End& end, int fd, bool as_raw) {
  Party* party = nullptr;
  if (!as_raw) {
    auto made = Stream::adopt(*loop_, fd);
    check(made.has_value() || is_stormy(), "adopts", "%s",
          made ? "" : made.error().message().c_str());
    if (made) party = &add_end(end.kind, std::move(*made));
  }
  if (party == nullptr) party = &add_raw(end.kind, fd);
  party->in = end.in;
  party->out = end.out;
  party->peer = end.peer;
  party->may_show_end = end.may_show_end;
  party->may_show_cut = end.may_show_cut;
  party->may_show_error = end.may_show_error;
  end.peer->peer = party;
  for (auto& [port, half] : halves_) {
    if (half.party == &end) half.party = party;
  }
  tell("  end %u goes on as %u", end.number, party->number);
  if (party->is_raw) return;
  static_cast<End*>(party)->go_on_from(end);
}

}  // namespace spate::chaos
