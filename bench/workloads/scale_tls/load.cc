// The client of scale_tls: the phases of scale/crowd.h on connections with TLS 1.3, AES-128-GCM and
// X25519. A greeting is a full handshake and an echo of 64 bytes.
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "workloads/scale/crowd.h"
#include "workloads/tls/certificate.h"

namespace {

constexpr std::size_t kMessage = 64;

class TlsLink {
 public:
  struct Talk {
    int fd = -1;
    std::uint32_t awaited = 0;
    bool is_asked = false, is_secured = false;
    std::uint64_t asked_at = 0;
    SSL* ssl = nullptr;
  };
  static constexpr bool kBroadcasts = false;

  TlsLink(const CertificateFiles& files, bool verify) : files_(files), verify_(verify) {
    SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set1_groups_list(context_, "X25519");
    SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  }
  ~TlsLink() { SSL_CTX_free(context_); }
  TlsLink(const TlsLink&) = delete;
  TlsLink& operator=(const TlsLink&) = delete;

  void begin(Talk& talk, bool) {
    talk.ssl = SSL_new(context_);
    talk.is_asked = true;
    SSL_set_fd(talk.ssl, talk.fd);
    SSL_set_connect_state(talk.ssl);
    shake_hands(talk);  // A response, if it is here already, stays in the socket for go_on().
  }

  void ask(Talk& talk) {
    talk.is_asked = true;
    talk.awaited = kMessage;
    if (SSL_write(talk.ssl, bench_pattern(1, 0), kMessage) != int(kMessage))
      ServerProcess::fail("the kernel takes no more");
  }

  bool go_on(Talk& talk) {
    if (!talk.is_secured && !shake_hands(talk)) return false;
    return hear(talk);
  }

  void reset(Talk& talk) {
    SSL_set_shutdown(talk.ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(talk.ssl);
    bench_reset(talk.fd);
  }

 private:
  bool shake_hands(Talk& talk) {
    const int result = SSL_do_handshake(talk.ssl);
    if (result != 1 && SSL_get_error(talk.ssl, result) == SSL_ERROR_WANT_READ) return false;
    if (result != 1) ServerProcess::fail("a handshake fails");
    if (SSL_CIPHER_get_id(SSL_get_current_cipher(talk.ssl)) != TLS1_3_CK_AES_128_GCM_SHA256 ||
        X509_cmp(SSL_get0_peer_certificate(talk.ssl), files_.certificate()) != 0)
      ServerProcess::fail("another cipher or certificate than expected");
    talk.is_secured = true;
    ask(talk);
    return true;
  }

  // Reads tickets, too.
  bool hear(Talk& talk) {
    const std::uint32_t before = talk.awaited;
    for (;;) {
      const int count = SSL_read(talk.ssl, room_.data(), int(room_.size()));
      if (count <= 0 && SSL_get_error(talk.ssl, count) != SSL_ERROR_WANT_READ)
        ServerProcess::fail("a connection ends before its response does");
      if (count <= 0) return before > 0 && talk.awaited == 0;
      if (std::uint32_t(count) > talk.awaited) ServerProcess::fail("a response is too long");
      const std::size_t offset = kMessage - talk.awaited;
      if (verify_ && memcmp(room_.data(), bench_pattern(1, offset), std::size_t(count)) != 0)
        ServerProcess::fail("a response is not what was requested");
      talk.awaited -= std::uint32_t(count);
    }
  }

  SSL_CTX* const context_ = SSL_CTX_new(TLS_client_method());
  const CertificateFiles& files_;
  const bool verify_;
  std::array<char, 4096> room_;
};

}  // namespace

int main(int argc, char** argv) {
  const CrowdOptions options(argc, argv);
  Common& common = *Common::make();
  CrowdProcesses::run(options.processes, [&](std::size_t process) {
    const CertificateFiles files("");
    CrowdArguments arguments(argc, argv, process, {"--chain", files.chain(), "--key", files.key()});
    ServerProcess server(arguments.count(), arguments.words(), Placement::apart);
    TlsLink link(files, bench_number(argc, argv, "verify", 0) != 0);
    Crowd<TlsLink>(link, server, options, process, common).run();
    server.end();
  });
  CrowdReport(options, common).print(TlsLink::kBroadcasts);
  return 0;
}
