// WebSocket++ on Boost's Asio, an io_context for one thread, without its logs and without
// compression: the message that was received is sent, back or to all, as in its examples.
#include <boost/asio/ip/tcp.hpp>
#include <string_view>
#include <vector>
#include <websocketpp/config/asio_no_tls.hpp>
#include <websocketpp/server.hpp>

#include "harness/server.h"

namespace {

struct Config : websocketpp::config::asio {
  static const websocketpp::log::level elog_level = websocketpp::log::elevel::none;
  static const websocketpp::log::level alog_level = websocketpp::log::alevel::none;
};
using Endpoint = websocketpp::server<Config>;
using Handle = websocketpp::connection_hdl;

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally&) : context_(1) {
    endpoint_.init_asio(&context_);
    endpoint_.clear_access_channels(websocketpp::log::alevel::all);
    endpoint_.clear_error_channels(websocketpp::log::elevel::all);
    endpoint_.set_listen_backlog(4096);
    endpoint_.set_socket_init_handler([](Handle, boost::asio::ip::tcp::socket& accepted) {
      boost::system::error_code ignored;
      accepted.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    });
    endpoint_.set_open_handler([this](Handle handle) { open(handle); });
    endpoint_.set_message_handler(
        [this](Handle handle, Endpoint::message_ptr message) { send(handle, message); });
    const std::uint16_t port = bench_give_up(socket);
    endpoint_.set_reuse_addr(true);
    endpoint_.listen(boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), port));
    endpoint_.start_accept();
  }

  void run() { context_.run(); }
  static void version() { bench_version("0.8.2", nullptr); }

 private:
  void open(Handle handle) {
    const Endpoint::connection_ptr connection = endpoint_.get_con_from_hdl(handle);
    if (connection->get_resource() == "/tell") told_.push_back(connection);
  }

  void send(Handle handle, Endpoint::message_ptr message) {
    const Endpoint::connection_ptr from = endpoint_.get_con_from_hdl(handle);
    if (from->get_resource() != "/tell") {
      from->send(message);
      return;
    }
    for (const Endpoint::connection_ptr& each : told_) each->send(message);
  }

  boost::asio::io_context context_;
  Endpoint endpoint_;
  std::vector<Endpoint::connection_ptr> told_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
