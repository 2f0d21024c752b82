// Hand-written epoll, with only the HTTP that this client needs: it looks for the end of the header
// section and compares the target; responses are prepared. It is the bound, not a general server.
#include <sys/sendfile.h>

#include <ctime>

#include "harness/floor.h"
#include "workloads/http/server.h"

namespace {

struct Session {
  int fd;
  std::string rest;     // An incomplete request.
  std::string waiting;  // To be sent.
  std::uint64_t upload_left = 0;
  off_t file_at = off_t(kFileSize);  // Offset in the file being sent.
  bool closes = false;
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
      note_date();
      for (int i = 0; i < count; ++i) {
        auto* session = static_cast<Session*>(events[std::size_t(i)].data.ptr);
        if (session == nullptr)
          accept_new();
        else if ((events[std::size_t(i)].events & EPOLLOUT) != 0)
          go_on(*session);
        else
          receive(*session);
      }
    }
  }

  static void version() { bench_version("none", nullptr); }

 private:
  void accept_new() {
    accept_all([this](int fd) {
      watch(EPOLL_CTL_ADD, fd, EPOLLIN, new Session{.fd = fd, .rest = {}, .waiting = {}});
    });
  }

  void note_date() {
    const time_t now = time(nullptr);
    if (now == second_) return;
    second_ = now;
    tm parts;
    gmtime_r(&now, &parts);
    char text[32];
    strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    hello_ = answer_of(text, kHello.size(), "") + std::string(kHello);
    last_hello_ = answer_of(text, kHello.size(), "Connection: close\r\n") + std::string(kHello);
    page_ = answer_of(text, kPageSize, "") + bench_page();
    file_ = answer_of(text, kFileSize, "");
    const std::string size = std::to_string(kUploadSize);
    uploaded_ = answer_of(text, size.size(), "") + size;
  }

  static std::string answer_of(const char* date, std::size_t size, const char* more) {
    return "HTTP/1.1 200 OK\r\nDate: " + std::string(date) +
           "\r\nContent-Length: " + std::to_string(size) + "\r\n" + more +
           "Content-Type: text/plain; charset=utf-8\r\n\r\n";
  }

  void receive(Session& session) {
    const std::size_t kept = session.rest.size();
    memcpy(buffer_.get(), session.rest.data(), kept);
    const ssize_t size = recv(session.fd, buffer_.get() + kept, kReadSize - kept, 0);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return end(session);
    std::string_view bytes(buffer_.get(), kept + std::size_t(size));
    out_.clear();
    while (take(session, bytes)) {
    }
    session.rest.assign(bytes);
    send_out(session, out_);
  }

  // Removes one request, or the available part of an upload. Returns false if there is no more.
  bool take(Session& session, std::string_view& bytes) {
    if (session.upload_left > 0) {
      const std::size_t part = std::min<std::uint64_t>(bytes.size(), session.upload_left);
      bytes.remove_prefix(part);
      session.upload_left -= part;
      if (session.upload_left == 0) out_ += uploaded_;
      return session.upload_left == 0 && !bytes.empty();
    }
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string_view::npos) return false;
    const std::string_view head = bytes.substr(0, end);
    bytes.remove_prefix(end + 4);
    if (head.starts_with("GET /hello ")) {
      session.closes = head.contains("Connection: close");
      out_ += session.closes ? last_hello_ : hello_;
    } else if (head.starts_with("GET /page ")) {
      out_ += page_;
    } else if (head.starts_with("GET /file ")) {
      out_ += file_;
      session.file_at = 0;
    } else {
      session.upload_left = kUploadSize;
    }
    return true;
  }

  void send_out(Session& session, std::string_view bytes) {
    const std::size_t sent = bytes.empty() ? 0 : bench_send(session.fd, bytes.data(), bytes.size());
    session.waiting.assign(bytes.substr(sent));
    send_file(session);
  }

  void go_on(Session& session) {
    std::string bytes = std::move(session.waiting);
    send_out(session, bytes);
    if (session.waiting.empty() && session.file_at == off_t(kFileSize))
      watch(EPOLL_CTL_MOD, session.fd, EPOLLIN, &session);
  }

  void send_file(Session& session) {
    while (session.waiting.empty() && session.file_at < off_t(kFileSize)) {
      const std::size_t left = kFileSize - std::size_t(session.file_at);
      if (sendfile(session.fd, bench_file(), &session.file_at, left) < 0) break;
    }
    const bool is_done = session.waiting.empty() && session.file_at == off_t(kFileSize);
    if (!is_done) watch(EPOLL_CTL_MOD, session.fd, EPOLLOUT, &session);
    if (is_done && session.closes) shutdown(session.fd, SHUT_WR);
  }

  void end(Session& session) {
    close(session.fd);
    delete &session;
    ++tally_.closed;
  }

  time_t second_ = 0;
  std::string out_, hello_, last_hello_, page_, file_, uploaded_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
