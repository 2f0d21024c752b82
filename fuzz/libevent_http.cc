// A server of the drop-in evhttp that receives any bytes in any pieces: the program never sees an
// incomplete request, nor more bytes than it allows.
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "evhttp.h"
#include "input.h"

namespace spate::fuzz {
namespace {

constexpr int kTurns = 4;

class Server {
 public:
  Server() : base_(event_base_new()), server_(evhttp_new(base_)) {
    evhttp_set_gencb(server_, on_request, nullptr);
    evhttp_set_max_body_size(server_, kMostBody);
    evhttp_set_max_headers_size(server_, kMostHeaders);
    evhttp_set_allowed_methods(server_, 0x1ff);
    check(evhttp_accept_socket(server_, listen_at(address_)) == 0);
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
    end_at_once(fd);
    ::close(fd);
    turn();
  }

 private:
  // The fuzzer's timer signal interrupts blocking calls.
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
    check_fields(*request->input_headers);
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
