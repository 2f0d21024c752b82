// A chat in the browser: messages arrive by POST, and are sent to all by server-sent events.
//   events_chat 8080    look at it, in several windows: http://localhost:8080/
#include <csignal>
#include <iostream>
#include <string>
#include <utility>

#include "spate/http/events.h"
#include "spate/http/router.h"

using namespace std::chrono_literals;
using spate::http::EventChannel;
using spate::http::EventStream;
using spate::http::Exchange;
using spate::http::Status;

namespace {

constexpr std::string_view kPage = R"(<!DOCTYPE html>
<meta charset="utf-8">
<title>chat</title>
<ul id="said"></ul>
<form><input autofocus> <button>say</button></form>
<script>
const events = new EventSource("/events");
const show = text => {
  const line = document.createElement("li");
  line.textContent = text;
  document.getElementById("said").append(line);
};
events.onmessage = event => show(event.data);
events.addEventListener("count", event => document.title = event.data + " here");
document.forms[0].onsubmit = event => {
  event.preventDefault();
  const input = event.target.elements[0];
  fetch("/say", {method: "POST", body: input.value});
  input.value = "";
};
</script>
)";

class Chat {
 public:
  Chat() {
    router_.get("/", [](Exchange exchange) {
      exchange.respond(Status::ok, kPage, "text/html; charset=utf-8");
    });
    router_.get("/events", [this](Exchange exchange) { join(std::move(exchange)); });
    router_.post("/say", [this](Exchange exchange) { say(std::move(exchange)); });
  }
  spate::http::Service& service() { return router_; }

 private:
  void join(Exchange exchange) {
    EventStream stream = EventStream::open(std::move(exchange));
    stream.set_on_closed([this](std::error_code) { tell_count(); });
    if (channel_.add(std::move(stream))) tell_count();
  }
  void say(Exchange exchange) {
    read_body(std::move(exchange), 1000, [this](Exchange whole, spate::Bytes body) {
      channel_.publish(spate::text_of(body));
      whole.respond(Status::no_content);
    });
  }
  void tell_count() {
    channel_.publish({.data = std::to_string(channel_.size()), .event = "count"});
  }

  spate::http::Router router_;
  EventChannel channel_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: events_chat [HOST:]PORT\n";
    return 2;
  }
  auto loop = spate::must(spate::Loop::create());
  const auto address = spate::must(spate::Address::parse_listen(argv[1]));
  Chat chat;
  auto server = spate::must(spate::http::serve(*loop, address, chat.service()));

  spate::must(loop->on_signal(SIGTERM, [&] { loop->stop(); }));
  std::cout << server.address().to_string() << std::endl;
  loop->run();
}
