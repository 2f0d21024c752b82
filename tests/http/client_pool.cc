// A client's connections: how many, who gets them, when they go, and what is repeated.
#include <chrono>
#include <string>

#include "http/client_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ClientPool : public HttpClientTest {
 protected:
  http::Call get(std::string_view url, Outcome& outcome, http::CallOptions options = {}) {
    return client_.fetch(url, outcome.note(), std::move(options));
  }
  http::Call post(Outcome& outcome) {
    return fetch(outcome, {.method = http::Method::post, .body = bytes_of("x")});
  }
};

TEST_F(ClientPool, a_connection_is_used_again) {
  warm_up();
  Outcome second;
  const http::Call call = fetch(second);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  EXPECT_THAT(peer().heard(), StartsWith("GET / "));
  peer().answer(kOk);
  turns();
  EXPECT_EQ(second.text(), "ok");
  EXPECT_EQ(client_.metrics().reused, 1u);
}

TEST_F(ClientPool, one_that_the_server_closes_is_not) {
  Outcome first;
  ask_and_answer(first, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(first.status(), 200);
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_TRUE(peer().is_ended);
}

TEST_F(ClientPool, one_of_http_1_0_is_used_again_only_if_the_server_says_so) {
  Outcome first;
  ask_and_answer(first, "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client_.metrics().connections, 0u);
  Outcome second;
  ask_and_answer(second, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientPool, what_was_used_last_is_used_first) {
  Outcome a, b;
  const http::Call first = fetch(a), second = fetch(b);
  turns();
  ASSERT_EQ(peers.size(), 2u);
  peer(1).answer(kOk);
  turns();
  peer(0).answer(kOk);
  turns();
  peer(0).heard(), peer(1).heard();
  Outcome c;
  const http::Call third = fetch(c);
  turns();
  EXPECT_THAT(peer(0).heard(), StartsWith("GET"));
  EXPECT_THAT(peer(1).heard(), IsEmpty());
}

TEST_F(ClientPool, an_end_or_a_byte_throws_an_idle_one_out) {
  warm_up();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
  warm_up();
  peer(1).answer("x");
  turns();
  EXPECT_EQ(client_.metrics().connections, 0u);
  EXPECT_EQ(peer(1).error, std::errc::connection_reset);
}

TEST_F(ClientPool, an_idle_one_goes_after_its_time) {
  warm_up();
  pass(29s);
  EXPECT_EQ(client_.metrics().idle, 1u);
  pass(2s);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, an_idle_one_goes_a_second_before_the_server_closes_it) {
  Outcome first;
  ask_and_answer(first,
                 "HTTP/1.1 200 OK\r\nKeep-Alive: max=9, Timeout=5\r\nContent-Length: 0\r\n\r\n");
  pass(3900ms);
  EXPECT_EQ(client_.metrics().idle, 1u);
  pass(200ms);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, one_that_the_server_keeps_for_no_time_is_not_kept) {
  Outcome first;
  ask_and_answer(first, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, none_is_kept_if_the_idle_time_is_zero) {
  make_client({.idle_timeout = Nanos{0}});
  Outcome first;
  ask_and_answer(first, kOk);
  EXPECT_EQ(first.status(), 200);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, the_idle_time_does_not_end_a_call) {
  warm_up();
  Outcome second;
  const http::Call call = fetch(second, {.deadline = Nanos{0}});
  turns();
  pass(60s);
  EXPECT_FALSE(second.is_there());
  peer().answer(kOk);
  turns();
  EXPECT_EQ(second.status(), 200);
}

TEST_F(ClientPool, idle_ones_are_closed_when_asked) {
  warm_up();
  client_.close_idle();
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, origins_do_not_share) {
  Outcome a, b, c;
  const http::Call first = get("http://a.example/", a), second = get("http://b.example/", b),
                   third = get("http://a.example:81/", c);
  turns();
  EXPECT_THAT(opened, ElementsAre("a.example:80", "b.example:80", "a.example:81"));
  for (const auto& each : peers) each->answer(kOk);
  turns();
  Outcome d;
  const http::Call fourth = get("http://b.example/again", d);
  turns();
  EXPECT_EQ(peers.size(), 3u);
  EXPECT_THAT(peer(1).heard(), HasSubstr("GET /again "));
}

TEST_F(ClientPool, calls_above_the_limit_wait_in_order) {
  make_client({.max_per_origin = 2});
  Outcome outcomes[5];
  std::vector<http::Call> calls;
  for (int i = 0; i < 5; ++i)
    calls.push_back(get("http://a.example/" + std::to_string(i), outcomes[i]));
  turns();
  EXPECT_EQ(peers.size(), 2u);
  EXPECT_EQ(client_.metrics().waiting, 3u);
  peer(0).heard(), peer(1).heard();
  peer(1).answer(kOk);
  turns();
  EXPECT_THAT(peer(1).heard(), StartsWith("GET /2 "));
  peer(0).answer(kOk);
  turns();
  EXPECT_THAT(peer(0).heard(), StartsWith("GET /3 "));
  peer(0).answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  turns();
  ASSERT_EQ(peers.size(), 3u);  // In place of the one that was closed.
  EXPECT_THAT(peer(2).heard(), StartsWith("GET /4 "));
}

TEST_F(ClientPool, who_waits_gets_what_is_free_first) {
  make_client({.max_per_origin = 1});
  Outcome a, b, c;
  const http::Call first = get("http://a.example/1", a);
  http::Call second = get("http://a.example/2", b);
  const http::Call third = get("http://a.example/3", c);
  turns();
  second.cancel();
  peer().heard();
  peer().answer(kOk);
  turns();
  EXPECT_THAT(peer().heard(), StartsWith("GET /3 "));
}

TEST_F(ClientPool, a_waiting_call_keeps_its_own_deadline) {
  make_client({.max_per_origin = 1});
  Outcome a, b;
  const http::Call first = fetch(a, {.deadline = 10s});
  turns();
  const http::Call second = fetch(b, {.deadline = 1s});
  pass(1100ms);
  EXPECT_EQ(b.error(), Error::deadline);
  EXPECT_FALSE(a.is_there());
  EXPECT_EQ(client_.metrics().waiting, 0u);
}

TEST_F(ClientPool, above_the_total_the_oldest_idle_one_makes_room) {
  make_client({.max_connections = 2});
  Outcome a, b, c;
  const http::Call first = get("http://a.example/", a);
  turns();
  peer(0).answer(kOk);
  turns();
  clock_.advance(1s);
  const http::Call second = get("http://b.example/", b);
  turns();
  peer(1).answer(kOk);
  turns();
  const http::Call third = get("http://c.example/", c);
  turns();
  EXPECT_EQ(peers.size(), 3u);
  EXPECT_TRUE(peer(0).is_ended);
  EXPECT_FALSE(peer(1).is_ended);
  EXPECT_EQ(client_.metrics().connections, 2u);
}

TEST_F(ClientPool, a_busy_origin_does_not_starve_another) {
  make_client({.max_connections = 1});
  Outcome a, b, c;
  const http::Call first = get("http://a.example/1", a);
  turns();
  const http::Call second = get("http://b.example/2", b), third = get("http://a.example/3", c);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  peer(0).answer(kOk);
  turns();
  EXPECT_EQ(a.status(), 200);
  ASSERT_EQ(peers.size(), 2u);  // Before the one who came later, though his origin had one.
  EXPECT_THAT(peer(1).heard(), StartsWith("GET /2 "));
  EXPECT_EQ(client_.metrics().connections, 1u);
  peer(1).answer(kOk);
  turns();
  ASSERT_EQ(peers.size(), 3u);
  EXPECT_THAT(peer(2).heard(), StartsWith("GET /3 "));
  peer(2).answer(kOk);
  turns();
  EXPECT_EQ(c.status(), 200);
}

TEST_F(ClientPool, a_call_that_goes_gives_its_place_to_another_origin) {
  make_client({.max_connections = 1});
  Outcome a, b;
  http::Call first = get("http://a.example/", a);
  turns();
  const http::Call second = get("http://b.example/", b);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  first.cancel();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peer(1).heard(), StartsWith("GET / "));
}

// ---- what is repeated

TEST_F(ClientPool, a_get_that_crosses_the_servers_end_is_repeated_on_a_fresh_connection) {
  warm_up();
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer(0).stream().end();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peer(1).heard(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  peer(1).answer(kOk);
  turns();
  EXPECT_EQ(outcome.text(), "ok");
  EXPECT_EQ(client_.metrics().repeated, 1u);
}

TEST_F(ClientPool, a_reset_is_repeated_as_an_end_is) {
  warm_up();
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = http::Method::put, .body = bytes_of("the body")});
  turns();
  peer(0).stream().abort();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peer(1).heard(), HasSubstr("\r\n\r\nthe body"));
}

TEST_F(ClientPool, it_is_repeated_once_only) {
  warm_up();
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer(0).stream().end();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  peer(1).stream().end();
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_reset);
  EXPECT_EQ(peers.size(), 2u);
}

TEST_F(ClientPool, what_is_repeated_does_not_take_an_idle_connection) {
  Outcome a, b, c;
  {
    const http::Call first = fetch(a), second = fetch(b);
    turns();
    peer(0).answer(kOk), peer(1).answer(kOk);
    turns();
  }
  ASSERT_EQ(client_.metrics().idle, 2u);
  peer(0).heard(), peer(1).heard();
  const http::Call third = fetch(c);
  turns();
  peer(0).heard().empty() ? peer(1).stream().end() : peer(0).stream().end();
  turns();
  EXPECT_EQ(peers.size(), 3u);
}

TEST_F(ClientPool, at_the_limit_an_idle_one_makes_room_for_what_is_repeated) {
  make_client({.max_per_origin = 2});
  Outcome a, b, c, d;
  {
    const http::Call first = fetch(a), second = fetch(b);
    turns();
    peer(0).answer(kOk), peer(1).answer(kOk);
    turns();
  }
  const http::Call third = fetch(c), fourth = fetch(d);
  turns();
  peer(0).stream().end(), peer(1).stream().end();
  turns();
  EXPECT_EQ(peers.size(), 4u);
  peer(2).answer(kOk), peer(3).answer(kOk);
  turns();
  EXPECT_EQ(c.status(), 200);
  EXPECT_EQ(d.status(), 200);
}

TEST_F(ClientPool, on_a_fresh_connection_nothing_is_repeated) {
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_reset);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientPool, after_a_byte_of_an_answer_nothing_is_repeated) {
  warm_up();
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  peer(0).answer("H");
  turns();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(outcome.error(), http::HttpError::response_truncated);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientPool, a_post_is_not_repeated) {
  warm_up();
  Outcome outcome;
  const http::Call call = post(outcome);
  turns();
  EXPECT_THAT(peer(0).heard(), StartsWith("POST"));
  peer(0).stream().end();
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_reset);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientPool, a_post_with_an_idempotency_key_is) {
  warm_up();
  http::Fields fields;
  fields.add("Idempotency-Key", "7");
  Outcome outcome;
  const http::Call call = fetch(
      outcome, {.method = http::Method::post, .fields = std::move(fields), .body = bytes_of("x")});
  turns();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(peers.size(), 2u);
}

TEST_F(ClientPool, an_upload_that_has_begun_is_not_repeated) {
  warm_up();
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.method = http::Method::put, .upload = 4});
  call.write("ab");
  turns();
  peer(0).stream().end();
  turns();
  EXPECT_EQ(hearer.error, std::errc::connection_reset);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientPool, an_upload_of_which_nothing_has_left_is) {
  warm_up();
  Hearer hearer;
  http::Call call = client_.send(kUrl, hearer, {.method = http::Method::put, .upload = 2});
  turns();
  peer(0).stream().end();
  turns();
  ASSERT_EQ(peers.size(), 2u);
  call.write("ab");
  turns();
  EXPECT_THAT(peer(1).heard(), HasSubstr("\r\n\r\nab"));
}

// ---- connections that cannot be made

TEST_F(ClientPool, the_error_of_connecting_is_that_of_the_call) {
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome outcome;
  const http::Call call = fetch(outcome);
  EXPECT_FALSE(outcome.is_there());
  turns();
  EXPECT_EQ(outcome.error(), std::errc::connection_refused);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientPool, each_that_waits_is_told_of_an_error_of_its_own) {
  make_client({.max_per_origin = 1});
  open_error = std::make_error_code(std::errc::connection_refused);
  Outcome outcomes[3];
  std::vector<http::Call> calls;
  for (Outcome& outcome : outcomes) calls.push_back(fetch(outcome));
  turns();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error(), std::errc::connection_refused);
  EXPECT_EQ(opened.size(), 3u);
}

TEST_F(ClientPool, a_connection_that_nobody_waits_for_any_more_is_not_made) {
  Outcome outcome;
  http::Call call = fetch(outcome);
  call.cancel();
  turns();
  EXPECT_THAT(opened, IsEmpty());
  EXPECT_EQ(client_.metrics().connections, 0u);
}

}  // namespace
}  // namespace spate::testing
