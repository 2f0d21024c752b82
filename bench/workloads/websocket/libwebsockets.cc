// libwebsockets on its own loop: a message is gathered, and sent back in the callback for
// writability. A message for all connections is stored once, as in its examples. Its buffers are as
// large as the largest message, and compression is off.
#include <libwebsockets.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/server.h"

namespace {

constexpr std::size_t kLargest = 64 * 1024;

// LWS_PRE bytes in front of the message are the library's.
struct Session {
  std::vector<unsigned char>* message;
  bool tells;     // Its messages go to all connections.
  bool has_told;  // The current message was sent to this one.
};

std::vector<unsigned char> told;

bool is_for_all(lws* socket) {
  char target[16] = {};
  return lws_hdr_copy(socket, target, sizeof target, WSI_TOKEN_GET_URI) > 0 &&
         std::string_view(target) == "/tell";
}

int write(lws* socket, std::vector<unsigned char>& message) {
  const int sent =
      lws_write(socket, message.data() + LWS_PRE, message.size() - LWS_PRE, LWS_WRITE_BINARY);
  return sent < 0 ? -1 : 0;
}

void on_message(lws* socket, Session& session) {
  if (!session.tells) {
    lws_callback_on_writable(socket);
    return;
  }
  told.swap(*session.message);
  session.message->resize(LWS_PRE);
  const lws_protocols* protocol = lws_get_protocol(socket);
  lws_callback_all_protocol(lws_get_context(socket), protocol, LWS_CALLBACK_USER);
}

int on_event(lws* socket, lws_callback_reasons reason, void* user, void* bytes, std::size_t size) {
  auto* session = static_cast<Session*>(user);
  switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
      session->message = new std::vector<unsigned char>(LWS_PRE);
      session->tells = is_for_all(socket);
      session->has_told = true;
      break;
    case LWS_CALLBACK_CLOSED:
      delete session->message;
      break;
    case LWS_CALLBACK_RECEIVE: {
      const auto* from = static_cast<const unsigned char*>(bytes);
      session->message->insert(session->message->end(), from, from + size);
      if (lws_is_final_fragment(socket) && lws_remaining_packet_payload(socket) == 0)
        on_message(socket, *session);
      break;
    }
    case LWS_CALLBACK_USER:
      if (session == nullptr) break;  // The listener.
      session->has_told = false;
      lws_callback_on_writable(socket);
      break;
    case LWS_CALLBACK_SERVER_WRITEABLE: {
      if (session->tells && !std::exchange(session->has_told, true)) return write(socket, told);
      std::vector<unsigned char>& message = *session->message;
      if (message.size() == LWS_PRE) break;
      const int result = write(socket, message);
      message.resize(LWS_PRE);
      return result;
    }
    default:
      break;
  }
  return 0;
}

class Server {
 public:
  Server(int socket, const ServerOptions&, Tally&) {
    lws_set_log_level(0, nullptr);
    static lws_protocols protocols[2] = {};
    protocols[0].name = "echo";
    protocols[0].callback = on_event;
    protocols[0].per_session_data_size = sizeof(Session);
    protocols[0].rx_buffer_size = kLargest;
    lws_context_creation_info info = {};
    info.port = bench_give_up(socket);
    info.iface = "127.0.0.1";
    info.protocols = protocols;
    context_ = lws_create_context(&info);
    if (context_ == nullptr) bench_die("lws_create_context");
  }

  void run() {
    while (lws_service(context_, 0) >= 0) continue;
  }
  static void version() { bench_version(lws_get_library_version(), nullptr); }

 private:
  lws_context* context_;
};

}  // namespace

int main(int argc, char** argv) { return ServerProgram<Server>::main(argc, argv, SOCK_STREAM); }
