// Rejected certificates, and the reported reasons.
#include <cstdio>

#include "tls/harness.h"

namespace spate::testing {
namespace {

using TlsCertificates = TlsTest;

constexpr long kHour = 3600;

// The client's error for a server's certificate.
struct Refusal {
  std::error_code code;
  std::string text;
};

class TlsRefusals : public TlsTest {
 protected:
  Refusal refusal_of(const TlsIdentity& identity, std::string_view host = "localhost",
                     const TlsClientOptions& options = {}) {
    const Handshake shaken = shake(client(options), server({.identities = {identity}}), host);
    EXPECT_FALSE(shaken.server);
    if (shaken.client) return {};
    if (shaken.client.error().code == Error::tls_certificate && !shaken.server)
      EXPECT_EQ(shaken.server.error().code, Error::tls_certificate) << shaken.server.error().text;
    return {shaken.client.error().code, shaken.client.error().text};
  }
  Refusal refusal_of(const CertificatePlan& plan, std::string_view host = "localhost") {
    return refusal_of(Certificate(plan, &test_root()).identity(), host);
  }
};

TEST_F(TlsRefusals, NameBothHostsOnMismatch) {
  const Refusal refusal = refusal_of({.names = {"a.example", "b.example"}}, "c.example");
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_EQ(refusal.text, "the certificate is for a.example, b.example, not for c.example");
}

TEST_F(TlsRefusals, NameBothAddressesOnMismatch) {
  const Refusal refusal = refusal_of({.names = {"IP:192.0.2.1", "IP:2001:db8::1"}}, "192.0.2.2");
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_EQ(refusal.text, "the certificate is for 192.0.2.1, 2001:db8::1, not for 192.0.2.2");
}

TEST_F(TlsRefusals, CoverNamesOutsideWildcards) {
  for (const char* host : {"b.example", "x.y.b.example", "xb.example"}) {
    EXPECT_EQ(refusal_of(test_server().identity(), host).code, Error::tls_certificate) << host;
  }
}

TEST_F(TlsRefusals, CoverPartialWildcards) {
  EXPECT_EQ(refusal_of({.names = {"w*.example.com"}}, "www.example.com").code,
            Error::tls_certificate);
}

TEST_F(TlsRefusals, CoverNameInSubjectOnly) {
  const Refusal refusal = refusal_of({.subject = "localhost"});
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_EQ(refusal.text, "the certificate is for no name at all, not for localhost");
}

TEST_F(TlsRefusals, ReportExpiryTime) {
  const Refusal refusal =
      refusal_of({.names = {"localhost"}, .begins = -2 * kHour, .ends = -kHour});
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_TRUE(refusal.text.starts_with("the certificate has expired (")) << refusal.text;
  EXPECT_TRUE(refusal.text.ends_with(" GMT): CN = somebody")) << refusal.text;
}

TEST_F(TlsRefusals, ReportStartOfValidity) {
  const Refusal refusal = refusal_of({.names = {"localhost"}, .begins = kHour});
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_TRUE(refusal.text.starts_with("the certificate is not yet valid (")) << refusal.text;
}

TEST_F(TlsRefusals, CoverSelfSignedCertificate) {
  const Certificate own({.subject = "me", .names = {"localhost"}});
  const Refusal refusal = refusal_of(own.identity());
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_EQ(refusal.text, "the certificate is signed by itself: CN = me");
}

TEST_F(TlsRefusals, CoverUntrustedRoot) {
  const Certificate root({.subject = "Other Root", .is_ca = true});
  const Certificate leaf({.names = {"localhost"}}, &root);
  EXPECT_EQ(refusal_of(leaf.identity({&root})).text,
            "the root of the chain is not trusted: CN = Other Root");
  EXPECT_EQ(refusal_of(leaf.identity()).text,
            "the issuer of the certificate is not trusted, or missing in the chain: "
            "CN = Other Root");
}

TEST_F(TlsRefusals, CoverIncompleteChain) {
  const Certificate between({.subject = "Between", .is_ca = true}, &test_root());
  const Certificate leaf({.names = {"localhost"}}, &between);
  EXPECT_EQ(refusal_of(leaf.identity()).text,
            "the issuer of the certificate is not trusted, or missing in the chain: "
            "CN = Between");
  EXPECT_TRUE(shake(client(), server({.identities = {leaf.identity({&between})}})).client);
}

TEST_F(TlsRefusals, CoverClientCertificate) {
  const Refusal refusal = refusal_of({.names = {"localhost"}, .usage = "clientAuth"});
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_EQ(refusal.text, "the certificate is not for this purpose: CN = somebody");
}

TEST_F(TlsRefusals, CoverIssuerWithoutCaFlag) {
  const Certificate leaf({.subject = "evil", .names = {"localhost"}}, &test_server());
  const Refusal refusal = refusal_of(leaf.identity({&test_server()}));
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_EQ(refusal.text,
            "an issuer in the chain is no CA, or may not issue certificates: CN = server");
}

TEST_F(TlsRefusals, CoverIssuerWithoutCertSignUsage) {
  const Certificate between({.subject = "Between", .is_ca = true, .key_usage = "critical,cRLSign"},
                            &test_root());
  const Certificate leaf({.names = {"localhost"}}, &between);
  EXPECT_EQ(refusal_of(leaf.identity({&between})).text,
            "an issuer in the chain is no CA, or may not issue certificates: CN = Between");
}

TEST_F(TlsRefusals, CoverExpiredIssuer) {
  const Certificate between({.subject = "Between", .ends = -kHour, .is_ca = true}, &test_root());
  const Certificate leaf({.names = {"localhost"}}, &between);
  const Refusal refusal = refusal_of(leaf.identity({&between}));
  EXPECT_TRUE(refusal.text.starts_with("the certificate has expired (")) << refusal.text;
  EXPECT_TRUE(refusal.text.ends_with("CN = Between")) << refusal.text;
}

TEST_F(TlsRefusals, CoverKeyForAnotherUsage) {
  EXPECT_EQ(refusal_of({.names = {"localhost"}, .key_usage = "critical,keyCertSign"}).text,
            "the certificate is not for this purpose: CN = somebody");
}

TEST_F(TlsRefusals, CoverForgedSignature) {
  const Certificate impostor({.subject = "Test Root", .is_ca = true});
  const Certificate leaf({.names = {"localhost"}}, &impostor);
  EXPECT_EQ(refusal_of(leaf.identity()).code, Error::tls_certificate);
}

// A raw peer shows them, because our server would reject them itself.
TEST_F(TlsRefusals, CoverWeakKeysAndDigests) {
  const auto refusal = [&](const CertificatePlan& plan) {
    RawPeer peer(*loop_);
    std::string text;
    const Connecting attempt =
        start_tls(std::move(peer.stream()), client(), "localhost",
                  [&](TlsResult<Stream> made) { text = made ? "none" : made.error().text; });
    peer.become_server(Certificate(plan, &test_root()));
    peer.shake_hands();
    run_until(*loop_, [&] { return !text.empty(); });
    return text;
  };
  EXPECT_EQ(refusal({.names = {"localhost"}}), "none");
  EXPECT_EQ(refusal({.names = {"localhost"}, .rsa_bits = 1024}),
            "the key of the certificate is too weak: CN = somebody");
  EXPECT_EQ(refusal({.names = {"localhost"}, .has_weak_digest = true}),
            "a signature in the chain is too weak: CN = somebody");
  EXPECT_EQ(
      TlsContext::server({.identities = {Certificate({.rsa_bits = 1024}).identity()}}).error().code,
      Error::tls_certificate);
}

TEST_F(TlsRefusals, CoverTooLongChain) {
  std::vector<std::unique_ptr<Certificate>> chain;
  std::vector<const Certificate*> between;
  const Certificate* issuer = &test_root();
  for (int i = 0; i < 12; ++i) {
    chain.push_back(std::make_unique<Certificate>(
        CertificatePlan{.subject = "Between " + std::to_string(i), .is_ca = true}, issuer));
    issuer = chain.back().get();
    between.insert(between.begin(), issuer);
  }
  const Certificate leaf({.names = {"localhost"}}, issuer);
  const Refusal refusal = refusal_of(leaf.identity(between));
  EXPECT_EQ(refusal.code, Error::tls_certificate);
  EXPECT_TRUE(refusal.text.starts_with("the chain is too long: ")) << refusal.text;
}

TEST_F(TlsCertificates, AreIgnoredWithoutVerification) {
  const Certificate own({.subject = "me", .ends = -1});
  const TlsContext blind = must_be(TlsContext::client_without_verification());
  EXPECT_TRUE(shake(blind, server({.identities = {own.identity()}}), "").client);
}

TEST_F(TlsCertificates, AreVerifiedAgainstSystemRootsByDefault) {
  const TlsContext context = must_be(TlsContext::client());
  EXPECT_EQ(shake(context, server()).client.error().code, Error::tls_certificate);
}

// ---- the options of a context

TlsFailure failure_of_server(TlsServerOptions options) {
  const TlsResult<TlsContext> made = TlsContext::server(options);
  return made ? TlsFailure{} : made.error();
}

TEST_F(TlsCertificates, MustBeReadable) {
  const TlsIdentity good = test_server().identity();
  const std::string half = good.chain.substr(0, good.chain.size() / 2);
  for (const TlsIdentity& bad :
       {TlsIdentity{.chain = "", .key = good.key}, TlsIdentity{.chain = half, .key = good.key},
        TlsIdentity{.chain = good.chain + half, .key = good.key},
        TlsIdentity{.chain = good.chain, .key = ""},
        TlsIdentity{.chain = good.chain, .key = good.chain}}) {
    EXPECT_EQ(failure_of_server({.identities = {bad}}).code, Error::tls_certificate);
  }
}

TEST(TlsMustDeathTest, PrintsUnreadableFile) {
  const auto exits = ::testing::ExitedWithCode(1);
  EXPECT_EXIT(must(TlsContext::server({.identities = {{.chain_file = "no-such-file.pem",
                                                       .key_file = "no-such-file.pem"}}})),
              exits, "certificates.cc:.*no-such-file.pem");
  const TlsContext context = test_server_context();
  must(context.reload(TlsServerOptions{.identities = {test_server().identity()}}));
  EXPECT_EXIT(must(context.reload(TlsServerOptions{})), exits, "needs a certificate");
}

TEST_F(TlsCertificates, MustMatchTheirKey) {
  const Certificate other({.subject = "other"});
  const TlsFailure failure =
      failure_of_server({.identities = {{.chain = test_server().pem(), .key = other.key_pem()}}});
  EXPECT_EQ(failure.code, Error::tls_certificate);
  EXPECT_EQ(failure.text, "the key is not that of the certificate for CN = server");
}

TEST_F(TlsCertificates, FailuresNameWhatIsMissing) {
  const std::string chain = test_server().pem();
  const std::string key = test_server().key_pem();
  const auto text_for = [](TlsIdentity identity) {
    const TlsFailure failure = failure_of_server({.identities = {std::move(identity)}});
    EXPECT_EQ(failure.code, Error::tls_certificate) << failure.text;
    return failure.text;
  };
  EXPECT_EQ(text_for({.chain = key, .key = key}), "certificate: no certificate in PEM");
  EXPECT_EQ(text_for({.chain = chain, .key = chain}), "key: no private key in PEM");
  EXPECT_EQ(text_for({.chain_file = "/dev/null", .key = key}), "/dev/null: no certificate in PEM");
  EXPECT_EQ(text_for({.key_file = "/dev/null", .chain = chain}),
            "/dev/null: no private key in PEM");
  const auto trusting = TlsContext::client({.system_cas = false, .ca_file = "/dev/null"});
  ASSERT_FALSE(trusting);
  EXPECT_EQ(trusting.error().text, "/dev/null: no certificate in PEM");
}

// Keys that `openssl genpkey -aes256` and `openssl ec -aes256` wrote begin so.
TEST_F(TlsCertificates, EncryptedKeyIsRefused) {
  for (const char* head : {"-----BEGIN ENCRYPTED PRIVATE KEY-----\n",
                           "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"}) {
    const TlsFailure failure =
        failure_of_server({.identities = {{.chain = test_server().pem(), .key = head}}});
    EXPECT_EQ(failure.text, "key: the private key is encrypted. \"openssl pkey\" can decrypt it");
  }
}

TEST_F(TlsCertificates, MayBeLoadedFromFiles) {
  const std::string path = ::testing::TempDir() + "/spate_tls_" + std::to_string(::getpid());
  const auto write = [](const std::string& name, const std::string& text) {
    std::FILE* file = std::fopen(name.c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
  };
  write(path + ".chain", test_server().pem());
  write(path + ".key", test_server().key_pem());
  write(path + ".ca", test_root().pem());
  const TlsIdentity files{.chain_file = path + ".chain", .key_file = path + ".key"};
  const TlsContext theirs = server({.identities = {files}});
  const TlsContext ours =
      must_be(TlsContext::client({.system_cas = false, .ca_file = path + ".ca"}));
  for (const char* end : {".chain", ".key", ".ca"}) std::remove((path + end).c_str());
  EXPECT_TRUE(shake(ours, theirs).client) << "the files are read once";
  EXPECT_EQ(failure_of_server({.identities = {files}}).code, std::errc::no_such_file_or_directory);
}

TEST_F(TlsCertificates, InvalidOptionsAreRejected) {
  const TlsServerOptions good{.identities = {test_server().identity()}};
  const auto is_invalid = [](const TlsServerOptions& options) {
    return failure_of_server(options).code == std::errc::invalid_argument;
  };
  EXPECT_TRUE(is_invalid({}));
  TlsServerOptions bad = good;
  bad.alpn = {""};
  EXPECT_TRUE(is_invalid(bad));
  bad.alpn = {std::string(256, 'x')};
  EXPECT_TRUE(is_invalid(bad));
  bad.alpn = std::vector(300, std::string(255, 'x'));
  EXPECT_TRUE(is_invalid(bad));
  bad = good;
  bad.client_check = TlsClientCheck::required;
  EXPECT_TRUE(is_invalid(bad));
  bad = good;
  bad.client_ca = test_root().pem();
  EXPECT_TRUE(is_invalid(bad));
  bad = good;
  bad.handshake_timeout = Nanos{0};
  EXPECT_TRUE(is_invalid(bad));
  bad = good;
  bad.ticket_lifetime = Nanos{-1};
  EXPECT_TRUE(is_invalid(bad));
  EXPECT_EQ(TlsContext::client({.system_cas = false, .ca = "nothing"}).error().code,
            Error::tls_certificate);
}

}  // namespace
}  // namespace spate::testing
