// Compressed responses: which are compressed, for which clients, and their header sections.
#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <random>
#include <vector>

#include "base/fault.h"
#include "http/harness.h"
#include "spate/http/compression.h"
#include "support/own_file.h"

namespace spate::testing {
namespace {

using http::Compression;
using http::Exchange;
using http::FieldId;
using http::Fields;
using http::Status;
using ::testing::HasSubstr;
using ::testing::Not;

class CompressedAnswers : public HttpServerTest {
 protected:
  CompressedAnswers() { serve_compressed({}); }

  void serve_compressed(http::ServerOptions options) {
    options.compression = Compression::by_type;
    serve_with(std::move(options));
  }
  std::string get(std::string_view accepted = "gzip", std::string_view method = "GET",
                  std::string_view version = "HTTP/1.1") {
    std::string request(method);
    request.append(" / ").append(version).append("\r\nHost: a\r\n");
    if (!accepted.empty()) request.append("Accept-Encoding: ").append(accepted).append("\r\n");
    const auto client = connect();
    client->send(request + "\r\n");
    turns(100);
    return client->received;
  }
  static std::string head(const std::string& answer) {
    return answer.substr(0, answer.find("\r\n\r\n") + 2);
  }
  static std::string body(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
  static std::string unchunked(std::string_view rest) {
    std::string text;
    for (;;) {
      const std::size_t size = std::stoul(std::string(rest.substr(0, 8)), nullptr, 16);
      rest.remove_prefix(rest.find("\r\n") + 2);
      if (size == 0) return text;
      text += rest.substr(0, size);
      rest.remove_prefix(size + 2);
    }
  }
  // Returns "?" if it is incomplete.
  static std::string decompressed(std::string_view coded) {
    auto decompressor = must(http::Decompressor::make(http::Coding::gzip, 100'000'000));
    Buffer target;
    Bytes bytes = bytes_of(coded);
    decompressor.next(bytes, target);
    if (!decompressor.is_done() || !bytes.empty()) return "?";
    return std::string(text_of(target.flat(target.size())));
  }
  static bool is_coded(const std::string& answer) {
    return head(answer).contains("\r\nContent-Encoding: gzip\r\n");
  }
  static std::string text(std::size_t size) {
    std::string made;
    for (int i = 0; made.size() < size; ++i) made += "line " + std::to_string(i) + "\n";
    made.resize(size);
    return made;
  }
  static std::string noise(std::size_t size) {
    std::mt19937 random(1);
    std::string made(size, '\0');
    for (char& c : made) c = static_cast<char>(random());
    return made;
  }
  void answer_with(std::string content) {
    on_request = [content = std::move(content)](Exchange exchange) { exchange.respond(content); };
  }
};

TEST_F(CompressedAnswers, AreSentToClientsThatAcceptGzip) {
  const std::string plain = text(10'000);
  answer_with(plain);
  for (const char* accepted : {"gzip", "br, gzip", "gzip;q=0.5", "*", "x-gzip"}) {
    const std::string answer = get(accepted);
    EXPECT_TRUE(is_coded(answer)) << accepted;
    EXPECT_THAT(head(answer), HasSubstr("\r\nVary: Accept-Encoding\r\n")) << accepted;
    EXPECT_THAT(head(answer),
                HasSubstr("\r\nContent-Length: " + std::to_string(body(answer).size()) + "\r\n"));
    EXPECT_LT(body(answer).size(), plain.size() / 2);
    EXPECT_EQ(decompressed(body(answer)), plain) << accepted;
  }
}

TEST_F(CompressedAnswers, AreNotSentWithoutAcceptableCoding) {
  const std::string plain = text(10'000);
  answer_with(plain);
  for (const char* accepted : {"", "identity", "br", "gzip;q=0", "gzip;q=0.5, identity"}) {
    const std::string answer = get(accepted);
    EXPECT_FALSE(is_coded(answer)) << accepted;
    EXPECT_THAT(head(answer), HasSubstr("\r\nVary: Accept-Encoding\r\n")) << accepted;
    EXPECT_EQ(body(answer), plain) << accepted;
  }
}

TEST_F(CompressedAnswers, AreDisabledByDefault) {
  answer_with(text(10'000));
  serve_with({});
  EXPECT_FALSE(is_coded(get()));
  EXPECT_THAT(get(), Not(HasSubstr("Vary")));
}

TEST_F(CompressedAnswers, AreConfigurablePerExchange) {
  const std::string plain = text(10'000);
  Compression wanted = Compression::none;
  on_request = [&](Exchange exchange) {
    exchange.set_compression(wanted);
    exchange.respond(plain);
  };
  EXPECT_FALSE(is_coded(get()));
  serve_with({});
  wanted = Compression::by_type;
  EXPECT_TRUE(is_coded(get()));
  answer_with(plain);  // The next exchange has the default again.
  EXPECT_FALSE(is_coded(get()));
}

TEST_F(CompressedAnswers, HaveMinimumAndMaximumLength) {
  answer_with(text(1023));
  EXPECT_FALSE(is_coded(get()));
  answer_with(text(1024));
  EXPECT_TRUE(is_coded(get()));
  on_request = [](Exchange exchange) {
    Fields fields;
    fields.set(FieldId::content_type, "text/plain");
    exchange.begin(Status::ok, fields, 8 * 1024 * 1024 + 1);
    exchange.abort();
  };
  EXPECT_FALSE(is_coded(get()));
}

TEST_F(CompressedAnswers, HaveCompressibleType) {
  const std::string plain = text(10'000);
  std::string type;
  on_request = [&](Exchange exchange) { exchange.respond(Status::ok, plain, type); };
  for (const char* each : {"text/html; charset=utf-8", "application/json", "image/svg+xml"}) {
    type = each;
    EXPECT_TRUE(is_coded(get())) << each;
  }
  for (const char* each : {"image/png", "application/zip", "video/mp4", "font/woff2"}) {
    type = each;
    EXPECT_FALSE(is_coded(get())) << each;
    EXPECT_THAT(get(), Not(HasSubstr("Vary"))) << each;
  }
}

TEST_F(CompressedAnswers, AreNotLongerThanOriginal) {
  const std::string plain = noise(10'000);
  answer_with(plain);
  const std::string answer = get();
  EXPECT_FALSE(is_coded(answer));
  EXPECT_EQ(body(answer), plain);
}

TEST_F(CompressedAnswers, AreNotMadeFromResponsesThatMustStayUnchanged) {
  const std::string plain = text(10'000);
  const std::pair<const char*, const char*> fields_of[] = {{"Content-Encoding", "br"},
                                                           {"Accept-Ranges", "bytes"},
                                                           {"Content-Range", "bytes 0-9999/20000"},
                                                           {"Cache-Control", "no-transform"}};
  for (const auto& [name, value] : fields_of) {
    on_request = [&](Exchange exchange) {
      Fields fields;
      fields.set(FieldId::content_type, "text/plain");
      fields.set(name, value);
      exchange.respond(Status::ok, fields, bytes_of(plain));
    };
    const std::string answer = get();
    EXPECT_FALSE(is_coded(answer)) << name;
    EXPECT_THAT(head(answer), Not(HasSubstr("Vary"))) << name;
    EXPECT_EQ(body(answer), plain) << name;
  }
}

TEST_F(CompressedAnswers, HaveWeakETag) {
  const std::string plain = text(10'000);
  std::string tag = "\"x\"";
  on_request = [&](Exchange exchange) {
    Fields fields;
    fields.set(FieldId::content_type, "text/plain");
    fields.set(FieldId::vary, "Cookie");
    fields.set(FieldId::etag, tag);
    exchange.respond(Status::ok, fields, bytes_of(plain));
  };
  EXPECT_THAT(head(get()), HasSubstr("\r\nETag: W/\"x\"\r\n"));
  EXPECT_THAT(head(get()), HasSubstr("\r\nVary: Cookie\r\n"));
  EXPECT_THAT(head(get()), HasSubstr("\r\nVary: Accept-Encoding\r\n"));
  EXPECT_THAT(head(get("")), HasSubstr("\r\nETag: \"x\"\r\n"));
  tag = "W/\"x\"";
  EXPECT_THAT(head(get()), HasSubstr("\r\nETag: W/\"x\"\r\n"));
}

TEST_F(CompressedAnswers, HaveSameHeaderSectionForHead) {
  answer_with(text(10'000));
  EXPECT_EQ(get("gzip", "HEAD"), head(get()) + "\r\n");
  on_request = [](Exchange exchange) {
    Fields fields;
    fields.set(FieldId::content_type, "text/plain");
    exchange.begin(Status::ok, fields, 5000);
    exchange.write(text(5000));
    exchange.end();
  };
  const auto client = connect();
  for (int i = 0; i < 2; ++i) {  // The connection stays open.
    client->received.clear();
    client->send("HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    turns();
    EXPECT_TRUE(is_coded(client->received));
    EXPECT_EQ(body(client->received), "");
  }
}

TEST_F(CompressedAnswers, AreNotMadeWithoutBody) {
  for (const Status status : {Status::no_content, Status::not_modified}) {
    on_request = [&](Exchange exchange) {
      Fields fields;
      fields.set(FieldId::content_type, "text/plain");
      exchange.respond(status, fields);
    };
    EXPECT_FALSE(is_coded(get()));
    EXPECT_EQ(body(get()), "");
  }
}

TEST_F(CompressedAnswers, AreMadeFromBuffers) {
  const std::string plain = text(200'000);
  on_request = [&](Exchange exchange) {
    Buffer buffer;
    for (std::size_t at = 0; at < plain.size(); at += 1000)
      buffer.append(std::string_view(plain).substr(at, 1000));
    Fields fields;
    fields.set(FieldId::content_type, "text/plain");
    EXPECT_TRUE(exchange.respond(Status::ok, fields, std::move(buffer)));
  };
  const std::string answer = get();
  EXPECT_TRUE(is_coded(answer));
  EXPECT_EQ(decompressed(body(answer)), plain);
}

// ---- in pieces

class CompressedPieces : public CompressedAnswers {
 protected:
  CompressedPieces() { fields_.set(FieldId::content_type, "text/plain"); }
  Fields fields_;
};

TEST_F(CompressedPieces, AreChunked) {
  const std::string plain = text(50'000);
  for (const std::optional<std::uint64_t> size :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(plain.size())}) {
    on_request = [&](Exchange exchange) {
      EXPECT_TRUE(exchange.begin(Status::ok, fields_, size));
      EXPECT_TRUE(exchange.write(std::string_view(plain).substr(0, 20'000)));
      Buffer buffer;
      buffer.append(std::string_view(plain).substr(20'000));
      EXPECT_TRUE(exchange.write(std::move(buffer)));
      EXPECT_TRUE(buffer.empty());
      EXPECT_TRUE(exchange.end());
    };
    const std::string answer = get();
    EXPECT_TRUE(is_coded(answer));
    EXPECT_THAT(head(answer), HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
    EXPECT_THAT(head(answer), Not(HasSubstr("Content-Length")));
    EXPECT_EQ(decompressed(unchunked(body(answer))), plain);
  }
}

TEST_F(CompressedPieces, EnforceDeclaredSize) {
  on_request = [&](Exchange exchange) {
    EXPECT_TRUE(exchange.begin(Status::ok, fields_, 2000));
    EXPECT_TRUE(exchange.write(text(1500)));
    EXPECT_FALSE(exchange.write(text(501)));
    EXPECT_FALSE(exchange.end());  // Too short: 500 are missing.
  };
  const auto client = connect();
  client->send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
  turns();
  EXPECT_EQ(client->error, std::errc::connection_reset);
}

TEST_F(CompressedPieces, KeepBufferWithoutMemoryToFlattenIt) {
  const std::string plain = text(30'000);
  on_request = [&](Exchange exchange) {
    EXPECT_TRUE(exchange.begin(Status::ok, fields_));
    Buffer buffer;
    for (std::size_t at = 0; at < plain.size(); at += 1000)
      buffer.append(std::string_view(plain).substr(at, 1000));
    {
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
      const FaultScope scope(plan);
      EXPECT_FALSE(exchange.write(std::move(buffer)));
    }
    EXPECT_EQ(buffer.size(), plain.size());
    EXPECT_TRUE(exchange.write(std::move(buffer)));
    EXPECT_TRUE(exchange.end());
  };
  EXPECT_EQ(decompressed(unchunked(body(get()))), plain);
}

TEST_F(CompressedPieces, AreDecodableAsTheyArrive) {
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.begin(Status::ok, fields_);
    exchange.write("first\n");
    kept = std::move(exchange);
  };
  const auto client = connect();
  client->send("GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
  turns();
  auto decompressor = must(http::Decompressor::make(http::Coding::gzip, 1000));
  const std::string so_far = body(client->received);
  Bytes bytes = bytes_of(so_far);
  Buffer target;
  decompressor.next(bytes, target);
  EXPECT_EQ(text_of(target.flat(target.size())), "first\n");
  kept.end();
  turns();
  EXPECT_EQ(decompressed(body(client->received)), "first\n");
}

TEST_F(CompressedPieces, AreMadeFromFiles) {
  const std::string plain = text(50'000);
  const OwnFile file("compressed", plain);
  on_request = [&](Exchange exchange) {
    exchange.begin(Status::ok, fields_, 40'000);
    EXPECT_FALSE(exchange.send_file(::open(file.path().c_str(), O_RDONLY), 10'000, 40'000));
    EXPECT_TRUE(exchange.end());
  };
  const std::string answer = get();
  EXPECT_TRUE(is_coded(answer));
  EXPECT_EQ(decompressed(unchunked(body(answer))), plain.substr(10'000));
}

TEST_F(CompressedPieces, AreLimitedInNumber) {
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) {
    exchange.begin(Status::ok, fields_);
    kept.push_back(std::move(exchange));
  };
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto ask = [&] {
    clients.push_back(connect());
    clients.back()->send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    turns(4);
    return is_coded(clients.back()->received);
  };
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(ask()) << i;
  EXPECT_FALSE(ask());
  EXPECT_THAT(clients.back()->received, HasSubstr("\r\nVary: Accept-Encoding\r\n"));
  kept.front().end();
  EXPECT_TRUE(ask());
  clients[1]->stream().abort();  // While its handle still exists.
  turns();
  EXPECT_TRUE(ask());
  EXPECT_FALSE(ask());
  server_ = {};
}

TEST_F(CompressedAnswers, RequireValidLevel) {
  for (const int level : {0, 10}) {
    http::ServerOptions options;
    options.compression_level = level;
    EXPECT_EQ(http::Server::create(
                  loop_, [](Exchange) {}, std::move(options))
                  .error(),
              std::errc::invalid_argument);
  }
}

}  // namespace
}  // namespace spate::testing
