// A server of the drop-in evhttp that gets any bytes in any pieces: the program never sees a
// request that is not whole, nor more bytes than it allows, and a connection ends or goes on.
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "input.h"

namespace spate::fuzz {
namespace {

constexpr ev_ssize_t kMostBody = 1000;
constexpr ev_ssize_t kMostHeaders = 2000;
constexpr std::size_t kMostPiece = 300;
constexpr int kTurns = 4;

class Server {
 public:
  Server() : base_(event_base_new()), server_(evhttp_new(base_)) {
    evhttp_set_gencb(server_, on_request, nullptr);
    evhttp_set_max_body_size(server_, kMostBody);
    evhttp_set_max_headers_size(server_, kMostHeaders);
    evhttp_set_allowed_methods(server_, 0x1ff);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    socklen_t size = sizeof address_;
    check(::bind(fd, address, size) == 0 && ::listen(fd, 4) == 0);
    check(::getsockname(fd, address, &size) == 0);
    check(evhttp_accept_socket(server_, fd) == 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    evhttp_free(server_);
    event_base_free(base_);
  }

  void run(Input& input) {
    evhttp_set_flags(server_, input.flag() ? EVHTTP_SERVER_LINGERING_CLOSE : 0);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(connects(fd));
    while (!input.empty()) {
      const std::string_view piece = input.text(kMostPiece);
      ::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      turn();
    }
    const linger now{1, 0};  // Ports are few.
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(fd);
    turn();
  }

 private:
  // The fuzzer's clock interrupts what waits.
  bool connects(int fd) const {
    const auto* address = reinterpret_cast<const sockaddr*>(&address_);
    while (::connect(fd, address, sizeof address_) != 0 && errno != EISCONN) {
      if (errno != EINTR && errno != EALREADY) return false;
    }
    return true;
  }

  static void on_request(evhttp_request* request, void*) {
    check(evhttp_request_get_uri(request) != nullptr);
    check(evhttp_request_get_evhttp_uri(request) != nullptr);
    check(evbuffer_get_length(request->input_buffer) == request->body_size);
    check(request->body_size <= kMostBody && request->headers_size <= kMostHeaders);
    const evkeyval* header = request->input_headers->tqh_first;
    for (; header != nullptr; header = header->next.tqe_next) {
      check(header->key[0] != 0 && std::strpbrk(header->key, " \t:\r\n") == nullptr);
      check(std::strpbrk(header->value, "\r\n") == nullptr);
    }
    evbuffer* body = evbuffer_new();
    evbuffer_add(body, "text", 4);
    evhttp_send_reply(request, HTTP_OK, nullptr, body);
    evbuffer_free(body);
  }

  void turn() {
    for (int i = 0; i < kTurns; ++i) event_base_loop(base_, EVLOOP_NONBLOCK);
  }

  event_base* base_;
  evhttp* server_;
  sockaddr_in address_{};
};

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::signal(SIGPIPE, SIG_IGN);
  spate::fuzz::Input input(data, size);
  spate::fuzz::Server server;
  server.run(input);
  return 0;
}
