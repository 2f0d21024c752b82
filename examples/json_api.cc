// Notes over HTTP and JSON: a service with a database. The database blocks, so it is called on a
// thread pool while the loop continues.
//   json_api 8080    talk to it: curl --json '{"text": "buy milk"}' localhost:8080/notes
//                                curl localhost:8080/notes/1
//                                curl -X DELETE localhost:8080/notes/1
// needs: nlohmann_json (Debian: nlohmann-json3-dev)
#include <charconv>
#include <csignal>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "spate/http/nlohmann_json.h"
#include "spate/http/router.h"
#include "spate/offload.h"

using namespace std::chrono_literals;
using nlohmann::json;
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
  std::optional<std::string> find(int number) {
    const auto lock = take();
    const auto found = notes_.find(number);
    return found == notes_.end() ? std::nullopt : std::optional(found->second);
  }
  bool erase(int number) {
    const auto lock = take();
    return notes_.erase(number) != 0;
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

int number_of(const spate::http::Request& request) {
  const std::string text = request.param("number");
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class Api {
 public:
  explicit Api(spate::Loop& loop) : loop_(loop) {
    router_.post("/notes", [this](Exchange exchange) { add(std::move(exchange)); },
                 {.max_body = 10'000, .deadline = 10s});
    router_.get("/notes/:number", [this](Exchange exchange) { show(std::move(exchange)); });
    router_.del("/notes/:number", [this](Exchange exchange) { remove(std::move(exchange)); });
  }
  spate::http::Service& service() { return router_; }

 private:
  void add(Exchange exchange) {
    read_json(std::move(exchange), [this](Exchange whole, const json& note) {
      const auto text = note.find("text");
      if (!note.is_object() || text == note.end() || !text->is_string()) {
        respond_problem(whole, Status::bad_request, "a note is an object with a string \"text\"");
        return;
      }
      ask(
          std::move(whole),
          [this, text = text->get<std::string>()] { return database_.insert(text); },
          [](Exchange& answered, int number) {
            Fields fields;
            fields.set(FieldId::location, "/notes/" + std::to_string(number));
            answered.respond(Status::created, fields);
          });
    });
  }
  void show(Exchange exchange) {
    const int number = number_of(exchange.request());
    ask(
        std::move(exchange), [this, number] { return database_.find(number); },
        [](Exchange& answered, const std::optional<std::string>& text) {
          if (!text) return respond_problem(answered, Status::not_found, "there is no such note");
          return respond_json(answered, {{"text", *text}});
        });
  }
  void remove(Exchange exchange) {
    const int number = number_of(exchange.request());
    ask(
        std::move(exchange), [this, number] { return database_.erase(number); },
        [](Exchange& answered, bool was_there) {
          answered.respond(was_there ? Status::no_content : Status::not_found);
        });
  }

  // Calls `work` on a thread of the pool, then `answer` with its result on the loop. The Exchange
  // is kept meanwhile. If its client disconnects, responding has no effect.
  template <class Work, class Answer>
  void ask(Exchange exchange, Work work, Answer answer) {
    const int job = ++last_job_;
    auto done = [this, job, answer, waiting = std::move(exchange)](auto result) mutable {
      answer(waiting, std::move(result));
      jobs_.erase(job);
    };
    auto started = offload(loop_, std::move(work), std::move(done));
    if (started) jobs_[job] = std::move(*started);  // Otherwise the Exchange is destroyed: 500.
  }

  spate::Loop& loop_;
  spate::http::Router router_;
  Database database_;
  std::map<int, spate::Offloading> jobs_;
  int last_job_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: json_api [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  Api api(*loop);
  auto server = spate::must(spate::http::serve(*loop, address, api.service()));

  spate::must(loop->on_signal(SIGTERM, [&] { server.drain(5s, [&] { loop->stop(); }); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
