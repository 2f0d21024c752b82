// Shared by the tests of TLS: handshakes over a pair of sockets, and a peer made of OpenSSL alone.
#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "spate/loop.h"
#include "spate/net/tls.h"
#include "streams/harness.h"
#include "support/tls_pair.h"
#include "tls/testing/certificates.h"

namespace spate::testing {

class TlsTest : public ::testing::Test {
 protected:
  Handshake shake(const TlsContext& client, const TlsContext& server,
                  std::string_view host = "localhost") {
    return shake_hands(*loop_, std::move(*Stream::socket_pair(*loop_)), client, server, host);
  }
  // Returns the client's context, which trusts only our certificates by default.
  TlsContext client(TlsClientOptions options = {}) {
    options.system_cas = false;
    if (options.ca.empty()) options.ca = test_root().pem();
    return must_be(TlsContext::client(options));
  }
  TlsContext server(TlsServerOptions options = {}) {
    if (options.identities.empty()) options.identities = {test_server().identity()};
    return must_be(TlsContext::server(options));
  }
  static TlsContext must_be(TlsResult<TlsContext> made) {
    EXPECT_TRUE(made) << made.error().text;
    return made ? std::move(*made) : TlsContext();
  }

  std::unique_ptr<Loop> loop_ = std::move(*Loop::create());
};

// The other end of a Stream: a peer that is hostile or merely different.
class RawPeer {
 public:
  // stream() returns the Stream, which the caller may move away.
  explicit RawPeer(Loop& loop) : loop_(loop) {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL.
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds_), 0);
    stream_ = std::move(*Stream::adopt(loop, fds_[0]));
  }
  ~RawPeer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    close();
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  Stream& stream() { return stream_; }
  void close() {
    if (fds_[1] >= 0) ::close(std::exchange(fds_[1], -1));
  }
  void send(std::string_view text) {
    EXPECT_EQ(::write(fds_[1], text.data(), text.size()), static_cast<long>(text.size()));
  }
  std::string receive() {
    char room[65536];
    const ssize_t count = ::read(fds_[1], room, sizeof(room));
    return count > 0 ? std::string(room, static_cast<std::size_t>(count)) : "";
  }

  // Returns whether our side has shut down its socket; earlier bytes may be unread.
  bool has_end() const {
    pollfd end{.fd = fds_[1], .events = POLLRDHUP, .revents = 0};
    return ::poll(&end, 1, 0) == 1;
  }

  // Becomes a client or server that verifies no certificate.
  SSL* become_client(int newest = TLS1_3_VERSION) { return become(TLS_client_method(), newest); }
  // Becomes a server that shows any certificate, however weak.
  SSL* become_server(const Certificate& certificate = test_server()) {
    become(TLS_server_method(), TLS1_3_VERSION);
    SSL_set_security_level(ssl_, 0);
    use(certificate);
    return ssl_;
  }
  SSL* ssl() { return ssl_; }
  // Returns the outcome of `step`, called again as long as it needs more from the other side.
  int until_done(const std::function<int()>& step) {
    for (int i = 0; i < 2'000; ++i) {
      ERR_clear_error();
      const int outcome = step();
      const int error = outcome > 0 ? 0 : SSL_get_error(ssl_, outcome);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return outcome;
      loop_.run(Run::no_wait);
    }
    return -1;
  }
  bool shake_hands() {
    return until_done([this] { return SSL_do_handshake(ssl_); }) == 1;
  }
  // Reads once. Returns the bytes, or an empty text.
  std::string read() {
    char room[16384];
    const int count = until_done([&] { return SSL_read(ssl_, room, sizeof(room)); });
    return count > 0 ? std::string(room, static_cast<std::size_t>(count)) : "";
  }
  void write(std::string_view text) {
    until_done([&] { return SSL_write(ssl_, text.data(), static_cast<int>(text.size())); });
  }

 private:
  SSL* become(const SSL_METHOD* method, int newest) {
    context_ = SSL_CTX_new(method);
    SSL_CTX_set_max_proto_version(context_, newest);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, fds_[1]);
    if (method == TLS_client_method()) {
      SSL_set_connect_state(ssl_);
    } else {
      SSL_set_accept_state(ssl_);
    }
    return ssl_;
  }
  void use(const Certificate& certificate);

  Loop& loop_;
  int fds_[2] = {-1, -1};
  Stream stream_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
};

inline void RawPeer::use(const Certificate& certificate) {
  BIO* text = BIO_new_mem_buf(certificate.pem().data(), -1);
  X509* x509 = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  BIO_free(text);
  text = BIO_new_mem_buf(certificate.key_pem().data(), -1);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(text, nullptr, nullptr, nullptr);
  BIO_free(text);
  EXPECT_EQ(SSL_use_cert_and_key(ssl_, x509, key, nullptr, 1), 1);
  X509_free(x509);
  EVP_PKEY_free(key);
}

}  // namespace spate::testing
