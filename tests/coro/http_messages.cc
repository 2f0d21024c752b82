// Bodies of HTTP that coroutines split into messages, on both sides.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate/coro/or_return.h"
#include "spate/coro/run.h"
#include "spate/coro/when.h"
#include "spate/http/coro_call.h"
#include "spate/http/coro_exchange.h"
#include "tests/coro/http_field.h"
#include "tests/support/random.h"

namespace spate::testing {
namespace {

using coro::Scope;
using coro::Task;

constexpr std::string_view kChunked =
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string size;
  for (std::size_t left = text.size(); left != 0; left /= 16)
    size.insert(size.begin(), kDigits[left % 16]);
  return size + "\r\n" + std::string(text) + "\r\n";
}

// The lines read, and the error that ended the reading.
struct Lines {
  std::vector<std::string> read;
  std::error_code error;
};

Task<void> read_lines(coro::Exchange* from, Lines* lines) {
  for (;;) {
    const Result<Bytes> line = co_await from->read(Delimiter{});
    if (!line) {
      lines->error = line.error();
      co_return;
    }
    lines->read.emplace_back(text_of(*line));
  }
}

class CoroMessages : public HttpField {
 protected:
  CoroMessages() {
    on_request_ = [this](http::Exchange asked) {
      exchange_.emplace(std::move(asked));
      tasks_.spawn(read_lines(&*exchange_, &lines_));
    };
  }
  ~CoroMessages() override {
    tasks_.cancel();
    exchange_.reset();
  }

  std::optional<coro::Exchange> exchange_;
  Lines lines_;
  Scope tasks_{loop()};
};

using Strings = std::vector<std::string>;

TEST_F(CoroMessages, MessagesMayBeSplitAnywhere) {
  const auto client = peer(std::string(kChunked) + chunk("one\ntw") + chunk("o") + chunk("\n"));
  EXPECT_EQ(lines_.read, (Strings{"one", "two"}));
  client->say(chunk("three\nfour\n\n") + "0\r\n\r\n");
  turns();
  EXPECT_EQ(lines_.read, (Strings{"one", "two", "three", "four", ""}));
  EXPECT_EQ(lines_.error, Error::ended);
}

TEST_F(CoroMessages, TruncatedMessageHasDistinctError) {
  const auto client = peer(std::string(kChunked) + chunk("one\ntw") + "0\r\n\r\n");
  EXPECT_EQ(lines_.read, (Strings{"one"}));
  EXPECT_EQ(lines_.error, Error::truncated);
}

TEST_F(CoroMessages, MessagesBeforeConnectionLossAreRead) {
  const auto client = peer(std::string(kChunked) + chunk("one\ntwo\nthr"));
  client->go();
  turns();
  EXPECT_EQ(lines_.read, (Strings{"one", "two"}));
  EXPECT_EQ(lines_.error, std::errc::connection_reset);
}

TEST_F(CoroMessages, RequestWithoutBodyHasNoMessages) {
  const auto client = peer("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(lines_.error, Error::ended);
}

TEST_F(CoroMessages, TooLongMessagesAreRefusedAndStayUnread) {
  const auto too_long = [](http::Exchange asked,
                           std::vector<std::error_code>* errors) -> Task<void> {
    coro::Exchange exchange(std::move(asked));
    const Result<Bytes> broken = co_await exchange.read(LengthField{.width = 1, .max = 5});
    if (!broken) errors->push_back(broken.error());
    const Result<Bytes> long_one = co_await exchange.read_exactly(16 * 1024 * 1024 + 1);
    if (!long_one) errors->push_back(long_one.error());
    const Result<Bytes> rest = co_await exchange.read();
    if (rest)
      EXPECT_EQ(text_of(*rest),
                "\x06"
                "abcdef");
  };
  std::vector<std::error_code> errors;
  on_request_ = [&](http::Exchange asked) { tasks_.spawn(too_long(std::move(asked), &errors)); };
  const auto client = peer(std::string(kChunked) + chunk("\x06"
                                                         "abcdef"));
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0], std::errc::bad_message);
  EXPECT_EQ(errors[1], std::errc::message_size);
}

// In one piece or several.
TEST_F(CoroMessages, RequestMessageLengthIsLimited) {
  std::vector<std::string> outcomes;
  const auto limited = [](http::Exchange asked, std::vector<std::string>* told) -> Task<void> {
    coro::Exchange exchange(std::move(asked));
    for (const std::size_t most : {3u, 4u, 3u, 5u}) {
      exchange.set_max_message(most);
      const Result<Bytes> line = co_await exchange.read(Delimiter{});
      told->emplace_back(line ? text_of(*line) : "error");
      if (!line) EXPECT_EQ(line.error(), std::errc::message_size);
    }
  };
  on_request_ = [&](http::Exchange asked) { tasks_.spawn(limited(std::move(asked), &outcomes)); };
  const auto client = peer(std::string(kChunked) + chunk("one\nfo"));
  EXPECT_EQ(outcomes, (Strings{"error", "one"}));
  client->say(chunk("ur\n") + "0\r\n\r\n");
  turns();
  EXPECT_EQ(outcomes, (Strings{"error", "one", "error", "four"}));
}

TEST_F(CoroMessages, ResponseMessageLengthIsLimited) {
  std::error_code error;
  const auto limited = [](http::Client* client, std::error_code* why) -> Task<void> {
    coro::Call call(*client, "http://a/");
    call.set_max_message(4);
    const Result<Bytes> message = co_await call.read_exactly(5);
    if (!message) *why = message.error();
  };
  on_request_ = [](http::Exchange asked) { asked.respond("hello"); };
  tasks_.spawn(limited(&client_, &error));
  turns();
  EXPECT_EQ(error, std::errc::message_size);
}

TEST_F(CoroMessages, MessageReadsAndPlainReadsMayBeMixed) {
  const auto mixed = [](http::Exchange asked, Strings* read) -> Task<void> {
    coro::Exchange exchange(std::move(asked));
    const Result<Bytes> line = co_await exchange.read(Delimiter{});
    if (line) read->emplace_back(text_of(*line));
    const Result<Bytes> left = co_await exchange.read();
    if (left) read->emplace_back(text_of(*left));
    const Result<Bytes> three = co_await exchange.read_exactly(3);
    if (three) read->emplace_back(text_of(*three));
    const Result<Bytes> more = co_await exchange.read();
    if (more) read->emplace_back(text_of(*more));
    const Result<Bytes> last = co_await exchange.read();
    EXPECT_TRUE(last && last->empty());
  };
  Strings read;
  on_request_ = [&](http::Exchange asked) { tasks_.spawn(mixed(std::move(asked), &read)); };
  const auto client =
      peer(std::string(kChunked) + chunk("one\nleft") + chunk("threefour") + "0\r\n\r\n");
  EXPECT_EQ(read, (Strings{"one", "left", "thr", "eefour"}));
}

// A cancelled read of messages consumes nothing, wherever it is cancelled.
TEST_F(CoroMessages, MessageOfCancelledReadIsReadByNext) {
  on_request_ = [&](http::Exchange asked) { exchange_.emplace(std::move(asked)); };
  const auto client = peer(kChunked);
  std::string said;
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    Scope scope(loop());
    scope.spawn(read_lines(&*exchange_, &lines_));
    turns(i % 3);
    std::string text(random.below(40), static_cast<char>('a' + i % 26));
    if (random.below(2) == 0) text += '\n';
    if (!text.empty()) client->say(chunk(text));
    said += text;
    turns(i % 4);
  }
  client->say(chunk("\n") + "0\r\n\r\n");
  said += '\n';
  turns();
  coro::run(loop(), read_lines(&*exchange_, &lines_));
  std::string heard;
  for (const std::string& line : lines_.read) heard += line + '\n';
  EXPECT_EQ(heard, said);
  EXPECT_EQ(lines_.error, Error::ended);
}

// ---- of an answer

Task<Result<std::size_t>> count_answers(http::Client* client, std::size_t* longest) {
  coro::Call call(*client, kUrl);
  co_await coro::or_return(call.response());
  std::size_t count = 0;
  for (;;) {
    const Result<Bytes> message = co_await call.read(LengthField{});
    if (!message && message.error() == Error::ended) co_return count;
    if (!message) co_return std::unexpected(message.error());
    *longest = message->size() > *longest ? message->size() : *longest;
    ++count;
  }
}

class CoroAnswers : public HttpField {
 protected:
  CoroAnswers() {
    on_request_ = [](http::Exchange exchange) {
      exchange.begin(http::Status::ok);
      for (const std::size_t size : {0, 5, 100'000, 1, 3'000'000}) {
        std::array<std::byte, 4> head{};
        LengthField().write(size, head);
        exchange.write(Bytes(head));
        exchange.write(std::string(size, 'x'));
      }
      exchange.end();
    };
  }
};

TEST_F(CoroAnswers, ResponseBodyIsReadInMessages) {
  std::size_t longest = 0;
  EXPECT_EQ(coro::run(loop(), count_answers(&client_, &longest)), 5u);
  EXPECT_EQ(longest, 3'000'000u);
}

TEST_F(CoroAnswers, ReadReportsThatMemoryRanOut) {
  for (std::uint64_t nth = 1; nth < 60; ++nth) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    std::size_t longest = 0;
    Result<std::size_t> count = 0;
    {
      const FaultScope scope(plan);
      count = coro::run(loop(), count_answers(&client_, &longest));
    }
    if (count) EXPECT_EQ(*count, 5u);
    turns();
  }
}

}  // namespace
}  // namespace spate::testing
