// evhttp under a program that makes and frees objects at random, also in callbacks. The sanitizers
// report leaks and uses after free.
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "evhttp_sockets.h"

namespace {

constexpr int kSteps = 80;
constexpr int kClients = 3;
constexpr int kAsksMost = 150;

// A server, clients and raw bytes on one base, and a program that makes and frees objects at random
// in each callback.
class World {
 public:
  explicit World(unsigned seed) : random_(seed), base_(event_base_new()) { open_server(); }

  ~World() {
    acts_ = false;
    for (evhttp_connection*& client : clients_) free_client(client);
    close_server();
    for (int i = 0; i < kSteps; ++i) event_base_loop(base_, EVLOOP_NONBLOCK);
    for (evhttp_request* request : kept_) evhttp_request_free(request);
    if (raw_ >= 0) ::close(raw_);
    event_base_free(base_);
  }

  void run() {
    for (int step = 0; step < kSteps; ++step) {
      act();
      event_base_loop(base_, EVLOOP_NONBLOCK);
    }
  }

  int answered() const { return answered_; }

 private:
  struct Ask {
    World* world;
    evhttp_connection* client;
    evhttp_request* request;  // Null after its callback.
  };

  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  void act() {
    switch (below(13)) {
      case 0:
        return send_raw();
      case 1:
        return cancel();
      case 2:
        return below(3) == 0 ? free_client(clients_[below(kClients)]) : make_ask();
      case 3:
        return below(25) == 0 ? renew_server() : make_ask();
      case 4:
      case 5:
      case 6:
        return answer_held();
      case 7:
        return free_kept();
      case 8:
        return below(4) == 0 ? end_client() : make_ask();
      default:
        return make_ask();
    }
  }

  void act_inside() {
    while (acts_ && depth_ < 3 && below(3) == 0) {
      ++depth_;
      act();
      --depth_;
    }
  }

  // ---- the server

  void open_server() {
    server_ = evhttp_new(base_);
    evhttp_set_gencb(server_, on_request, this);
    evhttp_set_max_body_size(server_, below(3) == 0 ? 50 : -1);
    const int fd = listen_anywhere();
    port_ = port_of(fd);
    evhttp_accept_socket(server_, fd);
  }

  void close_server() {
    evhttp* server = server_;
    server_ = nullptr;
    if (server != nullptr) evhttp_free(server);
    held_ = nullptr;
    if (left_ != nullptr) evhttp_request_free(left_);
    left_ = nullptr;
  }

  // The callbacks of the close may call this too.
  void renew_server() {
    if (server_ == nullptr) return;
    close_server();
    open_server();
  }

  static void on_request(evhttp_request* request, void* self) {
    auto& world = *static_cast<World*>(self);
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_server_close, self);
    if (world.below(4) == 0) evhttp_request_set_on_complete_cb(request, on_complete, self);
    if (world.held_ == nullptr && world.left_ == nullptr && world.below(2) == 0) {
      world.held_ = request;
      world.has_begun_ = false;
      return world.act_inside();
    }
    switch (world.below(8)) {
      case 0:
        return evhttp_connection_free(evhttp_request_get_connection(request));
      case 1:
        return evhttp_cancel_request(request);
      case 2:
        return evhttp_send_error(request, 500 + world.below(4), nullptr);
      default:
        reply_with_text(request);
        return world.act_inside();
    }
  }

  static void on_complete(evhttp_request*, void* self) { static_cast<World*>(self)->act_inside(); }

  // When the client closes, a response in progress belongs to the program.
  static void on_server_close(evhttp_connection* connection, void* self) {
    auto& world = *static_cast<World*>(self);
    if (world.held_ != nullptr) {
      evhttp_connection* its = evhttp_request_get_connection(world.held_);
      if (its == nullptr) world.left_ = world.held_;
      if (its == nullptr || its == connection) world.held_ = nullptr;
    }
    world.act_inside();
  }

  void answer_held() {
    if (left_ != nullptr) {
      evhttp_request* request = left_;
      left_ = nullptr;
      return evhttp_send_reply_end(request);
    }
    evhttp_request* request = held_;
    if (request == nullptr) return;
    switch (below(8)) {
      case 0:
        held_ = nullptr;
        return evhttp_request_free(request);
      case 1:
        return evhttp_connection_free(evhttp_request_get_connection(request));
      case 2:
      case 3:
      case 4:
        if (has_begun_) return send_piece(request);
        has_begun_ = true;
        return evhttp_send_reply_start(request, HTTP_OK, "OK");
      default:
        held_ = nullptr;
        return has_begun_ ? evhttp_send_reply_end(request) : reply_with_text(request);
    }
  }

  void send_piece(evhttp_request* request) {
    evbuffer* piece = evbuffer_new();
    evbuffer_add(piece, "piece", 5);
    evhttp_send_reply_chunk_with_cb(
        request, piece,
        [](evhttp_connection*, void* self) { static_cast<World*>(self)->act_inside(); }, this);
    evbuffer_free(piece);
  }

  // ---- clients

  evhttp_connection* client_for(int number) {
    evhttp_connection*& client = clients_[number];
    if (client != nullptr) return client;
    client = evhttp_connection_base_new(base_, nullptr, "127.0.0.1", port_);
    evhttp_connection_set_closecb(
        client, [](evhttp_connection*, void* self) { static_cast<World*>(self)->act_inside(); },
        this);
    return client;
  }

  void make_ask() {
    if (asks_.size() == kAsksMost || !acts_) return;
    evhttp_connection* client = client_for(below(kClients));
    asks_.push_back(std::make_unique<Ask>(this, client, nullptr));
    Ask* ask = asks_.back().get();
    ask->request = evhttp_request_new(on_done, ask);
    evhttp_request* request = ask->request;
    if (below(2) == 0) evhttp_request_set_chunked_cb(request, on_chunk);
    if (below(2) == 0) evhttp_request_set_header_cb(request, on_header);
    if (below(2) == 0) evhttp_request_set_error_cb(request, on_error);
    if (below(4) == 0) evhttp_add_header(request->output_headers, "Connection", "close");
    const bool has_body = below(3) == 0;
    if (has_body) evbuffer_add(request->output_buffer, "body", 4);
    if (has_body && below(2) == 0) {
      evhttp_add_header(request->output_headers, "Expect", "100-continue");
    }
    evhttp_make_request(client, request, has_body ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, "/");
  }

  void cancel() {
    for (const auto& ask : asks_) {
      if (ask->request == nullptr || below(4) != 0) continue;
      evhttp_request* request = ask->request;
      ask->request = nullptr;
      return below(2) == 0 ? evhttp_cancel_request(request) : evhttp_request_free(request);
    }
  }

  // The requests of this client end without a callback.
  void forget_asks(const evhttp_connection* client) {
    for (const auto& ask : asks_) {
      if (ask->client == client) ask->request = nullptr;
    }
  }

  void free_client(evhttp_connection*& slot) {
    evhttp_connection* client = slot;
    slot = nullptr;
    if (client == nullptr) return;
    forget_asks(client);
    evhttp_connection_free(client);
  }

  // It is freed in its own callback.
  void end_client() {
    evhttp_connection*& slot = clients_[below(kClients)];
    evhttp_connection* client = slot;
    slot = nullptr;
    if (client == nullptr) return;
    for (const auto& ask : asks_) {
      if (ask->client != client || ask->request == nullptr) continue;
      return evhttp_connection_free_on_completion(client);
    }
    evhttp_connection_free(client);
  }

  static int on_header(evhttp_request*, void* arg) {
    World& world = *static_cast<Ask*>(arg)->world;
    world.act_inside();
    return world.below(6) - 1;
  }
  static void on_chunk(evhttp_request*, void* arg) { static_cast<Ask*>(arg)->world->act_inside(); }
  static void on_error(evhttp_request_error, void* arg) {
    auto& ask = *static_cast<Ask*>(arg);
    ask.request = nullptr;
    ask.world->act_inside();
  }
  static void on_done(evhttp_request* request, void* arg) {
    auto& ask = *static_cast<Ask*>(arg);
    World& world = *ask.world;
    ask.request = nullptr;
    ++world.answered_;
    if (request != nullptr && world.below(4) == 0) {
      evhttp_request_own(request);
      if (world.below(2) == 0) {
        evhttp_request_free(request);
      } else {
        world.kept_.push_back(request);
      }
    }
    world.act_inside();
  }

  void free_kept() {
    if (kept_.empty()) return;
    evhttp_request* request = kept_.back();
    kept_.pop_back();
    evhttp_request_free(request);
  }

  // ---- bytes

  void send_raw() {
    static constexpr std::string_view kTexts[] = {
        "GET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 60\r\n\r\n",
        "HEAD / HT",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "junk\r\n",
        "TP/1.0\r\n\r\n"};
    if (raw_ < 0) raw_ = connect_to(port_);
    const std::string_view text = kTexts[below(6)];
    ::send(raw_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (below(3) != 0) return;
    ::close(raw_);
    raw_ = -1;
  }

  std::mt19937 random_;
  event_base* base_;
  evhttp* server_ = nullptr;
  std::uint16_t port_ = 0;
  evhttp_request* held_ = nullptr;  // To be answered later.
  evhttp_request* left_ = nullptr;  // The request whose client has closed.
  bool has_begun_ = false;
  evhttp_connection* clients_[kClients] = {};
  std::vector<std::unique_ptr<Ask>> asks_;
  std::vector<evhttp_request*> kept_;
  int raw_ = -1;
  int depth_ = 0;
  int answered_ = 0;
  bool acts_ = true;
};

TEST(Evhttp, AllowsCallbacksToFreeAnyObject) {
  const char* more = std::getenv("SPATE_EVHTTP_SEEDS");
  const int seeds = more != nullptr ? std::atoi(more) : 60;
  int answered = 0;
  std::signal(SIGPIPE, SIG_IGN);  // Programs with libevent do the same.
  for (int seed = 1; seed <= seeds; ++seed) {
    World world(static_cast<unsigned>(seed));
    world.run();
    answered += world.answered();
  }
  EXPECT_GT(answered, seeds);
}

}  // namespace
