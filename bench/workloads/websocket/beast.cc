// Boost.Beast: websocket::stream on a tcp_stream; async_read of a message, async_write of its echo,
// as in its documentation's asynchronous server; on an io_context for one thread, with its timeouts
// for servers.
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <boost/beast/websocket.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "harness/server.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using asio::ip::tcp;

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : socket_(std::move(socket)) {
    socket_.set_option(websocket::stream_base::timeout::suggested(beast::role_type::server));
    socket_.binary(true);
    socket_.auto_fragment(false);
  }

  void start(std::vector<std::shared_ptr<Session>>& told) {
    http::async_read(socket_.next_layer(), buffer_, *request_,
                     [self = shared_from_this(), &told](beast::error_code error, std::size_t) {
                       if (!error) self->accept(told);
                     });
  }
  void send(asio::const_buffer bytes) {
    socket_.async_write(bytes, [self = shared_from_this()](beast::error_code, std::size_t) {});
  }

 private:
  void accept(std::vector<std::shared_ptr<Session>>& told) {
    if (request_->target() == "/tell") {
      told_ = &told;
      place_ = told.size();
      told.push_back(shared_from_this());
    }
    socket_.async_accept(*request_, [self = shared_from_this()](beast::error_code error) {
      self->request_.reset();
      if (!error) self->read();
    });
  }
  void read() {
    socket_.async_read(buffer_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (error) return self->leave();
      self->told_ == nullptr ? self->echo() : self->tell();
    });
  }
  // The last one takes its place.
  void leave() {
    if (told_ == nullptr) return;
    told_->back()->place_ = place_;
    std::swap((*told_)[place_], told_->back());
    told_->pop_back();
  }
  // The next message arrives when all have received this one.
  void tell() {
    std::swap(last_, buffer_);
    buffer_.consume(buffer_.size());
    for (const auto& each : *told_) each->send(last_.data());
    read();
  }
  void echo() {
    socket_.async_write(buffer_.data(),
                        [self = shared_from_this()](beast::error_code error, std::size_t) {
                          if (error) return;
                          self->buffer_.consume(self->buffer_.size());
                          self->read();
                        });
  }

  websocket::stream<beast::tcp_stream> socket_;
  beast::flat_buffer buffer_;
  beast::flat_buffer last_;
  std::optional<http::request<http::empty_body>> request_{std::in_place};
  std::vector<std::shared_ptr<Session>>* told_ = nullptr;
  std::size_t place_ = 0;  // In it.
};

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally&) : context_(1), acceptor_(context_) {
    acceptor_.assign(tcp::v4(), socket);
    accept();
  }

  void run() { context_.run(); }
  static void version() { bench_version(BOOST_BEAST_VERSION_STRING, nullptr); }

 private:
  void accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (!error) {
        socket.set_option(tcp::no_delay(true));
        std::make_shared<Session>(std::move(socket))->start(told_);
      }
      accept();
    });
  }

  asio::io_context context_;
  tcp::acceptor acceptor_;
  std::vector<std::shared_ptr<Session>> told_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
