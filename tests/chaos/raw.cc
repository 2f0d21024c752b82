#include "chaos/raw.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "chaos/verdict.h"
#include "chaos/world.h"

namespace spate::chaos {

Raw::~Raw() {
  if (fd_ >= 0) ::close(fd_);
}

bool Raw::has_met() const { return world.has_met(*peer); }

void Raw::act(const Step& step) {
  if (fd_ < 0) return;
  switch (step.op) {
    case Op::peer_send: {
      static constexpr std::size_t kMax[8] = {1, 16, 16, 300, 300, 6000, 20000, 100'000};
      send(1 + (step.a >> 3) % kMax[step.a % 8]);
      return;
    }
    case Op::peer_read: {
      static constexpr std::size_t kMax[4] = {1, 100, 5000, 100'000};
      read(1 + (step.a >> 2) % kMax[step.a % 4]);
      return;
    }
    case Op::peer_mode:
      mode_ = static_cast<Mode>(step.a % 5);
      return;
    case Op::peer_end:
      return end();
    case Op::peer_reset:
      return reset();
    default:
      return close();
  }
}

bool Raw::go_on() {
  switch (mode_) {
    case Mode::reads:
      return read_all();
    case Mode::reads_little:
      return read(1);
    case Mode::echoes:
      return read(3000);
    case Mode::floods:
      return send(3000);
    default:
      return false;
  }
}

bool Raw::read_all() {
  bool has_read = false;
  while (read(65536)) has_read = true;
  return has_read;
}

bool Raw::read(std::size_t max) {
  if (fd_ < 0 || is_over_ || in == nullptr) return false;
  static std::byte room[65536];
  const ssize_t count = ::read(fd_, room, std::min(max, sizeof(room)));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  peer->catch_up();
  if (count < 0) return on_error(errno), false;
  world.moved();
  const std::string who = "peer " + std::to_string(number);
  if (count == 0) {
    is_over_ = saw_end_ = true;
    world.tell("[peer %u reads the end]", number);
    const bool shows_resets = kind == Kind::tcp && !peer->may_end_short();
    check(in->is_whole() || (in->is_lossy() && !shows_resets) || world.is_stormy(), "end_is_whole",
          "peer %u: the end after %zu bytes of %zu; lost by: %s", number, in->shown(),
          in->accepted(), in->loss());
    check(peer->may_show_end || (peer->may_show_cut && !shows_resets) || world.is_stormy(),
          "end_is_the_peers", "peer %u: an end, and nobody has ended", number);
    return false;
  }
  const Bytes bytes(room, static_cast<std::size_t>(count));
  const std::size_t at = in->shown();
  world.tell("[peer %u reads %zu bytes from %zu]", number, bytes.size(), at);
  if (in->accepted() == 0) world.identify(*this, bytes);
  in->verify(at, bytes, who.c_str());
  in->show(at + bytes.size(), world.has_loop() ? world.now() : Nanos{0});
  if (mode_ == Mode::echoes && in->shown() <= in->accepted() && out != nullptr && !has_ended_ &&
      out->accepted() < 500'000) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) on_error(errno);
    if (sent > 0) out->accept_from(*in, at, static_cast<std::size_t>(sent));
  }
  return true;
}

// The kernel reports it once, to a write or to a read.
void Raw::on_error(int error) {
  is_over_ = true;
  world.moved();
  world.tell("[peer %u meets an error: %s]", number, std::strerror(error));
  check(peer->may_show_error || world.is_stormy(), "right_error",
        "peer %u: %s, and nobody has reset", number, std::strerror(error));
  if (in != nullptr) in->lose("reset");
}

bool Raw::send(std::size_t size) {
  if (fd_ < 0 || out == nullptr || has_ended_ || out->accepted() > 500'000) return false;
  if (kind == Kind::pipe) {
    pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (::poll(&room, 1, 0) <= 0 || room.revents != POLLOUT) return false;  // No SIGPIPE of ours.
  }
  const Bytes bytes = out->next(size);
  const ssize_t sent = kind == Kind::pipe
                           ? ::write(fd_, bytes.data(), bytes.size())
                           : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  peer->catch_up();
  if (sent < 0 && errno != EAGAIN && errno != EINTR && kind != Kind::pipe) on_error(errno);
  if (sent <= 0) return false;
  world.tell("[peer %u sends %zd bytes]", number, sent);
  out->accept_own(static_cast<std::size_t>(sent));
  return true;
}

void Raw::end() {
  if (fd_ < 0 || out == nullptr || has_ended_) return;
  if (kind == Kind::pipe) return close();
  world.tell("[peer %u ends its side]", number);
  ::shutdown(fd_, SHUT_WR);
  has_ended_ = may_show_end = true;
}

bool Raw::has_unread() const {
  int size = 0;
  return in != nullptr &&
         (in->accepted() > in->shown() || ::ioctl(fd_, FIONREAD, &size) < 0 || size > 0);
}

void Raw::gone() {
  may_show_end = may_show_error = true;
  if (in != nullptr) in->lose("its reader has closed");
  ::close(std::exchange(fd_, -1));
}

// With unread input, close() sends a reset; later writes to it cause one.
void Raw::close() {
  if (fd_ < 0) return;
  world.tell("[peer %u closes]", number);
  const bool resets = has_unread();
  if (resets && out != nullptr) out->lose("closed with input unread");
  if (resets) may_show_cut = true;
  gone();
}

void Raw::reset() {
  if (fd_ < 0 || kind == Kind::pipe) return close();
  world.tell("[peer %u resets]", number);
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  if (out != nullptr) out->lose("reset");
  may_show_cut = true;
  gone();
}

void Raw::check_settled() {
  if (fd_ < 0 || in == nullptr || world.is_stormy()) return;
  check(in->is_lossy() || in->is_whole(), "bytes_arrive",
        "peer %u: %zu of %zu bytes arrived, and nothing moves any more", number, in->shown(),
        in->accepted());
}

void Raw::check_told() {
  if (fd_ < 0 || in == nullptr || world.is_stormy()) return;
  check(is_over_, "end_comes", "peer %u: the other end has gone, and it was not told", number);
}

}  // namespace spate::chaos
