// The client of tls. --kind selects the operation, on --connections at once:
//
//   full      a handshake; reads the tickets for resumption, resets the connection, makes a new one
//   resumed   the same, each time with the last ticket; the server must resume
//   echo64    sends 64 bytes and waits for their echo, over and over
//   echo1k    the same with 1 KiB
//   echo16k   the same with 16 KiB
//   bulk      sends 64 bytes and receives 1 MiB
//   idle      sends 64 bytes once, receives them, then silence: measures the server's memory
//
// TLS 1.3 with AES-128-GCM and X25519 only. The client checks that the server chose these, and that
// it shows the certificate of --certificate DIRECTORY, or the one made here. Runs for
// --milliseconds, or until each connection has done --operations. With --verify 1 the echo is
// compared. With --make DIRECTORY it makes a certificate and does nothing else.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "harness/load.h"
#include "workloads/tls/certificate.h"
#include "workloads/tls/server.h"

namespace {

constexpr std::size_t kRoom = 64 * 1024;
// OpenSSL's default: two tickets after a full handshake, one after a resumed one.
constexpr unsigned kTickets = 2, kTicketsResumed = 1;

struct Kind {
  std::string_view name;
  std::size_t says = 0, hears = 0;  // For an operation. Nothing: it is a handshake.
  bool is_resumed = false;

  bool is_handshake() const { return says == 0; }
};

constexpr Kind kKinds[] = {
    {.name = "full"},
    {.name = "resumed", .is_resumed = true},
    {.name = "echo64", .says = 64, .hears = 64},
    {.name = "echo1k", .says = 1024, .hears = 1024},
    {.name = "echo16k", .says = 16384, .hears = 16384},
    {.name = "bulk", .says = kAskSize, .hears = kBulkSize},
    {.name = "idle", .says = 64, .hears = 64},
};

const Kind& kind_of(const std::string& name) {
  const auto* found = std::ranges::find(kKinds, name, &Kind::name);
  if (found == std::end(kKinds)) ServerProcess::fail("there is no such --kind");
  return *found;
}

// Our arguments, and where the certificate is.
class Arguments {
 public:
  Arguments(int argc, char** argv, const CertificateFiles& files)
      : texts_{"--chain", files.chain(), "--key", files.key()}, words_(argv, argv + argc) {
    for (std::string& text : texts_) words_.push_back(text.data());
    words_.push_back(nullptr);
  }
  int count() const { return int(words_.size()) - 1; }
  char** words() { return words_.data(); }

 private:
  std::string texts_[4];
  std::vector<char*> words_;
};

// One connection, and its successors.
struct Talk {
  int fd = -1;
  SSL* ssl = nullptr;
  SSL_SESSION* session = nullptr;  // To resume.
  bool is_secured = false;
  unsigned tickets = 0;
  std::size_t awaited = 0;  // Bytes of the reply not received yet.
  std::uint64_t done = 0;
};

SSL_CTX* make_context() {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set1_groups_list(context, "X25519");
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, [](SSL* ssl, SSL_SESSION* session) {
    Talk& talk = *static_cast<Talk*>(SSL_get_app_data(ssl));
    ++talk.tickets;
    SSL_SESSION_free(std::exchange(talk.session, session));
    return 1;
  });
  return context;
}

class Load {
 public:
  Load(int argc, char** argv)
      : kind_(kind_of(bench_text(argc, argv, "kind", "full"))),
        connections_(std::size_t(bench_number(argc, argv, "connections", 1))),
        milliseconds_(bench_number(argc, argv, "milliseconds", 300)),
        limit_(std::uint64_t(bench_number(argc, argv, "operations", 0))),
        until_rest_ms_(bench_number(argc, argv, "rest_ms", kUntilRestMs)),
        verify_(bench_number(argc, argv, "verify", 0) != 0),
        files_(bench_text(argc, argv, "certificate", "")),
        arguments_(argc, argv, files_),
        server_(arguments_.count(), arguments_.words(), Placement::apart),
        to_(server_.address(0)),
        context_(make_context()),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        room_(new char[kRoom]),
        talks_(connections_) {}

  int run() {
    MemoryGrowth growth(server_);
    if (kind_.is_resumed) learn_to_resume();
    if (!kind_.is_handshake()) secure_all();
    if (kind_.name == "idle") {
      begin();
      turn_until([this] { return done_ == connections_; });
      bench_sleep_ms(until_rest_ms_);
      growth.report(connections_);
    } else {
      limit_ == 0 ? run_for_a_time() : run_to_the_limit();
      report_speed();
    }
    return finish();
  }

 private:
  // Every connection needs a ticket, so each makes a full handshake before anything is counted.
  void learn_to_resume() {
    is_learning_ = true;
    for (Talk& talk : talks_) open(talk);
    turn_until([this] { return done_ == connections_; });
    is_learning_ = false;
    done_ = operations_ = 0;
    for (Talk& talk : talks_) talk.done = 0;
  }

  // Opens all connections, which are then silent until begin().
  void secure_all() {
    for (Talk& talk : talks_) open(talk);
    turn_until([this] { return secured_ >= connections_; });
  }

  // Starts the first operation of each connection. Nothing is done before it is measured.
  void begin() {
    for (Talk& talk : talks_) kind_.is_handshake() ? open(talk) : ask(talk);
  }

  bool may_resume() const { return kind_.is_resumed && !is_learning_; }
  unsigned awaited_tickets() const { return may_resume() ? kTicketsResumed : kTickets; }

  void open(Talk& talk) {
    talk.fd = bench_connect(to_);
    talk.ssl = SSL_new(context_);
    talk.is_secured = false;
    talk.tickets = 0;
    SSL_set_app_data(talk.ssl, &talk);
    SSL_set_fd(talk.ssl, talk.fd);
    SSL_set_connect_state(talk.ssl);
    if (may_resume()) SSL_set_session(talk.ssl, talk.session);
    ++opened_;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &talk;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, talk.fd, &event) != 0) bench_die("epoll_ctl");
    go_on(talk);
  }

  // A closed one says nothing: OpenSSL would never resume its session.
  void close_talk(Talk& talk) {
    SSL_set_shutdown(talk.ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(std::exchange(talk.ssl, nullptr));
    bench_reset(std::exchange(talk.fd, -1));
  }

  void go_on(Talk& talk) {
    if (!talk.is_secured && !shake_hands(talk)) return;
    hear(talk);
  }

  bool shake_hands(Talk& talk) {
    const int result = SSL_do_handshake(talk.ssl);
    if (result != 1 && SSL_get_error(talk.ssl, result) == SSL_ERROR_WANT_READ) return false;
    if (result != 1) ServerProcess::fail("a handshake fails");
    talk.is_secured = true;
    ++secured_;
    if (SSL_version(talk.ssl) != TLS1_3_VERSION ||
        SSL_CIPHER_get_id(SSL_get_current_cipher(talk.ssl)) != TLS1_3_CK_AES_128_GCM_SHA256)
      ServerProcess::fail("another version or cipher than was offered");
    if ((SSL_session_reused(talk.ssl) == 1) != may_resume())
      ServerProcess::fail("a session was resumed, or not, against what was wanted");
    if (X509_cmp(SSL_get0_peer_certificate(talk.ssl), files_.certificate()) != 0)
      ServerProcess::fail("the server shows another certificate");
    return true;
  }

  void ask(Talk& talk) {
    talk.awaited = kind_.hears;
    const auto number = std::size_t(&talk - talks_.data());
    if (SSL_write(talk.ssl, bench_pattern(number, 0), int(kind_.says)) != int(kind_.says))
      ServerProcess::fail("the kernel takes no more");
  }

  // Until nothing is left: tickets come here as well.
  void hear(Talk& talk) {
    for (;;) {
      const int count = SSL_read(talk.ssl, room_.get(), kRoom);
      if (count <= 0 && SSL_get_error(talk.ssl, count) != SSL_ERROR_WANT_READ)
        ServerProcess::fail("a connection ends before its answer does");
      if (count > 0) note(talk, std::size_t(count));
      if (kind_.is_handshake() && talk.tickets >= awaited_tickets()) return on_greeted(talk);
      if (count <= 0) return;
    }
  }

  void note(Talk& talk, std::size_t count) {
    if (count > talk.awaited) ServerProcess::fail("an answer is too long");
    if (verify_) verify(talk, count);
    bytes_ += count;
    talk.awaited -= count;
    if (talk.awaited > 0) return;
    count_one(talk);
    const bool is_done = kind_.name == "idle" || (limit_ > 0 && talk.done >= limit_);
    is_done ? void(++done_) : ask(talk);
  }

  void verify(const Talk& talk, std::size_t count) const {
    const auto number = std::size_t(&talk - talks_.data());
    const char* expected = kind_.name == "bulk" ? bench_bulk().data()
                                                : bench_pattern(number, kind_.hears - talk.awaited);
    if (memcmp(room_.get(), expected, count) != 0)
      ServerProcess::fail("other bytes came back than were sent");
  }

  void on_greeted(Talk& talk) {
    tickets_ += talk.tickets;
    close_talk(talk);
    count_one(talk);
    const bool is_done = is_learning_ || (limit_ > 0 && talk.done >= limit_);
    is_done ? void(++done_) : open(talk);
  }

  void count_one(Talk& talk) {
    ++talk.done;
    ++operations_;
  }

  template <class Over>
  void turn_until(Over over) {
    std::vector<epoll_event> events(1024);
    while (!over()) {
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 20);
      for (int i = 0; i < count; ++i) go_on(*static_cast<Talk*>(events[std::size_t(i)].data.ptr));
    }
  }

  void run_to_the_limit() {
    measure([this] {
      begin();
      turn_until([this] { return done_ == connections_; });
    });
  }

  void run_for_a_time() {
    const auto passes = [this](long milliseconds) {
      const std::uint64_t end = bench_now_ns() + std::uint64_t(milliseconds) * 1'000'000;
      const std::uint64_t before = operations_;
      turn_until([&] { return bench_now_ns() >= end && operations_ > before; });
    };
    begin();
    passes(milliseconds_ / 4);
    measure([&] { passes(milliseconds_); });
  }

  template <class Function>
  void measure(Function function) {
    const std::uint64_t before = operations_, begin_processor = server_.processor_ns();
    const std::uint64_t begin = bench_now_ns();
    function();
    seconds_ = double(bench_now_ns() - begin) * 1e-9;
    spent_ns_ = server_.processor_ns() - begin_processor;
    measured_ = operations_ - before;
  }

  void report_speed() const {
    const auto count = double(measured_);
    bench_metric("processor_us", "us", double(spent_ns_) / 1e3 / count);
    bench_metric("operations_per_s", "1/s", count / seconds_);
    if (!kind_.is_handshake())
      bench_metric("mib_per_s", "MiB/s", count * double(kind_.hears) / 1048576.0 / seconds_);
  }

  int finish() {
    for (Talk& talk : talks_)
      if (talk.fd >= 0) close_talk(talk);
    server_.end();
    if (limit_ > 0 || kind_.name == "idle") {
      bench_work("operations", operations_);
      bench_work("connections", opened_);
      bench_work("tickets", tickets_);
      bench_work("bytes", bytes_);
    }
    bench_ops("operation", operations_);
    return 0;
  }

  const Kind& kind_;
  const std::size_t connections_;
  const long milliseconds_;
  const std::uint64_t limit_;
  const long until_rest_ms_;
  const bool verify_;
  const CertificateFiles files_;
  Arguments arguments_;
  ServerProcess server_;
  const sockaddr_in to_;
  SSL_CTX* const context_;
  const int epoll_;
  const std::unique_ptr<char[]> room_;
  std::vector<Talk> talks_;
  bool is_learning_ = false;
  std::uint64_t operations_ = 0, opened_ = 0, tickets_ = 0, bytes_ = 0;
  std::uint64_t measured_ = 0, spent_ns_ = 0;
  std::size_t secured_ = 0, done_ = 0;
  double seconds_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string made = bench_text(argc, argv, "make", "");
  if (!made.empty()) return CertificateFiles::make_in(made), 0;
  return Load(argc, argv).run();
}
