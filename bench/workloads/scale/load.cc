// The client of scale_plain, scale_http, scale_websocket and scale_topics: --kind is `plain`,
// `http`, `websocket` or `topics`, in crowd.h the phases of each. A response has the length of the
// first one, so only bytes are counted; with --verify 1 they are compared.
#include <string_view>

#include "workloads/scale/crowd.h"
#include "workloads/websocket/message.h"

namespace {

constexpr std::size_t kMessage = 64;

// The bytes of a protocol. A response of size 0 is learned.
struct Protocol {
  std::string hello{};  // Empty: there is no handshake.
  std::string request;
  std::string response;
  std::size_t hello_size = 0, response_size = 0;
};

Protocol protocol_of(std::string_view kind) {
  const std::string message(bench_pattern(1, 0), kMessage);
  if (kind == "plain") return {.hello = {}, .request = message, .response = message};
  if (kind == "http")
    return {.hello = {},
            .request = "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n\r\n",
            .response = "Hello, World!"};
  if (kind != "websocket" && kind != "topics") ServerProcess::fail("there is no such --kind");
  // A mask of zeros leaves the message as it is.
  return {.hello = handshake_for(kind == "topics" ? "/tell" : "/echo"),
          .request = frame_head(kMessage, 0x80) + std::string(4, '\0') + message,
          .response = frame_head(kMessage) + message};
}

template <bool IsTopic>
class BareLink {
 public:
  struct Talk {
    int fd = -1;
    std::uint32_t awaited = 0;
    bool is_asked = false, is_greeting = false;
    std::uint64_t asked_at = 0;
  };
  static constexpr bool kBroadcasts = IsTopic;

  BareLink(std::string_view kind, bool verify, const sockaddr_in& to)
      : protocol_(protocol_of(kind)),
        probe_hello_(IsTopic ? handshake_for("/echo") : protocol_.hello),
        verify_(verify) {
    learn(to);
  }

  void begin(Talk& talk, bool is_probe) {
    if (protocol_.hello.empty()) return ask(talk);
    talk.is_greeting = talk.is_asked = true;
    talk.awaited = std::uint32_t(protocol_.hello_size);
    send_all(talk, is_probe ? probe_hello_ : protocol_.hello);
  }

  void ask(Talk& talk) {
    expect(talk);
    send_all(talk, protocol_.request);
  }
  void expect(Talk& talk) {
    talk.is_asked = true;
    talk.awaited = std::uint32_t(protocol_.response_size);
  }

  bool go_on(Talk& talk) {
    const ssize_t count = recv(talk.fd, room_.data(), room_.size(), 0);
    if (count < 0 && errno == EAGAIN) return false;
    if (count <= 0) ServerProcess::fail("a connection ends before its response does");
    if (std::size_t(count) > talk.awaited) ServerProcess::fail("a response is too long");
    talk.awaited -= std::uint32_t(count);
    if (!talk.is_greeting && verify_)
      verify(talk, std::string_view(room_.data(), std::size_t(count)));
    if (talk.awaited > 0) return false;
    if (!talk.is_greeting) return true;
    talk.is_greeting = false;
    if (IsTopic) return true;  // A request would be sent to all.
    ask(talk);
    return false;
  }

  void reset(Talk& talk) { bench_reset(talk.fd); }

 private:
  static void send_all(Talk& talk, const std::string& bytes) {
    if (send(talk.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != ssize_t(bytes.size()))
      bench_die("send");
  }

  // The end of the response is the same for all.
  void verify(const Talk& talk, std::string_view bytes) const {
    const std::size_t end =
        protocol_.response.size() - std::min<std::size_t>(talk.awaited, protocol_.response.size());
    const std::size_t size = std::min(end, bytes.size());
    if (bytes.substr(bytes.size() - size) != protocol_.response.substr(end - size, size))
      ServerProcess::fail("a response is not what was requested");
  }

  // Has one request answered on a connection that blocks.
  void learn(const sockaddr_in& to) {
    const int fd = bench_connect(to);
    if (fcntl(fd, F_SETFL, 0) != 0) bench_die("fcntl");
    Talk talk{.fd = fd};
    if (!protocol_.hello.empty()) {
      send_all(talk, probe_hello_);
      std::string answer;
      while (!answer.ends_with("\r\n\r\n")) receive(fd, answer);
      if (!answer.starts_with("HTTP/1.1 101 ") || !answer.contains(kAccepted))
        ServerProcess::fail("the server does not accept WebSockets");
      protocol_.hello_size = answer.size();
    }
    send_all(talk, protocol_.request);
    std::string answer;
    while (!answer.ends_with(protocol_.response)) receive(fd, answer);
    protocol_.response_size = answer.size();
    bench_reset(fd);
  }

  void receive(int fd, std::string& answer) {
    const ssize_t count = recv(fd, room_.data(), room_.size(), 0);
    if (count <= 0) ServerProcess::fail("the connection ends before the first response does");
    answer.append(room_.data(), std::size_t(count));
  }

  Protocol protocol_;
  const std::string probe_hello_;
  const bool verify_;
  std::array<char, 4096> room_;
};

template <class Link>
int run(int argc, char** argv, const char* kind) {
  const CrowdOptions options(argc, argv);
  Common& common = *Common::make();
  CrowdProcesses::run(options.processes, [&](std::size_t process) {
    CrowdArguments arguments(argc, argv, process);
    ServerProcess server(arguments.count(), arguments.words(), Placement::apart);
    Link link(kind, bench_number(argc, argv, "verify", 0) != 0, server.address(0));
    Crowd<Link>(link, server, options, process, common).run();
    server.end();
  });
  CrowdReport(options, common).print(Link::kBroadcasts);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* kind = bench_text(argc, argv, "kind", "plain");
  return std::string_view(kind) == "topics" ? run<BareLink<true>>(argc, argv, kind)
                                            : run<BareLink<false>>(argc, argv, kind);
}
