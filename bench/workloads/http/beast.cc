// Boost.Beast: async_read of a request, async_write of an answer, a session for each connection, as
// in its documentation's asynchronous server; on an io_context for one thread.
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <ctime>
#include <memory>
#include <optional>

#include "workloads/http/server.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

// Once a second is often enough.
beast::string_view date() {
  static char text[32];
  static time_t second = 0;
  const time_t now = time(nullptr);
  if (now != second) {
    second = now;
    tm parts;
    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  }
  return text;
}

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : stream_(std::move(socket)) {}

  void read() {
    parser_.emplace();
    parser_->body_limit(kUploadSize);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->answer();
                     });
  }

 private:
  void answer() {
    const auto& request = parser_->get();
    if (request.target() == "/file") return send_file();
    response_ = http::response<http::string_body>(http::status::ok, request.version());
    if (request.target() == "/hello")
      response_.body() = kHello;
    else if (request.target() == "/page")
      response_.body() = bench_page();
    else
      response_.body() = std::to_string(request.body().size());
    send(response_);
  }

  template <class Body>
  void send(http::response<Body>& response) {
    response.set(http::field::date, date());
    response.set(http::field::content_type, "text/plain; charset=utf-8");
    response.keep_alive(parser_->get().keep_alive());
    response.prepare_payload();
    http::async_write(stream_, response,
                      [self = shared_from_this(), last = response.need_eof()](
                          beast::error_code error, std::size_t) {
                        if (error) return;
                        if (last)
                          self->stream_.shutdown(tcp::socket::shutdown_send, error);
                        else
                          self->read();
                      });
  }

  void send_file() {
    http::file_body::value_type file;
    beast::error_code error;
    const std::string path = "/proc/self/fd/" + std::to_string(bench_file());
    file.open(path.c_str(), beast::file_mode::scan, error);
    file_.emplace(http::response<http::file_body>(
        std::piecewise_construct, std::make_tuple(std::move(file)),
        std::make_tuple(http::status::ok, parser_->get().version())));
    send(*file_);
  }

  tcp::socket stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response<http::file_body>> file_;
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
        std::make_shared<Session>(std::move(socket))->read();
      }
      accept();
    });
  }

  asio::io_context context_;
  tcp::acceptor acceptor_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
