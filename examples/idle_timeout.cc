// A thousand connections, each closed once nothing has arrived on it for a while.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>

#include "spate/io.h"
#include "spate/timer.h"

using namespace std::chrono_literals;

namespace {

constexpr spate::Nanos kIdleLimit = 200ms;
constexpr spate::Nanos kMessageInterval = 20ms;
constexpr int kMessages = 15;

class Connection {
 public:
  explicit Connection(spate::Loop& loop)
      : idle_(loop, spate::bind<&Connection::on_idle>(this)),
        io_(loop, spate::bind<&Connection::on_message>(this)) {
    ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_);
    io_.set(ends_[0], spate::Events::read);
    io_.start();
    idle_.start(kIdleLimit);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    io_.stop();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  void send_from_peer() { ::send(ends_[1], "x", 1, MSG_NOSIGNAL); }
  bool is_open() const { return io_.is_active(); }
  int messages() const { return messages_; }

 private:
  void on_message() {
    char buffer[64];
    if (::recv(ends_[0], buffer, sizeof(buffer), 0) <= 0) return;
    ++messages_;
    idle_.restart(kIdleLimit);
  }
  void on_idle() { io_.stop(); }

  int ends_[2];
  int messages_ = 0;
  spate::Timer idle_;
  spate::Io io_;
};

std::size_t affordable_connections(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kOthers = 64;
  return std::min<std::size_t>(wanted, (limit.rlim_cur - kOthers) / 2);
}

bool is_busy(std::size_t connection) { return connection % 2 == 0; }

}  // namespace

int main() {
  std::unique_ptr<spate::Loop> loop = spate::must(spate::Loop::create());
  std::deque<Connection> connections;
  const std::size_t count = affordable_connections(1000);
  for (std::size_t i = 0; i < count; ++i) connections.emplace_back(*loop);

  struct Peers {
    std::deque<Connection>& connections;
    int rounds;
    void send(spate::Timer& timer) {
      for (std::size_t i = 0; i < connections.size(); ++i) {
        if (is_busy(i)) connections[i].send_from_peer();
      }
      if (++rounds == kMessages) timer.stop();
    }
  } peers{connections, 0};
  spate::Timer sender{*loop, spate::bind<&Peers::send>(&peers)};
  sender.start(0ms, kMessageInterval);
  loop->run();

  bool all_as_expected = true;
  for (std::size_t i = 0; i < count; ++i) {
    const bool got_some = connections[i].messages() > 0;
    all_as_expected &= !connections[i].is_open() && got_some == is_busy(i);
  }
  std::printf("%zu connections, %llu turns, %llu callbacks\n", count,
              static_cast<unsigned long long>(loop->metrics().turns),
              static_cast<unsigned long long>(loop->metrics().events));
  return all_as_expected ? 0 : 1;
}
