// A gRPC server and client, with coroutines: framed messages in both directions over one HTTP/2
// request, and the status in the trailers. Both work with other implementations of gRPC
// (tests/examples/coro_grpc.py).
//   coro_grpc serve 8080
//   coro_grpc http://localhost:8080 1000 Greet you       one message, one response
//   coro_grpc http://localhost:8080 1000 Spell abc       several responses
//   coro_grpc http://localhost:8080 1000 Join a b c      several messages, one response
//   coro_grpc http://localhost:8080 1000 Shout a b c     a response to each as it arrives
//   coro_grpc http://localhost:8080 1000 Tick            endless, until the deadline: 1 s
//
// The service in protobuf's language, implemented here in a dozen lines without protobuf:
//   package demo;
//   message Text { string text = 1; }
//   service Talk {
//     rpc Greet(Text) returns (Text);               rpc Spell(Text) returns (stream Text);
//     rpc Join(stream Text) returns (Text);         rpc Shout(stream Text) returns (stream Text);
//     rpc Tick(Text) returns (stream Text);
//   }
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"
#include "spate/http/client.h"
#include "spate/http/coro_call.h"
#include "spate/http/coro_exchange.h"
#include "spate/http/http2.h"
#include "spate/http/router.h"
#include "spate/net/framing.h"

using namespace std::chrono_literals;
namespace coro = spate::coro;
namespace http = spate::http;
using spate::Bytes;
using spate::Nanos;
using spate::Result;
using Done = coro::Task<Result<void>>;

namespace {

// ---- messages

constexpr std::string_view kService = "/demo.Talk/";
constexpr std::string_view kType = "application/grpc";
// A frame header: a byte for the compression, and the length.
constexpr std::size_t kHead = 5;
constexpr spate::LengthField kFrames{.offset = 1, .max = 4 << 20, .keep_header = true};

std::unexpected<std::error_code> failure(std::errc why) {
  return std::unexpected(std::make_error_code(why));
}

// Encodes field 1, of the length-delimited kind.
constexpr char kTag = 1 << 3 | 2;

std::string framed(std::string_view text) {
  std::string message(1, kTag);
  std::size_t size = text.size();
  for (; size >= 0x80; size >>= 7) message += static_cast<char>(size | 0x80);
  message.append(1, static_cast<char>(size)).append(text);
  std::array<std::byte, 4> length{};
  kFrames.write(message.size(), length);
  return std::string(1, '\0').append(spate::text_of(length)) + message;
}

std::optional<std::uint64_t> take_number(std::string_view& from) {
  std::uint64_t number = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
  return {};
}

Result<std::string> text_in(std::string_view message) {
  if (message.empty()) return std::string();
  message.remove_prefix(message.front() == kTag ? 1 : 0);
  const std::optional<std::uint64_t> size = take_number(message);
  if (!size || *size != message.size()) return failure(std::errc::bad_message);
  return std::string(message);
}

// Reads the messages of the body of a coro::Exchange or a coro::Call.
template <class Body>
class Texts {
 public:
  explicit Texts(Body& body) : body_(body) {}

  // Returns nothing at the end.
  coro::Task<Result<std::optional<std::string>>> next() {
    const Result<Bytes> message = co_await body_.read(kFrames);
    if (message) co_return take(*message);
    if (message.error() == spate::Error::ended) co_return std::optional<std::string>();
    if (message.error() == spate::Error::truncated) co_return failure(std::errc::bad_message);
    if (message.error() == std::errc::bad_message) co_return failure(std::errc::message_size);
    co_return std::unexpected(message.error());
  }
  coro::Task<Result<std::string>> only() {
    const std::optional<std::string> text = co_await coro::or_return(next());
    if (!text) co_return failure(std::errc::bad_message);
    co_return *text;
  }

 private:
  static Result<std::optional<std::string>> take(Bytes message) {
    if (message[0] != std::byte{0}) return failure(std::errc::not_supported);
    return text_in(spate::text_of(message.subspan(kHead)));
  }

  Body& body_;
};

// ---- status

enum class Code {
  ok = 0,
  cancelled = 1,
  invalid = 3,
  late = 4,
  too_long = 8,
  unknown_method = 12,
  unavailable = 14
};

std::string_view name_of(Code code) {
  switch (code) {
    case Code::ok:
      return "OK";
    case Code::cancelled:
      return "CANCELLED";
    case Code::invalid:
      return "INVALID_ARGUMENT";
    case Code::late:
      return "DEADLINE_EXCEEDED";
    case Code::too_long:
      return "RESOURCE_EXHAUSTED";
    case Code::unknown_method:
      return "UNIMPLEMENTED";
    case Code::unavailable:
      return "UNAVAILABLE";
  }
  return "UNKNOWN";
}

Code code_of(const Result<void>& done) {
  if (done) return Code::ok;
  if (done.error() == spate::Error::deadline) return Code::late;
  if (done.error() == std::errc::bad_message) return Code::invalid;
  if (done.error() == std::errc::message_size) return Code::too_long;
  if (done.error() == std::errc::not_supported) return Code::unknown_method;
  if (done.error() == std::errc::not_enough_memory) return Code::unavailable;
  return Code::cancelled;  // The client disconnected.
}

Code code_in(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return static_cast<Code>(number);
}

// Parses a grpc-timeout: "100m" is a tenth of a second.
std::optional<Nanos> time_in(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end + 1 != text.data() + text.size() || count < 0) return {};
  if (text.size() > 9) return {};
  switch (*end) {
    case 'n':
      return Nanos(count);
    case 'u':
      return count * 1us;
    case 'm':
      return count * 1ms;
    case 'S':
      return count * 1s;
    case 'M':
      return count * 1min;
    case 'H':
      return std::min<std::int64_t>(count, 1'000'000) * 1h;
    default:
      return {};
  }
}

// ---- the server

struct Talk {
  explicit Talk(http::Exchange accepted) : exchange(std::move(accepted)), texts(exchange) {}

  auto tell(std::string_view text) { return exchange.send(framed(text)); }

  coro::Exchange exchange;
  Texts<coro::Exchange> texts;
};

Done greet(Talk* talk) {
  const std::string name = co_await coro::or_return(talk->texts.only());
  const std::string greeting = "hello " + name;
  co_return co_await talk->tell(greeting);
}

Done spell(Talk* talk) {
  const std::string word = co_await coro::or_return(talk->texts.only());
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::string_view letter = std::string_view(word).substr(i, 1);
    co_await coro::or_return(talk->tell(letter));
  }
  co_return {};
}

Done join(Talk* talk) {
  std::string all;
  for (;;) {
    const std::optional<std::string> text = co_await coro::or_return(talk->texts.next());
    if (!text) break;
    all += (all.empty() ? "" : " ") + *text;
  }
  co_return co_await talk->tell(all);
}

Done shout(Talk* talk) {
  for (;;) {
    std::optional<std::string> text = co_await coro::or_return(talk->texts.next());
    if (!text) co_return {};
    for (char& letter : *text) letter = static_cast<char>(std::toupper(letter));
    *text += "!";
    co_await coro::or_return(talk->tell(*text));
  }
}

Done tick(Talk* talk) {
  for (int number = 1;; ++number) {
    const std::string text = std::to_string(number);
    co_await coro::or_return(talk->tell(text));
    co_await coro::sleep(50ms);
  }
}

Done unknown(Talk*) { co_return failure(std::errc::not_supported); }

using Method = Done (*)(Talk* talk);

Method method_of(std::string_view name) {
  constexpr std::pair<std::string_view, Method> kMethods[] = {
      {"Greet", greet}, {"Spell", spell}, {"Join", join}, {"Shout", shout}, {"Tick", tick}};
  for (const auto& [known, method] : kMethods)
    if (known == name) return method;
  return unknown;
}

// Runs `task` with a deadline, if there is one.
Done within(std::optional<Nanos> limit, Done task) {
  if (!limit) co_return co_await std::move(task);
  co_return co_await coro::with_deadline(*limit, std::move(task));
}

void finish(Talk& talk, const Result<void>& done) {
  const Code code = code_of(done);
  http::Fields trailers;
  trailers.add("grpc-status", std::to_string(static_cast<int>(code)));
  if (!done) trailers.add("grpc-message", done.error().message());
  talk.exchange.end(trailers);
  std::cout << talk.exchange.request().param("method") << " " << name_of(code) << std::endl;
}

coro::Task<void> serve(http::Exchange exchange) {
  Talk talk(std::move(exchange));
  const http::Request& request = talk.exchange.request();
  http::Fields fields;
  fields.set(http::FieldId::content_type, kType);
  talk.exchange.exchange().begin(http::Status::ok, fields);
  const Method method = method_of(request.param("method"));
  const Result<void> done =
      co_await within(time_in(request.fields()["grpc-timeout"]), method(&talk));
  finish(talk, done);
}

int serve_at(spate::Loop& loop, std::string_view where) {
  const auto address = spate::must(spate::Address::parse_listen(where));
  // A call may be silent for any time.
  http::ServerOptions options{.body_timeout = 0s, .min_body_rate = 0};
  options.http2 = spate::must(http::Http2::create());
  coro::Scope calls(loop);
  http::Router router;
  router.post(std::string(kService) + ":method", [&](http::Exchange exchange) {
    if (!exchange.request()[http::FieldId::content_type].starts_with(kType)) {
      exchange.respond(http::Status::unsupported_media_type);
    } else {
      calls.spawn(serve(std::move(exchange)));
    }
  });
  auto server = spate::must(http::serve(loop, address, router, std::move(options)));
  spate::must(loop.on_signal(SIGTERM, [&] { server.drain(5s, [&] { loop.stop(); }); }));
  std::cout << server.address().to_string() << std::endl;
  loop.run();
  return 0;
}

// ---- the client

struct Question {
  std::string url;
  Nanos timeout;
  std::vector<std::string> texts;
};

// If a send fails, the response has the reason.
Done send_all(coro::Call* call, const std::vector<std::string>* texts) {
  for (const std::string& text : *texts) {
    const std::string message = framed(text);
    const Result<void> sent = co_await call->send(message);
    if (!sent) co_return {};
  }
  call->end();
  co_return {};
}

Done show_all(coro::Call* call) {
  Texts<coro::Call> texts(*call);
  for (;;) {
    const std::optional<std::string> text = co_await coro::or_return(texts.next());
    if (!text) co_return {};
    std::cout << *text << std::endl;
  }
}

http::CallOptions options_for(const Question& question) {
  http::CallOptions options{.method = http::Method::post,
                            .upload = http::kUnknownSize,
                            .deadline = question.timeout,
                            .accept_trailers = true};
  options.fields.set(http::FieldId::content_type, kType);
  options.fields.set("grpc-timeout", std::to_string(question.timeout / 1ms) + "m");
  return options;
}

// A response without a body has its trailers in the header section.
coro::Task<Result<Code>> ask(http::Client* client, const Question* question) {
  coro::Call call(*client, question->url, options_for(*question));
  co_await coro::or_return(coro::when_all(send_all(&call, &question->texts), show_all(&call)));
  const http::Response* head = co_await coro::or_return(call.response());
  if (!head->is_success()) co_return Code::unavailable;
  const std::string_view at_once = head->fields()["grpc-status"];
  co_return code_in(at_once.empty() ? call.trailers()["grpc-status"] : at_once);
}

int ask_for(spate::Loop& loop, const Question& question) {
  auto client = spate::must(http::Client::create(
      loop, {.http2 = spate::must(http::Http2::create()), .http2_without_tls = true}));
  spate::must(loop.on_signal(SIGINT, [&] { loop.stop(); }));
  const Result<Code> told = coro::run(loop, ask(&client, &question));
  const bool is_late = !told && told.error() == spate::Error::deadline;
  const Code code = told.value_or(is_late ? Code::late : Code::unavailable);
  std::cout << name_of(code) << std::endl;
  return code == Code::ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  auto loop = spate::must(spate::Loop::create());
  if (words.size() == 2 && words[0] == "serve") return serve_at(*loop, words[1]);
  if (words.size() < 3) {
    std::cerr << "usage: coro_grpc serve [HOST:]PORT | URL MILLISECONDS METHOD [TEXT...]\n";
    return 2;
  }
  const auto timeout = time_in(std::string(words[1]) + "m");
  if (!timeout)
    return std::cerr << "coro_grpc: not a number of milliseconds: " << words[1] << "\n", 2;
  Question question = {.url = std::string(words[0]).append(kService).append(words[2]),
                       .timeout = *timeout,
                       .texts = {words.begin() + 3, words.end()}};
  if (question.texts.empty()) question.texts.emplace_back();
  return ask_for(*loop, question);
}
