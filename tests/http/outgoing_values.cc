// No value of a program can become two fields: for both sides of both versions, each place where a
// value is set.
#include <functional>
#include <string>

#include "base/fault.h"
#include "http/client_pair_harness.h"
#include "http/http2_harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Fields;
using http::Status;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kInjected = "a\r\nEvil: 1";
const std::string kControls[] = {kInjected, "a\nEvil: 1", "a\rEvil: 1", std::string("a\0b", 3),
                                 "a\x7f"};

class OutgoingValues : public Http2ServerTest {
 protected:
  // `answer` returns whether it was accepted. Neither version sends it.
  void expect_refused(const std::function<bool(Exchange&)>& answer) {
    bool was_taken = false;
    on_request = [&](Exchange exchange) {
      was_taken = answer(exchange);
      if (exchange.is_open()) exchange.respond(Status::no_content);
    };
    const std::string first = talk(kGet);
    EXPECT_FALSE(was_taken);
    EXPECT_THAT(first, Not(HasSubstr("\nEvil")));
    EXPECT_THAT(first, ::testing::StartsWith("HTTP/1.1 204 "));
    const Http2Client::Answer second = ask();
    EXPECT_FALSE(was_taken);
    EXPECT_EQ(second.status, 204);
    for (const auto& [name, value] : second.fields) {
      EXPECT_NE(name, "evil");
      EXPECT_THAT(value, Not(HasSubstr("\n")));
    }
  }
};

TEST_F(OutgoingValues, InvalidContentTypeIsRejectedByBothVersions) {
  for (const std::string& value : kControls)
    expect_refused([&](Exchange& exchange) { return exchange.respond(Status::ok, "x", value); });
}

TEST_F(OutgoingValues, InvalidFieldsAreRejected) {
  for (const std::string& value : kControls) {
    Fields fields;
    EXPECT_FALSE(fields.add("X-A", value));
    EXPECT_FALSE(fields.set("X-A", value));
    EXPECT_FALSE(fields.add(value, "b"));
    EXPECT_TRUE(fields.empty());
  }
}

TEST_F(OutgoingValues, InterimStatus101IsRejectedByBothVersions) {
  expect_refused([](Exchange& exchange) { return exchange.inform(Status::switching_protocols); });
}

TEST_F(OutgoingValues, InvalidProtocolIsRejected) {
  on_request = [&](Exchange exchange) {
    EXPECT_FALSE(exchange.upgrade(kInjected));
    exchange.respond(Status::no_content);
  };
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n"),
              Not(HasSubstr("Evil")));
}

TEST_F(OutgoingValues, IncompleteFieldsAreRefusedByBothVersions) {
  Fields lacking;
  EXPECT_FALSE(lacking.set("X-Frame-Options", kInjected));
  expect_refused([&](Exchange& exchange) { return exchange.respond(Status::ok, lacking); });
  expect_refused(
      [&](Exchange& exchange) { return exchange.respond(Status::ok, lacking, Buffer()); });
  expect_refused([&](Exchange& exchange) { return exchange.begin(Status::ok, lacking); });
  expect_refused([&](Exchange& exchange) { return exchange.inform(Status{103}, lacking); });
  on_request = [&](Exchange exchange) {
    EXPECT_EQ(exchange.upgrade("a", lacking).error(), std::errc::invalid_argument);
    exchange.respond(Status::no_content);
  };
  talk("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n");
}

TEST_F(OutgoingValues, RejectedResponseIs500AndLoggedWithReason) {
  std::error_code logged;
  http::ServerOptions options;
  options.log = [&](const http::AccessRecord& record) { logged = record.error; };
  serve2(std::move(options));
  on_request = [](Exchange exchange) {
    Fields fields;
    fields.set("Location", kInjected);
    exchange.respond(Status::found, fields);
  };
  EXPECT_THAT(talk(kGet), ::testing::StartsWith("HTTP/1.1 500 "));
  EXPECT_EQ(std::exchange(logged, {}), std::errc::invalid_argument);
  EXPECT_EQ(ask().status, 500);
  EXPECT_EQ(std::exchange(logged, {}), std::errc::invalid_argument);
  on_request = [](Exchange exchange) { exchange.respond(Status::ok, "x", kInjected); };
  EXPECT_THAT(talk(kGet), ::testing::StartsWith("HTTP/1.1 500 "));
  EXPECT_EQ(std::exchange(logged, {}), std::errc::invalid_argument);
  EXPECT_EQ(ask().status, 500);
  EXPECT_EQ(std::exchange(logged, {}), std::errc::invalid_argument);
  on_request = [](Exchange exchange) {
    exchange.respond(Status::ok, "x", kInjected);
    exchange.respond("good");
  };
  EXPECT_THAT(talk(kGet), ::testing::EndsWith("good"));
  EXPECT_FALSE(logged);
}

// RFC 9110 section 6.5.1.
TEST_F(OutgoingValues, ForbiddenTrailersAreRejectedByBothVersions) {
  for (const char* name : {"Content-Length", "Transfer-Encoding", "Host", "Trailer", "Set-Cookie",
                           "Content-Type", "Date", "Cache-Control"}) {
    on_request = [&](Exchange exchange) {
      Fields trailers;
      EXPECT_TRUE(trailers.add(name, "5"));
      EXPECT_TRUE(exchange.begin(Status::ok) && exchange.write("x"));
      EXPECT_FALSE(exchange.end(trailers)) << name;
      EXPECT_TRUE(exchange.is_open());
      EXPECT_TRUE(trailers.remove(name) == 1 && trailers.add("X-Sum", "5"));
      EXPECT_TRUE(exchange.end(trailers));
    };
    EXPECT_THAT(talk(kGet), ::testing::EndsWith("1\r\nx\r\n0\r\nX-Sum: 5\r\n\r\n"));
    const Http2Client::Answer answer = ask();
    EXPECT_EQ(answer.body, "x");
    EXPECT_EQ(answer.trailers.size(), 1u);
  }
}

TEST_F(OutgoingValues, ResponseWithRejectedTrailersIsResetIfAbandoned) {
  on_request = [](Exchange exchange) {
    Fields trailers;
    trailers.set("X-Sum", kInjected);
    EXPECT_TRUE(exchange.begin(Status::ok) && exchange.write("x"));
    EXPECT_FALSE(exchange.end(trailers));
  };
  const auto client = connect();
  client->send(kGet);
  turns();
  EXPECT_TRUE(client->is_closed);
  EXPECT_THAT(client->received, Not(HasSubstr("\r\n0\r\n")));
  const Http2Client::Answer answer = ask();
  EXPECT_TRUE(answer.is_closed && !answer.is_ended);
}

// A response of HTTP/2 has no gap where memory was short.
TEST_F(OutgoingValues, OutOfMemoryInBodyResetsStream) {
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    bool was_taken = false;
    on_request = [&](Exchange exchange) {
      exchange.begin(Status::ok);
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
      {
        const FaultScope scope(plan);
        was_taken = exchange.write(std::string(100'000, 'x'));
      }
      exchange.write("y");
      exchange.end();
    };
    const Http2Client::Answer answer = ask();
    EXPECT_TRUE(answer.is_closed);
    EXPECT_EQ(answer.is_ended, was_taken);
    if (was_taken) EXPECT_EQ(answer.body.size(), 100'001u);
    if (nth == 1) EXPECT_FALSE(was_taken);
  }
}

TEST_F(OutgoingValues, InvalidServerNameIsRejected) {
  for (const std::string& value : kControls) {
    EXPECT_EQ(http::Server::create(loop_, [](Exchange) {}, {.server_name = value}).error(),
              std::errc::invalid_argument);
  }
}

class OutgoingRequestValues : public ClientProtocolTest {
 protected:
  void expect_refused(http::CallOptions options) {
    Outcome outcome;
    const http::Call call = fetch(outcome, std::move(options));
    turns();
    EXPECT_EQ(outcome.error(), std::errc::invalid_argument);
  }
};

TEST_P(OutgoingRequestValues, InvalidValuesAreRejected) {
  for (const std::string& value : kControls) {
    expect_refused({.method = http::Method::other, .method_name = value});
    expect_refused({.target = "/" + value});
    Hearer hearer;
    const http::Call call = client_.send(kUrl, hearer, {.upgrade = value});
    turns();
    EXPECT_EQ(hearer.error, std::errc::invalid_argument);
    EXPECT_EQ(http::Client::create(loop_, {.user_agent = value}).error(),
              std::errc::invalid_argument);
  }
  EXPECT_THAT(opened, ::testing::IsEmpty());
}

TEST_P(OutgoingRequestValues, IncompleteFieldsAreRefused) {
  Fields lacking;
  EXPECT_FALSE(lacking.set("Authorization", kInjected));
  expect_refused({.fields = std::move(lacking)});
  EXPECT_THAT(opened, ::testing::IsEmpty());
}

TEST_P(OutgoingRequestValues, ForbiddenTrailersEndCall) {
  for (const char* name : {"Content-Length", "Transfer-Encoding", "Host", "Trailer", "X Y"}) {
    Hearer hearer;
    http::Call call =
        client_.send(kUrl, hearer, {.method = http::Method::post, .upload = http::kUnknownSize});
    turns();
    Fields trailers;
    trailers.set(name, "5");
    call.write("x");
    call.end(std::move(trailers));
    turns();
    EXPECT_EQ(hearer.error, std::errc::invalid_argument) << name;
    EXPECT_TRUE(kept_.back()->is_closed);
    EXPECT_FALSE(kept_.back()->is_ended);
  }
}

TEST_P(OutgoingRequestValues, OutOfMemoryInBodyEndsCall) {
  Hearer hearer;
  http::Call call =
      client_.send(kUrl, hearer, {.method = http::Method::post, .upload = http::kUnknownSize});
  turns();
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
  {
    const FaultScope scope(plan);
    EXPECT_FALSE(call.write(std::string(100'000, 'x')));
  }
  call.end();
  turns();
  EXPECT_EQ(hearer.error, std::errc::not_enough_memory);
}

INSTANTIATE_TEST_SUITE_P(Protocols, OutgoingRequestValues, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
