// Handshakes: what the two sides agree on.
#include <gtest/gtest.h>

#include "streams/harness.h"
#include "support/tls_pair.h"

namespace spate::testing {
namespace {

class TlsHandshakes : public ::testing::Test {
 protected:
  Handshake shake(const TlsContext& client, const TlsContext& server,
                  std::string_view host = "localhost") {
    return shake_hands(*loop_, std::move(*Stream::socket_pair(*loop_)), client, server, host);
  }

  std::unique_ptr<Loop> loop_ = std::move(*Loop::create());
};

TEST_F(TlsHandshakes, TellBothSidesOfTheNewestVersion) {
  Handshake shaken = shake(test_client_context(), test_server_context());
  ASSERT_TRUE(shaken.client) << shaken.client.error().text;
  ASSERT_TRUE(shaken.server) << shaken.server.error().text;
  const std::optional<TlsInfo> info = tls_info(*shaken.client);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->version, "TLSv1.3");
  EXPECT_EQ(info->subject, "CN = server");
  EXPECT_EQ(tls_info(*shaken.server)->server_name, "localhost");
}

}  // namespace
}  // namespace spate::testing
