// spate_tls.h: handshakes of C's streams.
#include <cerrno>
#include <cstring>
#include <string>

#include "spate_tls.h"
#include "tests/c/c_loop.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

struct Secured {
  int error = 1;
  std::string why;
  std::string bytes;
  bool destroys = false;
};

void note_secured(spate_stream* stream, int error, const char* why) {
  auto& secured = *static_cast<Secured*>(spate_stream_data(stream));
  secured.error = error;
  secured.why = why;
  if (secured.destroys) spate_stream_destroy(stream);
}

class CTlsTest : public ::testing::Test {
 protected:
  CTlsTest() {
    spate_tls_options server = options();
    server.chain = test_server().pem().c_str();
    server.key = test_server().key_pem().c_str();
    server.alpn = "chat,talk";
    EXPECT_EQ(spate_tls_server(&server_, &server, nullptr, 0), 0);
    spate_tls_options client = options();
    client.ca = test_root().pem().c_str();
    client.without_system_cas = 1;
    client.alpn = "talk";
    client.handshake_timeout = 5'000 * kMillisecond;
    EXPECT_EQ(spate_tls_client(&client_, &client, nullptr, 0), 0);
    EXPECT_EQ(spate_stream_pair(&near_, &far_, loop_.get()), 0);
    spate_stream_set_data(near_, &ours_);
    spate_stream_set_data(far_, &theirs_);
  }
  ~CTlsTest() override {
    spate_stream_destroy(near_);
    spate_stream_destroy(far_);
    spate_tls_context_destroy(server_);
    spate_tls_context_destroy(client_);
  }
  static spate_tls_options options() {
    spate_tls_options all{};
    all.size = sizeof(all);
    return all;
  }
  void shake_hands(const char* host) {
    EXPECT_EQ(spate_stream_accept_tls(far_, server_, note_secured), 0);
    EXPECT_EQ(spate_stream_start_tls(near_, client_, host, note_secured), 0);
    EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
  }

  CLoop loop_;
  spate_tls_context* server_ = nullptr;
  spate_tls_context* client_ = nullptr;
  spate_stream* near_ = nullptr;
  spate_stream* far_ = nullptr;
  Secured ours_;
  Secured theirs_;
};

const spate_stream_callbacks kBytes = {
    sizeof(spate_stream_callbacks),
    [](spate_stream* stream, const void* bytes, std::size_t size) {
      static_cast<Secured*>(spate_stream_data(stream))
          ->bytes.append(static_cast<const char*>(bytes), size);
      return size;
    },
    nullptr,
    nullptr,
    nullptr,
    nullptr};

TEST_F(CTlsTest, BytesArriveAfterHandshake) {
  shake_hands("localhost");
  EXPECT_EQ(ours_.error, 0) << ours_.why;
  EXPECT_EQ(theirs_.error, 0) << theirs_.why;
  EXPECT_EQ(spate_stream_start(near_, &kBytes, &ours_), 0);
  EXPECT_EQ(spate_stream_start(far_, &kBytes, &theirs_), 0);
  EXPECT_EQ(spate_stream_write(near_, "hello", 5), 0);
  spate_stream_end(near_);
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
  EXPECT_EQ(theirs_.bytes, "hello");
}

TEST_F(CTlsTest, WrongNameFailsHandshakeOnBothSides) {
  shake_hands("elsewhere.example");
  EXPECT_EQ(ours_.error, SPATE_E_TLS_CERTIFICATE);
  EXPECT_NE(ours_.why, "");
  EXPECT_EQ(theirs_.error, SPATE_E_TLS_CERTIFICATE);
  EXPECT_EQ(spate_stream_is_open(near_), 0);
  EXPECT_EQ(spate_stream_accept_tls(near_, server_, note_secured), -EBADF);
  EXPECT_EQ(spate_stream_start_tls(near_, client_, "x", note_secured), -EBADF);
}

TEST_F(CTlsTest, DestroyingStreamCancelsItsHandshake) {
  EXPECT_EQ(spate_stream_accept_tls(far_, server_, note_secured), 0);
  spate_stream_destroy(far_);
  far_ = nullptr;
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_UNTIL_DONE), 0);
  EXPECT_EQ(theirs_.error, 1);
}

TEST_F(CTlsTest, StreamMayBeDestroyedInItsCallback) {
  ours_.destroys = true;
  shake_hands("localhost");
  near_ = nullptr;
  EXPECT_EQ(ours_.error, 0);
}

TEST_F(CTlsTest, InvalidContextOptionsAreError) {
  spate_tls_context* context = nullptr;
  char why[100] = "";
  spate_tls_options none = options();
  EXPECT_EQ(spate_tls_server(&context, &none, why, sizeof(why)), -EINVAL);
  none.chain = "no certificate";
  none.key = "no key";
  EXPECT_EQ(spate_tls_server(&context, &none, why, sizeof(why)), SPATE_E_TLS_CERTIFICATE);
  EXPECT_STRNE(why, "");
  none.chain = nullptr;
  none.chain_file = "/nonexistent/chain.pem";
  EXPECT_EQ(spate_tls_client(&context, &none, why, sizeof(why)), -ENOENT);
  none.size = 1;
  EXPECT_EQ(spate_tls_client(&context, &none, why, sizeof(why)), -EINVAL);
  EXPECT_EQ(context, nullptr);
}

TEST_F(CTlsTest, OptionsForOtherRoleAreRefused) {
  spate_tls_context* context = nullptr;
  char why[100] = "";
  spate_tls_options other = options();
  other.client_check = SPATE_TLS_CLIENT_REQUIRED;
  EXPECT_EQ(spate_tls_client(&context, &other, why, sizeof(why)), -EINVAL);
  EXPECT_STREQ(why, "`client_check` is the other side's");
  other.client_check = SPATE_TLS_CLIENT_NONE;
  other.without_system_cas = 1;
  EXPECT_EQ(spate_tls_server(&context, &other, why, sizeof(why)), -EINVAL);
  EXPECT_STREQ(why, "`without_system_cas` is the other side's");
  other.without_system_cas = 0;
  other.key = "no key";
  EXPECT_EQ(spate_tls_client(&context, &other, why, sizeof(why)), SPATE_E_TLS_CERTIFICATE);
  EXPECT_EQ(context, nullptr);
}

}  // namespace
}  // namespace spate::testing
