// Notes over HTTP, with coroutines; json_api.cc has the callbacks. Each request that has to wait
// is a task: it reads its body, and calls a blocking database on a thread pool.
//   coro_api 8080    talk to it: curl -d 'buy milk' localhost:8080/notes
//                                curl localhost:8080/notes/1
//                                curl localhost:8080/notes/1/and/2
#include <charconv>
#include <csignal>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "spate/coro/offload.h"
#include "spate/coro/or_return.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "spate/http/coro.h"
#include "spate/http/router.h"

using namespace std::chrono_literals;
namespace coro = spate::coro;
using spate::Result;
using spate::http::Exchange;
using spate::http::FieldId;
using spate::http::Fields;
using spate::http::Status;

namespace {

// Stands for a slow database with a blocking client library. Any thread.
class Database {
 public:
  int insert(std::string text) {
    const auto lock = take();
    notes_[++last_] = std::move(text);
    return last_;
  }
  Result<std::string> find(int number) {
    const auto lock = take();
    const auto found = notes_.find(number);
    if (found != notes_.end()) return found->second;
    return std::unexpected(std::make_error_code(std::errc::no_such_file_or_directory));
  }

 private:
  std::unique_lock<std::mutex> take() {
    std::this_thread::sleep_for(5ms);
    return std::unique_lock(mutex_);
  }

  std::mutex mutex_;
  std::map<int, std::string> notes_;
  int last_ = 0;
};

// The pool is destroyed first, and waits for its running jobs.
struct Store {
  Database database;
  spate::ThreadPool pool;
};

int number_in(const Exchange& exchange, std::string_view name) {
  const std::string text = exchange.request().param(name);
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void answer(Exchange& exchange, const Result<std::string>& text) {
  if (text) {
    exchange.respond(*text + "\n");
  } else if (text.error() == std::errc::no_such_file_or_directory) {
    exchange.respond(Status::not_found);
  } else {
    exchange.respond(Status::service_unavailable);
  }
}

coro::Task<Result<std::string>> find(Store* store, int number) {
  const auto work = [store, number] { return store->database.find(number); };
  co_return co_await coro::offload(work, store->pool);
}

coro::Task<Result<std::string>> find_both(Store* store, int one, int other) {
  const auto both = co_await coro::or_return(coro::when_all(find(store, one), find(store, other)));
  co_return std::get<0>(both) + " and " + std::get<1>(both);
}

coro::Task<void> show(Exchange exchange, coro::Task<Result<std::string>> search) {
  const Result<std::string> text = co_await coro::with_deadline(2s, std::move(search));
  answer(exchange, text);
}

coro::Task<void> add(Exchange exchange, Store* store) {
  Result<coro::Received> note = co_await coro::read_body(std::move(exchange), 10'000);
  if (!note) co_return;
  auto work = [store, text = std::string(spate::text_of(note->body()))] {
    return store->database.insert(text);
  };
  const Result<int> number = co_await coro::offload(std::move(work), store->pool);
  if (!number) {
    note->exchange.respond(Status::service_unavailable);
    co_return;
  }
  Fields fields;
  fields.set(FieldId::location, "/notes/" + std::to_string(*number));
  note->exchange.respond(Status::created, fields);
}

void add_routes(spate::http::Router& router, coro::Scope& requests, Store& store) {
  router.post("/notes",
              [&](Exchange exchange) { requests.spawn(add(std::move(exchange), &store)); },
              {.max_body = 10'000});
  router.get("/notes/:number", [&](Exchange exchange) {
    auto search = find(&store, number_in(exchange, "number"));
    requests.spawn(show(std::move(exchange), std::move(search)));
  });
  router.get("/notes/:number/and/:other", [&](Exchange exchange) {
    auto search = find_both(&store, number_in(exchange, "number"), number_in(exchange, "other"));
    requests.spawn(show(std::move(exchange), std::move(search)));
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: coro_api [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  Store store;
  coro::Scope requests(*loop);
  spate::http::Router router;
  add_routes(router, requests, store);
  auto server = spate::must(spate::http::serve(*loop, address, router));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(5s, [&] { loop->stop(); }); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
