// Hosts: the service that gets a host's requests.
#include "spate/http/hosts.h"

#include "http/harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers with its name.
class Named final : public http::Service {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  void on_request(Exchange exchange) override { exchange.respond("<" + name_ + ">"); }

 private:
  std::string name_;
};

class HostsServed : public HttpServerTest {
 protected:
  HostsServed() {
    hosts_.add("example.org", exact_);
    hosts_.add("*.example.org", wide_);
    hosts_.add("*.deep.example.org", deep_);
    hosts_.add("[::1]", address_);
    server_ = must(http::Server::create(loop_, hosts_));
  }
  // Returns the name of the host that answers.
  std::string ask(const std::string& host) {
    const std::string answer = talk("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    if (answer.starts_with("HTTP/1.1 421 ")) return "421";
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }

  Named exact_{"exact"};
  Named wide_{"wide"};
  Named deep_{"deep"};
  Named address_{"address"};
  Named other_{"other"};
  http::Hosts hosts_;
};

TEST_F(HostsServed, AreMatchedByName) {
  EXPECT_EQ(ask("example.org"), "<exact>");
  EXPECT_EQ(ask("example.org:8080"), "<exact>");
  EXPECT_EQ(ask("EXAMPLE.org"), "<exact>");
  EXPECT_EQ(ask("example.org."), "<exact>");
  EXPECT_EQ(ask("[::1]"), "<address>");
  EXPECT_EQ(ask("[::1]:8080"), "<address>");
}

TEST_F(HostsServed, AreMatchedByLongestSuffix) {
  EXPECT_EQ(ask("a.example.org"), "<wide>");
  EXPECT_EQ(ask("a.b.example.org:80"), "<wide>");
  EXPECT_EQ(ask("deep.example.org"), "<wide>");
  EXPECT_EQ(ask("a.deep.example.org"), "<deep>");
}

TEST_F(HostsServed, Respond421IfUnknown) {
  for (const char* host :
       {"example.net", "org", "notexample.org", "[::2]", ".example.org", "example.org.evil.net"})
    EXPECT_EQ(ask(host), "421") << host;
  EXPECT_THAT(talk("GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 421 "));
}

TEST_F(HostsServed, MayHaveDefaultService) {
  hosts_.otherwise(other_);
  EXPECT_EQ(ask("example.net"), "<other>");
  EXPECT_EQ(ask("example.org"), "<exact>");
  EXPECT_THAT(talk("GET / HTTP/1.0\r\n\r\n"), HasSubstr("<other>"));
}

TEST_F(HostsServed, AreMatchedByAbsoluteTarget) {
  EXPECT_THAT(talk("GET http://a.example.org/ HTTP/1.1\r\nHost: a.example.org\r\n\r\n"),
              HasSubstr("<wide>"));
}

}  // namespace
}  // namespace spate::testing
