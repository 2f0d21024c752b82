#include "http/vector_gateway.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/vector_reader.h"
#include "spate/http/gateway.h"
#include "spate/http/server.h"
#include "spate/loop.h"
#include "spate/net/stream.h"

namespace spate::http {

namespace {

// A server that parses as the codec does, and responds to everything with 200.
class Upstream final : public StreamHandler {
 public:
  explicit Upstream(Stream stream) : stream_(std::move(stream)) { stream_.start(*this); }

  const std::vector<Message>& messages() const { return reader_.messages(); }
  std::size_t on_data(Bytes bytes) override {
    const std::size_t used = reader_.on_data(text_of(bytes));
    for (; answered_ < messages().size() && messages()[answered_].is_whole; ++answered_)
      stream_.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    if (reader_.awaits_continue()) stream_.write("HTTP/1.1 100 Continue\r\n\r\n");
    return used;
  }
  void on_closed(std::error_code) override {}

 private:
  Stream stream_;
  Reader reader_{true, Method::get};
  std::size_t answered_ = 0;
};

class Way {
 public:
  // The pieces are one turn apart.
  std::vector<Message> go(std::string_view bytes, std::size_t first) {
    auto [mine, theirs] = must(Stream::memory_pair(*loop_));
    mine.start({});
    server_.add(std::move(theirs));
    for (const std::string_view piece : {bytes.substr(0, first), bytes.substr(first)}) {
      if (!piece.empty()) mine.write(piece);
      for (int i = 0; i < 60; ++i) loop_->run(Run::no_wait);
    }
    std::vector<Message> all;
    for (const auto& upstream : upstreams_)
      all.insert(all.end(), upstream->messages().begin(), upstream->messages().end());
    return all;
  }

 private:
  GatewayOptions options() {
    GatewayOptions options;
    options.client.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      auto [mine, theirs] = must(Stream::memory_pair(*loop_));
      upstreams_.push_back(std::make_unique<Upstream>(std::move(theirs)));
      return std::move(mine);
    };
    return options;
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  std::vector<std::unique_ptr<Upstream>> upstreams_;
  Gateway gateway_ = must(Gateway::create(*loop_, options()));
  Server server_ = must(Server::create(
      *loop_, [this](Exchange exchange) { gateway_.forward(std::move(exchange), "http://up"); }));
};

// Returns the request line that the upstream should see: the host of an absolute target moves to
// Host.
std::string forwarded_line(const std::string& line) {
  const std::size_t host = line.find("://");
  if (host == std::string::npos || line.find(" /") < host) return line;
  const std::size_t path = line.find_first_of("/?", host + 3);
  const std::string method = line.substr(0, line.find(' ') + 1);
  if (path == std::string::npos) return method + "/";
  return method + (line[path] == '?' ? "/" : "") + line.substr(path);
}

std::vector<Message> forwarded(std::string_view bytes) {
  Reader reader(true, Method::get);
  reader.on_data(bytes);
  std::vector<Message> messages = reader.messages();
  std::erase_if(messages, [](const Message& each) { return each.line.starts_with("CONNECT "); });
  for (Message& message : messages) message.line = forwarded_line(message.line);
  return messages;
}

// A message that breaks off is followed by a reset, so a part of it may be lost.
bool is_as_sent(const Message& got, const Message& sent) {
  if (got.line != sent.line || got.is_whole != sent.is_whole) return false;
  if (!sent.is_whole) return sent.body.starts_with(got.body);
  return got.body == sent.body && got.trailers == sent.trailers;
}

bool are_as_sent(const std::vector<Message>& got, const std::vector<Message>& sent) {
  const bool is_last_lost = got.size() + 1 == sent.size() && !sent.back().is_whole && !sent.empty();
  return (got.size() == sent.size() || is_last_lost) &&
         std::equal(got.begin(), got.end(), sent.begin(), is_as_sent);
}

}  // namespace

bool holds_through_gateway(const Vector& vector) {
  // It has the maximum number of fields, and the upstream accepts no more.
  if (vector.name == "fields-most") return true;
  const std::size_t size = vector.bytes.size();
  const std::vector<Message> sent = forwarded(vector.bytes);
  const std::size_t stride = std::max<std::size_t>(size / 8, 1);
  for (std::size_t first = stride; first <= size; first += stride) {
    const std::vector<Message> got = Way().go(vector.bytes, first);
    if (are_as_sent(got, sent)) continue;
    std::printf("%s, %zu bytes first:\n", vector.name.c_str(), first);
    for (const Message& message : got)
      std::printf("  %s, %zu bytes\n", message.line.c_str(), message.body.size());
    return false;
  }
  return true;
}

}  // namespace spate::http
