// Hand-written epoll, with only the WebSocket features that this client needs: one response to all
// handshakes, and binary messages that are unmasked and sent back, or to all. It is the bound, not
// a general server.
#include <utility>
#include <vector>

#include "harness/floor.h"
#include "harness/server.h"
#include "workloads/websocket/message.h"

namespace {

struct Session {
  int fd;
  bool is_open = false;
  bool tells = false;
  std::size_t place = 0;  // In told_.
  std::string rest;     // An incomplete message.
  std::string waiting;  // To be sent.
  bool waiting_for_room = false;
};

class Server : Floor {
 public:
  Server(int socket, const ServerOptions&, Tally& tally) : Floor(socket, tally) {
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN, nullptr);
  }

  void run() {
    std::vector<epoll_event> events(1024);
    for (;;) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        auto* session = static_cast<Session*>(events[std::size_t(i)].data.ptr);
        if (session == nullptr)
          accept_all([this](int fd) {
            watch(EPOLL_CTL_ADD, fd, EPOLLIN, new Session{.fd = fd, .rest = {}, .waiting = {}});
          });
        else if ((events[std::size_t(i)].events & EPOLLOUT) != 0)
          send_out(*session, std::exchange(session->waiting, {}));
        else
          receive(*session);
      }
    }
  }

  static void version() { bench_version("none", nullptr); }

 private:
  void receive(Session& session) {
    const std::size_t kept = session.rest.size();
    memcpy(buffer_.get(), session.rest.data(), kept);
    const ssize_t size = recv(session.fd, buffer_.get() + kept, kReadSize - kept, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) {
      close(session.fd);
      if (session.tells) leave(session);
      delete &session;
      return;
    }
    char* at = buffer_.get();
    char* const end = at + kept + size;
    out_.clear();
    is_message_ = session.is_open;
    while (char* next = session.is_open ? take_message(at, end) : take_handshake(session, at, end))
      at = next;
    session.rest.assign(at, std::size_t(end - at));
    if (!session.tells || !is_message_) return send_out(session, out_);
    for (Session* each : told_) send_out(*each, out_);
  }

  // The last one takes its place.
  void leave(const Session& session) {
    told_[session.place] = told_.back();
    told_[session.place]->place = session.place;
    told_.pop_back();
  }

  char* take_handshake(Session& session, char* at, char* end) {
    const std::size_t size = std::string_view(at, std::size_t(end - at)).find("\r\n\r\n");
    if (size == std::string_view::npos) return nullptr;
    session.is_open = true;
    session.tells = std::string_view(at, size).starts_with("GET /tell ");
    if (session.tells) {
      session.place = told_.size();
      told_.push_back(&session);
    }
    out_ +=
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    return at + size + 4;
  }

  // Where the next one begins; nullptr if this one is not whole.
  char* take_message(char* at, char* end) {
    const Arrived arrived = unmask({at, std::size_t(end - at)}, at);
    if (arrived.frame_size == 0) return nullptr;
    out_ += frame_head(arrived.message.size());
    out_ += arrived.message;
    return at + arrived.frame_size;
  }

  void send_out(Session& session, const std::string& bytes) {
    const std::size_t sent = bytes.empty() ? 0 : bench_send(session.fd, bytes.data(), bytes.size());
    const bool was_waiting = session.waiting_for_room;
    session.waiting.assign(bytes, sent);
    session.waiting_for_room = !session.waiting.empty();
    if (session.waiting_for_room != was_waiting)
      watch(EPOLL_CTL_MOD, session.fd, session.waiting_for_room ? EPOLLOUT : EPOLLIN, &session);
  }

  std::string out_;
  bool is_message_ = false;  // Or the answer to a handshake.
  std::vector<Session*> told_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
