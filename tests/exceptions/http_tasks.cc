// Tasks of coro::handler().
#include <string>
#include <utility>

#include "exceptions/http_cases.h"
#include "spate/coro/time.h"
#include "spate/http/coro.h"
#include "spate/http/coro_exchange.h"
#include "spate/http/coro_handler.h"
#include "spate/http/coro_websocket.h"

namespace spate::testing {
namespace {

using coro::Task;
using http::Exchange;
using http::Status;

const std::string kLong(300'000, 'x');

template <class Handler>
std::string get(Site& site, Handler handler) {
  site.router.get("/case", coro::handler(site.scope, handler));
  site.serve();
  std::string seen = site.ask("/case");
  return site.scope.empty() ? seen : seen + ", and the task is left";
}

template <class Handler>
std::string post(Site& site, Handler handler) {
  site.router.post("/case", coro::handler(site.scope, handler));
  site.serve();
  return site.ask("/case", {.method = http::Method::post, .body = bytes_of(kLong)});
}

Task<void> throw_at_once(Exchange) {
  fail();
  co_return;
}

Task<void> throw_later(Exchange) {
  co_await coro::next_turn();
  fail();
}

Task<int> throw_inside() {
  co_await coro::next_turn();
  fail();
}

Task<void> throw_in_a_child(Exchange exchange) {
  const int value = co_await throw_inside();
  exchange.respond(std::to_string(value));
}

Task<void> throw_in_a_response(Exchange exchange) {
  exchange.begin(Status::ok);
  exchange.write("a part");
  co_await coro::next_turn();
  fail();
}

Task<void> throw_after_a_response(Exchange exchange) {
  exchange.respond("all of it");
  co_await coro::next_turn();
  fail();
}

Task<Result<void>> throw_with_a_result(Exchange) {
  co_await coro::next_turn();
  fail();
}

Task<void> throw_with_the_body(Exchange exchange) {
  Result<coro::Received> received = co_await coro::read_body(std::move(exchange), kLong.size());
  if (received && received->body().size() == kLong.size()) fail();
}

Task<void> throw_in_the_body(Exchange asked) {
  coro::Exchange exchange(std::move(asked));
  const Result<Bytes> piece = co_await exchange.read();
  if (piece) fail();
}

Task<void> throw_in_a_websocket(Exchange exchange) {
  coro::WebSocket socket;
  if (socket.accept(std::move(exchange))) co_return;
  const Result<coro::Message> message = co_await socket.receive();
  for (int i = 0; i < 10; ++i) co_await coro::next_turn();  // Until the record was made.
  if (message) fail();
}

std::string at_once(Site& site) { return get(site, throw_at_once); }
std::string later(Site& site) { return get(site, throw_later); }
std::string in_a_child(Site& site) { return get(site, throw_in_a_child); }
std::string in_a_response(Site& site) { return get(site, throw_in_a_response); }
std::string after_a_response(Site& site) { return get(site, throw_after_a_response); }
std::string with_a_result(Site& site) { return get(site, throw_with_a_result); }
std::string with_the_body(Site& site) { return post(site, throw_with_the_body); }
std::string in_the_body(Site& site) { return post(site, throw_in_the_body); }

std::string in_a_websocket(Site& site) {
  site.router.get("/case", coro::handler(site.scope, throw_in_a_websocket));
  site.serve();
  return talk(site, {});
}

// A function object, which destroys the server and the router that own it. It is kept for its task.
struct Replacer {
  Task<void> operator()(Exchange exchange) {
    co_await coro::next_turn();
    site->server = http::Server();
    site->router = http::Router();
    co_await coro::next_turn();
    exchange.respond(*text);
    fail();
  }

  Site* site;
  std::shared_ptr<std::string> text;
};

std::string with_a_function_object(Site& site) {
  const Replacer replacer{.site = &site, .text = std::make_shared<std::string>(kLong)};
  const std::string seen = get(site, replacer);
  site.router.get("/good", [](Exchange exchange) { exchange.respond("good"); });
  site.options.http2 = must(http::Http2::create());
  site.serve();
  return seen;
}

constexpr Case kCases[] = {
    {.name = "a task, at once", .run = at_once},
    {.name = "a task, after a wait", .run = later},
    {.name = "a task, in one that it awaits", .run = in_a_child},
    {.name = "a task, in its response", .run = in_a_response, .seen = "reset"},
    // The record is made before.
    {.name = "a task, after its response", .run = after_a_response, .seen = "200", .logged = 0},
    {.name = "a task with a Result", .run = with_a_result},
    {.name = "a task, after coro::read_body()", .run = with_the_body},
    {.name = "a task, after coro::Exchange::read()", .run = in_the_body},
    {.name = "a task, after coro::WebSocket::receive()",
     .run = in_a_websocket,
     .seen = "closed 1001",
     .logged = 0},
    {.name = "a task whose server is gone",
     .run = with_a_function_object,
     .seen = "reset",
     .reports = 0,
     .logged = 0},
};

}  // namespace

std::span<const Case> task_cases() { return kCases; }

}  // namespace spate::testing
