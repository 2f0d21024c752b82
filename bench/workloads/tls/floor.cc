// Hand-written epoll and SSL_set_fd: OpenSSL reads and writes the socket by itself, a record at a
// time, into one buffer of ours for all connections. The bound.
#include <openssl/err.h>

#include "harness/floor.h"
#include "workloads/tls/openssl_server.h"

namespace {

struct Session {
  int fd;
  SSL* ssl;
  Asked asked{};
  std::size_t bulk_left = 0;
  std::string waiting{};  // The unsent part of an echo.
  std::uint32_t watched = EPOLLIN;
};

class Server : Floor {
 public:
  Server(int socket, const ServerOptions& options, Tally& tally)
      : Floor(socket, tally), kind_(options), context_(bench_ssl_context(kind_)) {
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN, nullptr);
  }

  void run() {
    std::vector<epoll_event> events(1024);
    for (;;) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        auto* session = static_cast<Session*>(events[std::size_t(i)].data.ptr);
        if (session == nullptr)
          accept_all([this](int fd) { begin(fd); });
        else
          go_on(*session);
      }
    }
  }

  static void version() { bench_version(OpenSSL_version(OPENSSL_VERSION_STRING), "libssl"); }

 private:
  void begin(int fd) {
    auto* session = new Session{.fd = fd, .ssl = SSL_new(context_)};
    SSL_set_fd(session->ssl, fd);
    SSL_set_accept_state(session->ssl);
    watch(EPOLL_CTL_ADD, fd, EPOLLIN, session);
  }

  void go_on(Session& session) {
    const bool is_open = send_rest(session) && receive(session);
    if (!is_open) return end(session);
    const bool has_rest = !session.waiting.empty() || session.bulk_left > 0;
    const std::uint32_t wanted = has_rest ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (wanted == session.watched) return;
    session.watched = wanted;
    watch(EPOLL_CTL_MOD, session.fd, wanted, &session);
  }

  // The handshake is a part of the first read. Data that OpenSSL has read ahead causes no event.
  bool receive(Session& session) {
    do {
      const int size = SSL_read(session.ssl, buffer_.get(), kReadSize);
      if (size <= 0) return is_later(session.ssl, size);
      tally_.bytes += std::uint64_t(size);
      if (!answer(session, std::size_t(size))) return false;
    } while (SSL_has_pending(session.ssl) == 1);
    return true;
  }

  bool answer(Session& session, std::size_t size) {
    if (kind_.is_bulk) {
      session.bulk_left += kBulkSize * session.asked.take(size);
      return send_rest(session);
    }
    const long sent = session.waiting.empty() ? send(session, buffer_.get(), size) : 0;
    if (sent < 0) return false;
    session.waiting.append(buffer_.get() + sent, size - std::size_t(sent));
    return true;
  }

  bool send_rest(Session& session) {
    if (!session.waiting.empty()) {
      const long sent = send(session, session.waiting.data(), session.waiting.size());
      if (sent < 0) return false;
      session.waiting.erase(0, std::size_t(sent));
    }
    while (session.bulk_left > 0) {
      const std::size_t part = std::min(session.bulk_left, kBulkSize);
      const long sent = send(session, bench_bulk().data(), part);
      if (sent < 0) return false;
      session.bulk_left -= std::size_t(sent);
      if (std::size_t(sent) < part) break;
    }
    return true;
  }

  // A record at a time, until the kernel takes no more. -1: the connection is lost.
  static long send(Session& session, const char* bytes, std::size_t size) {
    std::size_t sent = 0;
    while (sent < size) {
      const int count = SSL_write(session.ssl, bytes + sent, int(size - sent));
      if (count <= 0) return is_later(session.ssl, count) ? long(sent) : -1;
      sent += std::size_t(count);
    }
    return long(sent);
  }

  static bool is_later(SSL* ssl, int result) {
    const int error = SSL_get_error(ssl, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }

  void end(Session& session) {
    ERR_clear_error();
    SSL_free(session.ssl);
    close(session.fd);
    delete &session;
    ++tally_.closed;
  }

  const TlsServerKind kind_;
  SSL_CTX* const context_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
