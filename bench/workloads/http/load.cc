// The client of http: each connection sends a request, waits for the whole response, and sends the
// next. --kind selects the request:
//
//   keepalive   GET /hello, 13 bytes, over and over
//   pipelined   the same, sixteen at a time
//   ten         the same, ten on a connection, then a new connection
//   close       the same, one on a connection, which the server closes
//   body20k     GET /page, 20 KiB      file1m   GET /file, 1 MiB
//   upload1m    POST /upload, 1 MiB; the response is how many bytes were received
//   idle        GET /hello once on each connection, then silence: measures the server's memory
//
// The first response is parsed. All that follow have the same length, so only their bytes are
// counted. With --verify 1 each is compared with the first, except the date.
//
// Runs for --milliseconds, or until each connection has had --requests responses.
#include <algorithm>
#include <memory>

#include "harness/load.h"
#include "workloads/http/server.h"

namespace {

constexpr std::size_t kRoom = 256 * 1024;

struct Kind {
  std::string_view name;
  std::string_view target;
  std::uint64_t at_once = 1;
  std::uint64_t on_a_connection = 0;  // 0: all.
  std::uint64_t upload = 0;
  bool closes = false;
  bool idles = false;
};

constexpr Kind kKinds[] = {
    {.name = "keepalive", .target = "/hello"},
    {.name = "pipelined", .target = "/hello", .at_once = 16},
    {.name = "ten", .target = "/hello", .on_a_connection = 10},
    {.name = "close", .target = "/hello", .on_a_connection = 1, .closes = true},
    {.name = "body20k", .target = "/page"},
    {.name = "file1m", .target = "/file"},
    {.name = "upload1m", .target = "/upload", .upload = kUploadSize},
    {.name = "idle", .target = "/hello", .idles = true},
};

const Kind& kind_of(const std::string& name) {
  const auto* found = std::ranges::find(kKinds, name, &Kind::name);
  if (found == std::end(kKinds)) ServerProcess::fail("there is no such --kind");
  return *found;
}

std::string request_of(const Kind& kind) {
  std::string text = kind.upload > 0 ? "POST " : "GET ";
  text += std::string(kind.target) + " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: load/1\r\n";
  text += "Accept: */*\r\n";
  if (kind.closes) text += "Connection: close\r\n";
  if (kind.upload > 0) text += "Content-Length: " + std::to_string(kind.upload) + "\r\n";
  return text + "\r\n" + std::string(kind.upload, 'u');
}

std::string body_of(const Kind& kind) {
  if (kind.target == "/page") return bench_page();
  if (kind.target == "/file") return std::string(kFileSize, 'f');
  return kind.upload > 0 ? std::to_string(kUploadSize) : std::string(kHello);
}

// Its date is made the same for all.
std::string without_date(std::string answer) {
  std::size_t at = answer.find("\r\nDate: ");
  if (at == std::string::npos) at = answer.find("\r\ndate: ");
  if (at == std::string::npos) ServerProcess::fail("an answer has no Date");
  return answer.replace(at + 8, 29, 29, '-');
}

class Load {
 public:
  Load(int argc, char** argv)
      : kind_(kind_of(bench_text(argc, argv, "kind", "keepalive"))),
        connections_(std::size_t(bench_number(argc, argv, "connections", 1))),
        milliseconds_(bench_number(argc, argv, "milliseconds", 300)),
        until_rest_ms_(bench_number(argc, argv, "rest_ms", kUntilRestMs)),
        verify_(bench_number(argc, argv, "verify", 0) != 0),
        server_(argc, argv, Placement::apart),
        to_(server_.address(0)),
        room_(new char[kRoom]) {
    for (std::uint64_t i = 0; i < kind_.at_once; ++i) request_ += request_of(kind_);
    limit_ = std::uint64_t(bench_number(argc, argv, "requests", 0));
  }

  int run() {
    learn();
    if (kind_.idles) {
      idle();
    } else {
      open_all();
      limit_ == 0 ? run_.measure_for(milliseconds_) : run_.measure_until_done();
      report_speed();
    }
    return finish();
  }

 private:
  friend LoadRun<Load>;

  struct Talk {
    int fd = -1;
    std::uint64_t unsent = 0;   // Bytes of the request not sent yet.
    std::uint64_t awaited = 0;  // Bytes of the response not received yet.
    std::uint64_t here = 0;     // Requests on this connection.
    std::uint64_t all = 0;
    bool wants_to_send = false;
    std::string got;  // With --verify.
  };

  bool is_done() const { return done_ == connections_; }
  std::uint64_t done() const { return answers_; }

  // One request on a connection that blocks.
  void learn() {
    const int fd = bench_connect(to_);
    if (fcntl(fd, F_SETFL, 0) != 0) bench_die("fcntl");
    const std::string request = request_of(kind_);
    for (std::size_t sent = 0; sent < request.size();) {
      const ssize_t count = send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) bench_die("send");
      sent += std::size_t(count);
    }
    std::string answer;
    const std::string body = body_of(kind_);
    for (std::size_t head = std::string::npos;
         head == std::string::npos || answer.size() < head + 4 + body.size();
         head = answer.find("\r\n\r\n")) {
      const ssize_t count = recv(fd, room_.get(), kRoom, 0);
      if (count <= 0) ServerProcess::fail("the connection ends before the first answer does");
      answer.append(room_.get(), std::size_t(count));
    }
    if (!answer.starts_with("HTTP/1.1 200 ") || !answer.ends_with("\r\n\r\n" + body))
      ServerProcess::fail("the first answer is not what was asked for");
    answer_size_ = answer.size();
    answer_ = without_date(std::move(answer));
    bench_reset(fd);
  }

  void open_all() {
    talks_.resize(connections_);
    for (std::size_t i = 0; i < connections_; ++i) open(i);
  }

  void open(std::size_t i) {
    Talk& talk = talks_[i];
    talk.fd = bench_connect(to_);
    talk.here = 0;
    talk.wants_to_send = false;
    ++opened_;
    run_.add(talk.fd, i);
    ask(i);
  }

  void ask(std::size_t i) {
    Talk& talk = talks_[i];
    talk.unsent = request_.size();
    talk.awaited = answer_size_ * kind_.at_once;
    send_rest(i);
  }

  void send_rest(std::size_t i) {
    Talk& talk = talks_[i];
    while (talk.unsent > 0) {
      const char* from = request_.data() + (request_.size() - talk.unsent);
      const ssize_t count = send(talk.fd, from, talk.unsent, MSG_NOSIGNAL);
      if (count < 0 && errno == EAGAIN) break;
      if (count <= 0) bench_die("send");
      talk.unsent -= std::uint64_t(count);
    }
    if (talk.wants_to_send == (talk.unsent > 0)) return;
    talk.wants_to_send = talk.unsent > 0;
    run_.want_to_send(talk.fd, i, talk.wants_to_send);
  }

  void hear(std::size_t i) {
    Talk& talk = talks_[i];
    while (talk.awaited > 0) {
      const ssize_t count = recv(talk.fd, room_.get(), kRoom, verify_ ? 0 : MSG_TRUNC);
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) ServerProcess::fail("a connection ends before its answer does");
      if (std::uint64_t(count) > talk.awaited) ServerProcess::fail("an answer is too long");
      if (verify_) talk.got.append(room_.get(), std::size_t(count));
      talk.awaited -= std::uint64_t(count);
      if (talk.awaited > 0 && std::size_t(count) < kRoom) return;
    }
    if (talk.unsent > 0) ServerProcess::fail("an answer comes before the request is whole");
    if (verify_) compare(talk);
    on_answered(i);
  }

  void compare(Talk& talk) const {
    for (std::uint64_t i = 0; i < kind_.at_once; ++i)
      if (without_date(talk.got.substr(i * answer_size_, answer_size_)) != answer_)
        ServerProcess::fail("an answer is not like the first");
    talk.got.clear();
  }

  void on_answered(std::size_t i) {
    Talk& talk = talks_[i];
    answers_ += kind_.at_once;
    talk.here += kind_.at_once;
    talk.all += kind_.at_once;
    if (kind_.idles) return void(++done_);
    const bool is_done = limit_ > 0 && talk.all >= limit_;
    const bool is_last = kind_.on_a_connection > 0 && talk.here >= kind_.on_a_connection;
    if (is_last || is_done) {
      bench_reset(talk.fd);
      talk.fd = -1;
    }
    if (is_done)
      ++done_;
    else if (is_last)
      open(i);
    else
      ask(i);
  }

  // Measures how much the server's memory grows from one connection to all of them.
  void idle() {
    bench_sleep_ms(100);
    MemoryGrowth growth(server_);
    open_all();
    run_.until_done();
    bench_sleep_ms(until_rest_ms_);
    growth.report(connections_);
  }

  void report_speed() const {
    bench_metric("requests_per_s", "1/s", run_.per_second());
    bench_metric("processor_us", "us", run_.processor_us());
    bench_metric("mib_per_s", "MiB/s",
                 double(std::max<std::uint64_t>(answer_size_, kind_.upload)) * run_.per_second() /
                     1048576.0);
  }

  int finish() {
    for (const Talk& talk : talks_)
      if (talk.fd >= 0) bench_reset(talk.fd);
    server_.end();
    if (limit_ > 0 || kind_.idles) {
      bench_work("answers", answers_);
      bench_work("connections", opened_);
    }
    bench_ops("request", answers_);
    return 0;
  }

  const Kind& kind_;
  const std::size_t connections_;
  const long milliseconds_;
  const long until_rest_ms_;
  const bool verify_;
  ServerProcess server_;
  const sockaddr_in to_;
  LoadRun<Load> run_{*this, server_};
  const std::unique_ptr<char[]> room_;
  std::string request_;
  std::string answer_;
  std::uint64_t answer_size_ = 0;
  std::uint64_t limit_ = 0;
  std::vector<Talk> talks_;
  std::uint64_t answers_ = 0, opened_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return Load(argc, argv).run(); }
