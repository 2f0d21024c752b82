// Other implementations of TLS as peers, where installed: OpenSSL's programs, GnuTLS's, Node, Go.
// Both ways, with either version: protocols (ALPN), client certificates, resumption, new keys,
// ends.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "spate/net/process.h"
#include "spate/net/server.h"
#include "tests/support/free_port.h"
#include "tls/harness.h"

namespace spate::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

using Words = std::vector<std::string>;

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::stringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::exists(folder + "/" + program)) return true;
  }
  return false;
}

#define NEEDS(program, package) \
  if (!is_installed(program))   \
  GTEST_SKIP() << program << " is not installed (package " << package << ")"

// The connections that our server saw.
struct OthersSeen {
  std::vector<std::string> sessions{};  // "TLSv1.3 echo CN = server resumed".
  std::vector<std::error_code> ends{};
};

class OthersEcho : public Session {
 public:
  explicit OthersEcho(OthersSeen& seen) : seen_(seen) {}
  void on_open() override {
    const TlsInfo info = *tls_info(stream());
    seen_.sessions.push_back(info.version + " " + info.alpn + " " + info.subject +
                             (info.is_resumed ? " resumed" : ""));
  }
  std::size_t on_data(Bytes bytes) override {
    stream().write(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code error) override { seen_.ends.push_back(error); }

 private:
  OthersSeen& seen_;
};

class TlsOthers : public TlsTest, public ::testing::WithParamInterface<const char*> {
 protected:
  TlsOthers() {
    fs::create_directories(folder_);
    write("root", test_root().pem());
    write("chain", test_server().pem());
    write("key", test_server().key_pem());
  }
  ~TlsOthers() override { fs::remove_all(folder_); }

  std::string version() const { return GetParam(); }
  bool is_1_2() const { return version() == "TLSv1.2"; }
  std::string file(const std::string& name) const { return folder_ + "/" + name + ".pem"; }
  std::string source(const std::string& name) const {
    return fs::path(__FILE__).parent_path().string() + "/others/" + name;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }

  // ---- their program

  // Starts it, with a pipe to each side.
  void start(const std::string& program, const Words& arguments) {
    said_ = {};
    process_ = must(spawn(*loop_,
                          {.file = program,
                           .arguments = arguments,
                           .input = Stdio::pipe(),
                           .output = Stdio::pipe(),
                           .errors = Stdio::output(),
                           .kill_when_destroyed = true},
                          [this](const Child& child) { status_ = child.exit_code(); }));
    status_ = -1;
    process_.input.start(input_);
    process_.output.start(said_);
  }
  bool wait_for(const std::string& words) {
    run_until(*loop_, [&] { return has_said(words) || said_.closed_calls > 0; });
    EXPECT_TRUE(has_said(words)) << said_.received;
    return has_said(words);
  }
  bool has_said(const std::string& words) const {
    return said_.received.find(words) != std::string::npos;
  }
  void say(std::string_view words) { EXPECT_TRUE(process_.input.write(words)); }
  int wait_for_exit() {
    run_until(*loop_, [&] { return status_ >= 0 && said_.closed_calls > 0; });
    return status_;
  }
  // Returns the number after the last of these words: the port.
  std::uint16_t port_behind(const std::string& words) {
    if (!wait_for(words)) return 0;
    run_until(*loop_, [&] { return said_.received.find_first_of(" \n", end_of(words)) != ~0uL; });
    return static_cast<std::uint16_t>(std::atoi(said_.received.c_str() + end_of(words)));
  }
  std::size_t end_of(const std::string& words) const {
    return said_.received.rfind(words) + words.size();
  }

  // ---- our server, and our client

  std::string serve_echo() {
    server_ = must(
        serve<OthersEcho>(*loop_, Address::loopback_ipv4(0),
                          {.tls = server({.alpn = {"echo"},
                                          .client_check = TlsClientCheck::required,
                                          .client_ca = test_root().pem()}),
                           .on_tls_failure = [this](const TlsFailure& failure,
                                                    const Address&) { failure_ = failure.text; }},
                          std::ref(seen_)));
    return std::to_string(server_.address().port());
  }
  TlsContext our_client() {
    return client({.identity = test_server().identity(), .alpn = {"echo"}});
  }
  // Connects to `port` and sends `words` when it is connected.
  void connect_to(std::uint16_t port, std::string_view words) {
    log_ = {};
    EXPECT_FALSE(stream_.connect(*loop_, "127.0.0.1", port, our_context_, log_));
    EXPECT_TRUE(stream_.write(words));
  }
  // Both ended, in good order.
  void expect_good_ends(std::size_t count) {
    run_until(*loop_, [&] { return seen_.ends.size() == count; });
    for (const std::error_code end : seen_.ends) EXPECT_FALSE(end) << end.message();
  }
  // Sends it to a server that echoes, ends, and repeats that with a resumed session.
  void expect_echoed_twice(std::uint16_t port, const std::string& words = pattern(200'000)) {
    for (int i = 0; i < 2; ++i) {
      connect_to(port, words);
      run_until(*loop_, [&] { return log_.received.size() == words.size() || log_.error; });
      EXPECT_EQ(log_.error, std::error_code());
      const auto info = tls_info(stream_);
      ASSERT_TRUE(info);
      EXPECT_EQ(info->version, version());
      EXPECT_EQ(info->alpn, "echo");
      EXPECT_EQ(info->is_resumed, i == 1);
      stream_.end();
      run_until(*loop_, [&] { return log_.closed_calls == 1; });
      EXPECT_EQ(log_.log, "end closed ");
      EXPECT_EQ(log_.error, std::error_code());
      EXPECT_EQ(log_.received, words);
    }
  }

  const std::string folder_ = ::testing::TempDir() + "/spate_others_" + std::to_string(::getpid());
  OthersSeen seen_;
  std::string failure_;
  TlsContext our_context_ = our_client();
  Server<OthersEcho> server_;
  Stream stream_;
  Recorder log_;
  Recorder input_;
  Recorder said_;
  Process process_;
  int status_ = -1;
};

// ---- OpenSSL

class TlsOpenSsl : public TlsOthers {
 protected:
  std::string flag() const { return is_1_2() ? "-tls1_2" : "-tls1_3"; }
  void start_client(const std::string& port, const Words& more = {}) {
    Words words{"s_client",    "-connect",  "127.0.0.1:" + port,
                "-servername", "localhost", "-CAfile",
                file("root"),  "-cert",     file("chain"),
                "-key",        file("key"), "-verify_return_error",
                "-alpn",       "echo",      flag()};
    words.insert(words.end(), more.begin(), more.end());
    start("openssl", words);
  }
};

TEST_P(TlsOpenSsl, ClientReceivesEchoAndResumes) {
  NEEDS("openssl", "openssl");
  const std::string port = serve_echo();
  for (const char* use : {"-sess_out", "-sess_in"}) {
    start_client(port, {use, file("session")});
    ASSERT_TRUE(wait_for("Verify return code: 0"));
    say("hello\n");
    ASSERT_TRUE(wait_for("hello\n"));
    if (!is_1_2()) run_until(*loop_, [&] { return fs::exists(file("session")); });
    say("Q\n");
    EXPECT_EQ(wait_for_exit(), 0) << said_.received;
  }
  expect_good_ends(2);
  EXPECT_EQ(seen_.sessions,
            (Words{version() + " echo CN = server", version() + " echo CN = server resumed"}));
}

TEST_P(TlsOpenSsl, KeyUpdateSucceedsAndRenegotiationIsRefused) {
  NEEDS("openssl", "openssl");
  start_client(serve_echo());
  ASSERT_TRUE(wait_for("Verify return code: 0"));
  if (is_1_2()) {
    say("R\n");  // Renegotiates.
    wait_for_exit();
    EXPECT_TRUE(has_said("no renegotiation")) << said_.received;
    return;
  }
  for (const char* words : {"K\n", "one\n", "k\n", "two\n", "K\n", "three\n"}) {
    said_.received.clear();
    say(words);
    const bool is_command = words[1] == '\n';
    ASSERT_TRUE(wait_for(is_command ? "KEYUPDATE" : words));
  }
  say("Q\n");
  EXPECT_EQ(wait_for_exit(), 0);
  expect_good_ends(1);
}

TEST_P(TlsOpenSsl, ClientIsRefusedWithoutCertificateOrProtocol) {
  NEEDS("openssl", "openssl");
  const std::string port = serve_echo();
  start("openssl", {"s_client", "-connect", "127.0.0.1:" + port, "-CAfile", file("root"), flag()});
  run_until(*loop_, [&] { return !failure_.empty(); });
  EXPECT_EQ(failure_, "the client has shown no certificate");
  wait_for_exit();
  failure_.clear();
  start("openssl", {"s_client", "-connect", "127.0.0.1:" + port, "-alpn", "other", flag()});
  run_until(*loop_, [&] { return !failure_.empty(); });
  EXPECT_EQ(failure_, "no protocol in common (ALPN)");
  wait_for_exit();
  EXPECT_TRUE(seen_.sessions.empty());
}

TEST_P(TlsOpenSsl, ServerEchoes) {
  NEEDS("openssl", "openssl");
  start("openssl",
        {"s_server", "-accept", "127.0.0.1:0", "-rev", "-cert", file("chain"), "-key", file("key"),
         "-Verify", "2", "-CAfile", file("root"), "-verify_return_error", "-alpn", "echo", flag()});
  const std::uint16_t port = port_behind("ACCEPT 127.0.0.1:");
  for (int i = 0; i < 2; ++i) {
    connect_to(port, "hello\n");
    run_until(*loop_, [&] { return log_.received == "olleh\n" || log_.error; });
    ASSERT_FALSE(log_.error) << log_.error.message() << said_.received;
    const TlsInfo info = *tls_info(stream_);
    EXPECT_EQ(info.version + " " + info.alpn + " " + info.subject, version() + " echo CN = server");
    EXPECT_EQ(info.is_resumed, i == 1);
    stream_.write("CLOSE\n");  // Asks the peer to send close_notify.
    run_until(*loop_, [&] { return log_.closed_calls == 1; });
    EXPECT_EQ(log_.log, "end closed ");
  }
}

// ---- GnuTLS

class TlsGnuTls : public TlsOthers {
 protected:
  std::string priority() const {
    return is_1_2() ? "NORMAL:-VERS-ALL:+VERS-TLS1.2" : "NORMAL:-VERS-ALL:+VERS-TLS1.3";
  }
};

TEST_P(TlsGnuTls, ClientReceivesEchoAndResumes) {
  NEEDS("gnutls-cli", "gnutls-bin");
  const std::string port = serve_echo();
  start("gnutls-cli",
        {"--priority", priority(), "--x509cafile", file("root"), "--x509certfile", file("chain"),
         "--x509keyfile", file("key"), "--alpn", "echo", "--resume", "-p", port, "localhost"});
  ASSERT_TRUE(wait_for("Simple Client Mode"));
  run_until(*loop_, [&] { return seen_.sessions.size() == 2 || said_.closed_calls > 0; });
  say("hello\n");
  ASSERT_TRUE(wait_for("\nhello\n"));
  process_.input.end();
  EXPECT_EQ(wait_for_exit(), 0) << said_.received;
  expect_good_ends(2);
  EXPECT_EQ(seen_.sessions,
            (Words{version() + " echo CN = server", version() + " echo CN = server resumed"}));
}

TEST_P(TlsGnuTls, ServerEchoes) {
  NEEDS("gnutls-serv", "gnutls-bin");
  const std::uint16_t port = free_port(*loop_);
  start("gnutls-serv", {"--echo", "--priority", priority(), "--x509cafile", file("root"),
                        "--x509certfile", file("chain"), "--x509keyfile", file("key"), "--alpn",
                        "echo", "--require-client-cert", "-p", std::to_string(port)});
  ASSERT_TRUE(wait_for("...done"));
  expect_echoed_twice(port, "hello\n");
}

// ---- Node

class TlsNode : public TlsOthers {};

TEST_P(TlsNode, ClientReceivesEchoAndResumes) {
  NEEDS("node", "nodejs");
  start("node", {source("client.js"), serve_echo(), folder_, version()});
  EXPECT_EQ(wait_for_exit(), 0);
  EXPECT_EQ(said_.received, version() + " echo 200000\n" + version() + " echo 200000 resumed\n");
  expect_good_ends(2);
}

TEST_P(TlsNode, ServerEchoes) {
  NEEDS("node", "nodejs");
  start("node", {source("server.js"), folder_, version()});
  expect_echoed_twice(port_behind("port "));
}

// ---- Go

class TlsGo : public TlsOthers {
 protected:
  static constexpr const char* kPeer = SPATE_GO_PEERS "/tls";  // Part of the build.
};

#define NEEDS_GO \
  if (!fs::exists(kPeer)) GTEST_SKIP() << "no peer in Go was built (package golang-go)"

TEST_P(TlsGo, ClientReceivesEchoAndResumes) {
  NEEDS_GO;
  start(kPeer, {"client", serve_echo(), folder_, version()});
  EXPECT_EQ(wait_for_exit(), 0);
  EXPECT_EQ(said_.received, version() + " echo 200000\n" + version() + " echo 200000 resumed\n");
  expect_good_ends(2);
}

TEST_P(TlsGo, ServerEchoes) {
  NEEDS_GO;
  start(kPeer, {"server", folder_, version()});
  expect_echoed_twice(port_behind("port "));
}

constexpr const char* kVersions[] = {"TLSv1.2", "TLSv1.3"};
std::string name_of_version(const ::testing::TestParamInfo<const char*>& info) {
  return std::string(info.param) == "TLSv1.2" ? "Tls12" : "Tls13";
}
INSTANTIATE_TEST_SUITE_P(Versions, TlsOpenSsl, ::testing::ValuesIn(kVersions), name_of_version);
INSTANTIATE_TEST_SUITE_P(Versions, TlsGnuTls, ::testing::ValuesIn(kVersions), name_of_version);
INSTANTIATE_TEST_SUITE_P(Versions, TlsNode, ::testing::ValuesIn(kVersions), name_of_version);
INSTANTIATE_TEST_SUITE_P(Versions, TlsGo, ::testing::ValuesIn(kVersions), name_of_version);

}  // namespace
}  // namespace spate::testing
