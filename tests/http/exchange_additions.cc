// Fields, functions and attributes that middleware attaches to an Exchange.
#include "http/harness.h"
#include "http/http2_harness.h"
#include "spate/http/compression.h"
#include "spate/http/router.h"

namespace spate::testing {
namespace {

using http::AccessRecord;
using http::Attribute;
using http::Exchange;
using http::Fields;
using http::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Attribute<std::string> kUser;
constexpr Attribute<int> kAge;

// Counts how many exist.
struct Counted {
  explicit Counted(int& of) : count(&of) { ++*count; }
  Counted(Counted&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (count != nullptr) --*count;
  }
  int* count;
};
constexpr Attribute<Counted> kCounted;

class ExchangeAdditions : public HttpServerTest {};

TEST_F(ExchangeAdditions, FieldIsSentWithEachKindOfResponse) {
  int kind = 0;
  on_request = [&](Exchange exchange) {
    EXPECT_TRUE(exchange.add_field("X-Added", "yes"));
    Fields fields;
    ASSERT_TRUE(fields.add("X-Own", "1"));
    switch (kind++) {
      case 0: exchange.respond("a"); break;
      case 1: exchange.respond(Status::not_found); break;
      case 2: exchange.respond(Status::ok, fields, bytes_of(std::string_view("a"))); break;
      case 3: exchange.begin(Status::ok, fields), exchange.end(); break;
      default: break;  // 500, as it is destroyed.
    }
  };
  for (int i = 0; i < 5; ++i) EXPECT_THAT(talk(kGet), HasSubstr("\r\nX-Added: yes\r\n")) << i;
}

TEST_F(ExchangeAdditions, FieldIsSentWithCompressedResponse) {
  serve_with({.compression = http::Compression::by_type});
  on_request = [](Exchange exchange) {
    exchange.add_field("X-Added", "yes");
    exchange.respond(std::string(4096, 'a'));
  };
  const std::string response = talk("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_THAT(response, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_THAT(response, HasSubstr("X-Added: yes\r\n"));
}

TEST_F(ExchangeAdditions, FieldIsSentWithUpgrade) {
  on_request = [](Exchange exchange) {
    exchange.add_field("X-Added", "yes");
    EXPECT_TRUE(exchange.upgrade("chat"));
  };
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n"),
              HasSubstr("X-Added: yes\r\n"));
}

TEST_F(ExchangeAdditions, FieldIsNotSentWithInterimResponse) {
  on_request = [](Exchange exchange) {
    exchange.add_field("X-Added", "yes");
    exchange.inform(Status::early_hints);
    exchange.respond("a");
  };
  const std::string text = talk(kGet);
  const std::size_t interim = text.find("\r\n\r\n");
  EXPECT_THAT(text.substr(0, interim), Not(HasSubstr("X-Added")));
  EXPECT_THAT(text.substr(interim), HasSubstr("X-Added: yes\r\n"));
}

TEST_F(ExchangeAdditions, FieldIsRefusedIfInvalidOrLate) {
  on_request = [](Exchange exchange) {
    for (const char* own : {"Content-Length", "Connection", "Transfer-Encoding", "Date", "Upgrade"})
      EXPECT_FALSE(exchange.add_field(own, "1")) << own;
    EXPECT_TRUE(exchange.respond("a"));
    EXPECT_FALSE(exchange.add_field("X-Late", "a"));
    EXPECT_FALSE(exchange.before_response([](Status, Fields&) {}));
    EXPECT_FALSE(Exchange().add_field("X-None", "a"));
    EXPECT_FALSE(Exchange().on_end([](const AccessRecord&) {}));
    EXPECT_EQ(Exchange().set_attribute(kAge, 1), nullptr);
    EXPECT_EQ(Exchange().attribute(kAge), nullptr);
  };
  EXPECT_THAT(talk(kGet), Not(HasSubstr("X-")));
}

TEST_F(ExchangeAdditions, FieldsAreNotSentWithNextResponse) {
  int requests = 0;
  on_request = [&](Exchange exchange) {
    if (requests++ == 0) exchange.add_field("X-Added", "yes");
    exchange.respond("a");
  };
  const std::string text = talk(std::string(kGet) + std::string(kGet));
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(text.find("X-Added"), text.rfind("X-Added"));
}

TEST_F(ExchangeAdditions, BeforeResponseReceivesStatusAndMayChangeFields) {
  std::vector<std::string> order;
  on_request = [&](Exchange exchange) {
    exchange.add_field("X-Added", "yes");
    exchange.before_response([&](Status status, Fields& added) {
      order.push_back("first " + std::to_string(code_of(status)));
      EXPECT_TRUE(added.set("X-Added", "changed"));
    });
    exchange.before_response([&](Status, Fields&) { order.emplace_back("second"); });
    exchange.respond(Status::not_found);
  };
  EXPECT_THAT(talk(kGet), HasSubstr("X-Added: changed\r\n"));
  EXPECT_THAT(order, ElementsAre("first 404", "second"));
}

TEST_F(ExchangeAdditions, ResponseIsReplacedBy500IfAddedFieldIsInvalid) {
  int kind = 0;
  on_request = [&](Exchange exchange) {
    exchange.add_field("X-Good", "a");
    switch (kind++) {
      case 0: EXPECT_FALSE(exchange.add_field("X-Bad", "a\r\nb")); break;
      case 1: EXPECT_FALSE(exchange.add_field("X Bad", "a")); break;
      default:
        exchange.before_response(
            [](Status, Fields& added) { EXPECT_TRUE(added.add("Date", "now")); });
    }
    EXPECT_FALSE(exchange.respond("a"));
  };
  for (int i = 0; i < 3; ++i) {
    const std::string response = talk(kGet);
    EXPECT_THAT(response, ::testing::StartsWith("HTTP/1.1 500 ")) << i;
    EXPECT_THAT(response, Not(HasSubstr("X-"))) << i;
  }
}

TEST_F(ExchangeAdditions, OnEndIsCalledOnceWithRecord) {
  std::vector<std::string> calls;
  serve_with({.log = [&](const AccessRecord&) { calls.emplace_back("log"); }});
  on_request = [&](Exchange exchange) {
    exchange.on_end([&](const AccessRecord& record) {
      calls.push_back(std::to_string(code_of(record.status)) + std::string(record.request.path()));
    });
    exchange.on_end([&](const AccessRecord&) { calls.emplace_back("second"); });
    exchange.respond("a");
    EXPECT_THAT(calls, IsEmpty());
  };
  talk("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(calls, ElementsAre("200/a", "second", "log"));
}

TEST_F(ExchangeAdditions, OnEndIsCalledByLoopAfterAbort) {
  std::vector<std::string> calls;
  on_request = [&](Exchange exchange) {
    exchange.on_end([&](const AccessRecord& record) {
      calls.push_back(std::to_string(code_of(record.status)));
    });
    exchange.abort();
    EXPECT_THAT(calls, IsEmpty());
  };
  talk(kGet);
  EXPECT_THAT(calls, ElementsAre("499"));
}

TEST_F(ExchangeAdditions, OnEndMayDestroyServer) {
  bool is_called = false;
  on_request = [&](Exchange exchange) {
    exchange.on_end([&](const AccessRecord& record) {
      server_ = {};
      is_called = true;
      EXPECT_EQ(record.status, Status::ok);
    });
    exchange.on_end([](const AccessRecord&) { FAIL() << "called after the server was destroyed"; });
    exchange.respond("a");
  };
  talk(kGet);
  EXPECT_TRUE(is_called);
}

TEST_F(ExchangeAdditions, OnEndIsDestroyedUncalledWithServer) {
  int count = 0;
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.on_end([counted = Counted(count)](const AccessRecord&) { FAIL() << "called"; });
    kept = std::move(exchange);
  };
  talk(kGet);
  server_ = {};
  turns();
  EXPECT_FALSE(kept.is_open());
  kept = {};
  EXPECT_EQ(count, 0);
}

TEST_F(ExchangeAdditions, AttributesAreFoundByTheirKeys) {
  std::string logged;
  serve_with({.log = [&](const AccessRecord& record) {
    if (const std::string* user = record.request.attribute(kUser)) logged = *user;
  }});
  on_request = [](Exchange exchange) {
    EXPECT_EQ(exchange.attribute(kUser), nullptr);
    ASSERT_NE(exchange.set_attribute(kUser, std::string("ada")), nullptr);
    ASSERT_NE(exchange.set_attribute(kAge, 36), nullptr);
    EXPECT_EQ(*exchange.attribute(kUser), "ada");
    EXPECT_EQ(*exchange.request().attribute(kAge), 36);
    ASSERT_NE(exchange.set_attribute(kUser, std::string("grace")), nullptr);
    EXPECT_EQ(*exchange.request().attribute(kUser), "grace");
    EXPECT_EQ(*exchange.attribute(kAge), 36);
    exchange.respond("a");
  };
  talk(kGet);
  EXPECT_EQ(logged, "grace");
}

TEST_F(ExchangeAdditions, AttributesAreDestroyedWithExchange) {
  int count = 0;
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.set_attribute(kCounted, Counted(count));
    exchange.set_attribute(kCounted, Counted(count));
    EXPECT_EQ(count, 1);
    kept = std::move(exchange);
  };
  talk(kGet);
  EXPECT_EQ(count, 1);
  kept.respond("a");
  turns();
  EXPECT_EQ(count, 1);
  kept = {};
  EXPECT_EQ(count, 0);
}

// The last reference to the application is an attribute.
TEST_F(ExchangeAdditions, AttributeMayDestroyServer) {
  struct Destroyer {
    Destroyer(http::Server& of, int& destroyed) : server(&of), count(&destroyed) {}
    Destroyer(Destroyer&& other) noexcept
        : server(std::exchange(other.server, nullptr)), count(other.count) {}
    Destroyer& operator=(Destroyer&&) = delete;
    ~Destroyer() {
      if (server == nullptr) return;
      *server = {};
      ++*count;
    }
    http::Server* server;
    int* count;
  };
  static constexpr Attribute<Destroyer> kDestroyer;
  int destroyed = 0;
  for (const bool is_kept : {false, true}) {
    serve_with();
    Exchange kept;
    on_request = [&](Exchange exchange) {
      exchange.set_attribute(kDestroyer, Destroyer(server_, destroyed));
      exchange.respond("a");
      if (is_kept) kept = std::move(exchange);
    };
    talk(kGet);
    kept = {};
  }
  EXPECT_EQ(destroyed, 2);
}

class Http2ExchangeAdditions : public Http2ServerTest {};

TEST_F(Http2ExchangeAdditions, FieldIsSent) {
  on_request = [](Exchange exchange) {
    for (int i = 0; i < 40; ++i)
      EXPECT_TRUE(exchange.add_field("x-added-" + std::to_string(i), std::to_string(i)));
    exchange.respond("a");
  };
  auto response = ask();
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(response.fields.at("x-added-" + std::to_string(i)), std::to_string(i));
  EXPECT_EQ(response.body, "a");
}

TEST_F(Http2ExchangeAdditions, OnEndIsCalledAfterReset) {
  std::vector<std::string> calls;
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.on_end([&](const AccessRecord& record) {
      calls.push_back(std::to_string(code_of(record.status)));
    });
    kept = std::move(exchange);
  };
  const auto client = connect2();
  client->get("/");
  turns();
  EXPECT_THAT(calls, IsEmpty());
  client->stream().abort();
  turns();
  EXPECT_THAT(calls, ElementsAre("499"));
}

}  // namespace
}  // namespace spate::testing
