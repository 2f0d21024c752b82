// A client of the drop-in evhttp whose server sends anything, in any pieces: each request has one
// outcome, no response exceeds its limit, and no callback comes after the connection was freed.
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

#include "evhttp.h"
#include "input.h"

namespace spate::fuzz {
namespace {

constexpr int kTurns = 4;
constexpr int kTurnsToEnd = 100;
constexpr std::size_t kMostRequests = 4;

constexpr std::array kMethods = {EVHTTP_REQ_GET,     EVHTTP_REQ_HEAD, EVHTTP_REQ_POST,
                                 EVHTTP_REQ_OPTIONS, EVHTTP_REQ_PUT,  EVHTTP_REQ_CONNECT};

class Server {
 public:
  Server() : listener_(listen_at(address_)) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { end(); }

  ev_uint16_t port() const { return ntohs(address_.sin_port); }
  // Sends to the latest client.
  void say(std::string_view text) {
    take_all();
    if (!clients_.empty())
      ::send(clients_.back(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void leave_client() {
    take_all();
    if (clients_.empty()) return;
    ::close(clients_.back());
    clients_.pop_back();
  }
  // Stops serving.
  void end() {
    if (listener_ < 0) return;
    take_all();
    for (const int fd : clients_) ::close(fd);
    clients_.clear();
    ::close(listener_);
    listener_ = -1;
  }

 private:
  void take_all() {
    for (int fd = 0; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      end_at_once(fd);
      clients_.push_back(fd);
    }
  }

  sockaddr_in address_{};
  int listener_;
  std::vector<int> clients_;
};

class Client {
 public:
  explicit Client(Input& input)
      : base_(event_base_new()),
        connection_(evhttp_connection_base_new(base_, nullptr, "127.0.0.1", server_.port())) {
    evhttp_connection_set_max_body_size(connection_, kMostBody);
    evhttp_connection_set_max_headers_size(connection_, kMostHeaders);
    evhttp_connection_set_flags(connection_, input.flag() ? EVHTTP_CON_READ_ON_WRITE_ERROR : 0);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    evhttp_connection_free(connection_);
    event_base_free(base_);
    check(told_ <= asked_);
  }

  void run(Input& input) {
    for (std::size_t left = 1 + input.below(kMostRequests); left > 0; --left) ask(input);
    turn();
    while (!input.empty()) {
      if (input.byte() % 16 == 15) server_.leave_client();
      server_.say(input.text(kMostPiece));
      turn();
    }
    if (input.flag()) return;
    server_.end();
    for (int i = 0; i < kTurnsToEnd && told_ < asked_; ++i) turn();
    check(told_ == asked_);
  }

 private:
  void ask(Input& input) {
    evhttp_request* request = evhttp_request_new(on_answer, this);
    evhttp_request_set_error_cb(request, [](evhttp_request_error, void*) {});
    if (input.flag()) evhttp_request_set_chunked_cb(request, on_piece);
    if (input.flag()) evbuffer_add(request->output_buffer, "text", 4);
    evhttp_add_header(request->output_headers, "Host", "a");
    const evhttp_cmd_type method = kMethods[input.below(kMethods.size())];
    if (evhttp_make_request(connection_, request, method, "/") == 0) ++asked_;
  }

  static void check_answer(const evhttp_request& answer) {
    check(answer.body_size <= kMostBody && answer.headers_size <= kMostHeaders);
    check_fields(*answer.input_headers);
  }

  static void on_piece(evhttp_request* answer, void*) {
    check_answer(*answer);
    check(evbuffer_get_length(answer->input_buffer) > 0);
  }

  // Null, or without a status, when there is no answer.
  static void on_answer(evhttp_request* answer, void* argument) {
    ++static_cast<Client*>(argument)->told_;
    if (answer != nullptr && answer->response_code != 0) check_answer(*answer);
  }

  void turn() {
    for (int i = 0; i < kTurns; ++i) event_base_loop(base_, EVLOOP_NONBLOCK);
  }

  Server server_;
  event_base* base_;
  evhttp_connection* connection_;
  int asked_ = 0;
  int told_ = 0;
};

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::signal(SIGPIPE, SIG_IGN);
  spate::fuzz::Input input(data, size);
  spate::fuzz::Client client(input);
  client.run(input);
  return 0;
}
