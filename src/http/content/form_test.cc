#include "spate/http/form.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "spate/http/url.h"
#include "tests/support/random.h"

namespace spate::http {
namespace {

using PartEvent = MultipartDecoder::Event;

// The decoder's events as text: "[name|file|type] data [/] " for each part, and "[end]".
struct FormRead {
  std::string log;
  bool is_done = false;
  std::error_code error;
  bool operator==(const FormRead&) const = default;
};

const std::string kFormType = "multipart/form-data; boundary=xx";

void take_form_bytes(MultipartDecoder& decoder, Bytes bytes, FormRead& read) {
  for (;;) {
    switch (decoder.next(bytes)) {
      case PartEvent::unfinished:
        EXPECT_TRUE(bytes.empty());
        return;
      case PartEvent::part:
        read.log.append("[").append(decoder.name()).append("|");
        read.log.append(decoder.filename().value_or("-"))
            .append("|")
            .append(decoder.content_type())
            .append("] ");
        break;
      case PartEvent::data:
        EXPECT_FALSE(decoder.data().empty());
        read.log.append(text_of(decoder.data()));
        break;
      case PartEvent::part_end:
        read.log += " [/] ";
        break;
      case PartEvent::end:
        read.log += "[end]";
        break;
      case PartEvent::broken:
        return;
    }
  }
}

FormRead read_in_steps(std::string_view body, std::size_t step,
                       const MultipartLimits& limits = {}) {
  auto decoder = *MultipartDecoder::make(kFormType, limits);
  FormRead read;
  for (std::size_t at = 0; at < body.size(); at += step)
    take_form_bytes(decoder, bytes_of(body.substr(at, step)), read);
  read.is_done = decoder.is_done();
  read.error = decoder.error();
  return read;
}
FormRead read_of(std::string_view body, const MultipartLimits& limits = {}) {
  const FormRead whole = read_in_steps(body, body.size() + 1, limits);
  for (const std::size_t step : {1, 2, 3, 7})
    EXPECT_EQ(read_in_steps(body, step, limits), whole) << body << step;
  return whole;
}
std::string log_of(std::string_view body) {
  const FormRead read = read_of(body);
  EXPECT_TRUE(read.is_done) << body;
  return read.log;
}
bool is_broken(std::string_view body) { return read_of(body).error == std::errc::bad_message; }

std::string part(std::string_view head, std::string_view data = "d") {
  return std::string("--xx\r\n").append(head).append("\r\n\r\n").append(data).append("\r\n--xx--");
}
const std::string kPartHead = "Content-Disposition: form-data; name=\"n\"";

TEST(Multipart, ParsesPartsWithNamesAndData) {
  EXPECT_EQ(log_of("--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n"
                   "--xx\r\ncontent-type: image/png\r\nX: y\r\ncontent-disposition: FORM-DATA; "
                   "filename=\"f.png\"; name=b\r\n\r\ntwo\r\nlines\r\n--xx--\r\n"),
            "[a|-|text/plain] one [/] [b|f.png|image/png] two\r\nlines [/] [end]");
}

TEST(Multipart, MayHaveEmptyParts) {
  EXPECT_EQ(log_of(part(kPartHead, "")), "[n|-|text/plain]  [/] [end]");
  EXPECT_EQ(log_of("--xx\r\n" + kPartHead + "\r\n\r\n--xx--"), "[n|-|text/plain]  [/] [end]");
  EXPECT_EQ(log_of(part(kPartHead + "; filename=\"\"", "")), "[n||text/plain]  [/] [end]");
}

TEST(Multipart, KeepsDataThatResemblesDelimiter) {
  for (const char* data :
       {"\r", "\n", "\r\n", "\r\n-", "\r\n--", "\r\n--x", "\r\r\n--x", "\r\n--x\r\n--x", "--xx",
        "a\r\n\r\n-\r\n--y", "--", "\r\n\r\n", "\r\n--X", "x\r\n--xy--xx"}) {
    if (std::string_view(data) == "--xx") continue;  // Directly after a head it is a delimiter.
    EXPECT_EQ(log_of(part(kPartHead, data)), "[n|-|text/plain] " + std::string(data) + " [/] [end]")
        << data;
  }
  EXPECT_EQ(log_of(part(kPartHead, "a--xx")), "[n|-|text/plain] a--xx [/] [end]");
}

TEST(Multipart, DiscardsPreambleAndEpilogue) {
  EXPECT_EQ(log_of("this is a\r\n--preamble\r\n" + part(kPartHead) + "\r\nand\r\n--xx\r\nmore"),
            "[n|-|text/plain] d [/] [end]");
  EXPECT_EQ(log_of("\r\n" + part(kPartHead)), "[n|-|text/plain] d [/] [end]");
  EXPECT_EQ(log_of("--xx--"), "[end]");
}

TEST(Multipart, AllowsBlanksAfterDelimiter) {
  EXPECT_EQ(log_of("--xx \t \r\n" + kPartHead + "\r\n\r\nd\r\n--xx--"),
            "[n|-|text/plain] d [/] [end]");
}

TEST(Multipart, ParsesNamesAsClientsWriteThem) {
  for (const auto& [name, meaning] : std::vector<std::pair<const char*, const char*>>{
           {"\"a b\"", "a b"},
           {"token", "token"},
           {"\"a%22b%0D%0a\"", "a\"b\r\n"},
           {"\"a\\\"b\\\\c\"", "a\"b\\c"},
           {"\"C:\\temp\\x.txt\"", "C:\\temp\\x.txt"},
           {"\"100%\"", "100%"},
           {"\"%2\"", "%2"},
           {"\"\"", ""},
           {"\"\xc3\xa4;=\"", "\xc3\xa4;="},
           {"\"%41\"", "%41"},
           {"\"../../etc/passwd\"", "../../etc/passwd"}})
    EXPECT_EQ(log_of(part("Content-Disposition: form-data; name=n; filename=" + std::string(name))),
              std::string("[n|") + meaning + "|text/plain] d [/] [end]");
}

TEST(Multipart, FailsOnMalformedHeaderSection) {
  for (const char* head :
       {"", "Content-Type: text/plain", "Content-Disposition: form-data",
        "Content-Disposition: attachment; name=n", "Content-Disposition: form-data; filename=f",
        "Content-Disposition: form-data; name=\"n",
        "Content-Disposition: form-data; name=n; name=m",
        "Content-Disposition: form-data; name=n; filename=a; filename=b",
        "Content-Disposition: form-data; name=n\r\nContent-Disposition: form-data; name=m",
        "Content-Disposition: form-data; name=n x", "Content-Disposition : form-data; name=n",
        "Content-Disposition: form-data;\r\n name=n", ": x", "nonsense",
        "Content-Disposition: form-data; name=\"a\nb\"",
        "Content-Disposition: form-data; name=\"a\x01\"",
        "Content-Disposition: form-data; name=n\nX: y",
        "Content-Disposition: form-data; name=\"\\\"", " Content-Disposition: form-data; name=n"})
    EXPECT_TRUE(is_broken(part(head))) << head;
  EXPECT_TRUE(is_broken(part(std::string("Content-Disposition: form-data; name=\"a\0\"", 41))));
}

TEST(Multipart, FailsOnBadDelimiter) {
  for (const char* body :
       {"--xxy", "--xx\n", "--xx-\r\n", "--xx\rx", "--xx x", "--xx -", "--xx-x", "--xx \r\r\n"})
    EXPECT_TRUE(is_broken(body)) << body;
}

TEST(Multipart, IsIncompleteBeforeFinalDelimiter) {
  const std::string body = part(kPartHead);
  for (std::size_t size = 0; size < body.size(); ++size) {
    const FormRead read = read_of(body.substr(0, size));
    EXPECT_FALSE(read.is_done) << size;
    EXPECT_FALSE(read.error) << size;
  }
}

TEST(Multipart, HasLimits) {
  const std::string two = "--xx\r\n" + kPartHead + "\r\n\r\na\r\n" + part(kPartHead);
  EXPECT_TRUE(read_of(two, {.parts = 2}).is_done);
  EXPECT_EQ(read_of(two, {.parts = 1}).error, std::errc::message_size);
  const std::size_t size = kPartHead.size() + 4;
  EXPECT_TRUE(read_of(two, {.part_head = size}).is_done);
  EXPECT_EQ(read_of(two, {.part_head = size - 1}).error, std::errc::message_size);
  EXPECT_EQ(read_of(std::string(size, 'p') + two, {.part_head = size}).error,
            std::errc::message_size);
  EXPECT_EQ(read_of("--xx" + std::string(size + 1, ' '), {.part_head = size}).error,
            std::errc::message_size);
  EXPECT_FALSE(read_of("--xx" + std::string(size, ' '), {.part_head = size}).error);
}

TEST(Multipart, RemainsFailed) {
  auto decoder = *MultipartDecoder::make(kFormType);
  Bytes bytes = bytes_of("--xxy more");
  EXPECT_EQ(decoder.next(bytes), PartEvent::broken);
  bytes = {};
  EXPECT_EQ(decoder.next(bytes), PartEvent::broken);
  EXPECT_FALSE(decoder.is_done());
}

TEST(Multipart, RequiresBoundary) {
  const std::string longest(70, 'b');
  for (const std::string& type :
       {std::string("multipart/form-data; boundary=x"),
        std::string("Multipart/Form-Data;charset=utf-8; Boundary=\"a b:c\""),
        "multipart/form-data; boundary=" + longest})
    EXPECT_TRUE(MultipartDecoder::make(type)) << type;
  for (const std::string& type :
       {std::string(), std::string("multipart/form-data"),
        std::string("multipart/form-data; boundary="),
        std::string("multipart/form-data; boundary=\"\""),
        std::string("multipart/form-data; boundary=\"a \""),
        std::string("multipart/form-data; boundary=\"a\\\"b\""),
        std::string("multipart/mixed; boundary=x"), std::string("text/plain; boundary=x"),
        "multipart/form-data; boundary=b" + longest,
        std::string("multipart/form-data; boundary=a b"),
        std::string("multipart/form-data; boundary=\"\xc3\"")})
    EXPECT_FALSE(MultipartDecoder::make(type)) << type;
}

std::string text_in(Buffer& buffer) { return std::string(text_of(buffer.flat(buffer.size()))); }

TEST(MultipartBuilderTest, OutputMatchesThatOfBrowsers) {
  Buffer body;
  MultipartBuilder form(body, "xx");
  EXPECT_TRUE(form.add("a", "one"));
  EXPECT_TRUE(form.begin_file("b\"\r\n", "f\\.png", "image/png"));
  EXPECT_TRUE(body.append("two"));
  EXPECT_TRUE(form.end());
  EXPECT_EQ(text_in(body),
            "--xx\r\nContent-Disposition: form-data; "
            "name=\"a\"\r\n\r\none\r\n--xx\r\nContent-Disposition: form-data; "
            "name=\"b%22%0D%0A\"; filename=\"f\\\\.png\"\r\nContent-Type: "
            "image/png\r\n\r\ntwo\r\n--xx--\r\n");
  EXPECT_EQ(form.content_type(), "multipart/form-data; boundary=\"xx\"");
}

TEST(MultipartBuilderTest, InvalidNamesTypesAndValuesAreRefused) {
  Buffer body;
  MultipartBuilder form(body, "xx");
  EXPECT_FALSE(form.add("a", "..--xx.."));
  EXPECT_FALSE(form.add(std::string_view("a\0", 2), "v"));
  EXPECT_FALSE(form.begin_file("a", "\x01", "text/plain"));
  EXPECT_FALSE(form.begin_file("a", "f", "text/plain\r\nX: y"));
  EXPECT_FALSE(form.begin_file("a", "f", ""));
  EXPECT_TRUE(body.empty());
  EXPECT_TRUE(form.end());
  EXPECT_EQ(text_in(body), "--xx--\r\n");
}

TEST(MultipartBuilderTest, OutputIsParsedByDecoder) {
  testing::Random random(7);
  static constexpr std::string_view kLetters = "abc-x\r\n\"\\;= \xc3\xa4";
  const auto any_text = [&random](std::size_t most) {
    std::string text;
    for (std::size_t size = random.below(most); size > 0; --size)
      text += kLetters[random.below(kLetters.size())];
    return text;
  };
  for (int i = 0; i < 1000; ++i) {
    Buffer body;
    MultipartBuilder form(body, "xx");
    std::string wanted;
    for (std::size_t count = random.below(4); count > 0; --count) {
      const std::string name = any_text(8);
      const std::string data = any_text(20);
      if (data.contains("--xx")) continue;
      if (random.one_in(2)) {
        const std::string file = any_text(8);
        ASSERT_TRUE(form.begin_file(name, file, "a/b") && body.append(data));
        wanted += "[" + name + "|" + file + "|a/b] " + data + " [/] ";
      } else {
        ASSERT_TRUE(form.add(name, data));
        wanted += "[" + name + "|-|text/plain] " + data + " [/] ";
      }
    }
    ASSERT_TRUE(form.end());
    const FormRead read = read_in_steps(text_in(body), 1 + random.below(30));
    ASSERT_EQ(read.log, wanted + "[end]") << text_in(body);
  }
}

TEST(FormPairs, RoundTripThroughQuery) {
  std::string form;
  append_pair(form, "a b", "c&d=e");
  append_pair(form, "", "\xc3\xa4*~+\r\n");
  EXPECT_EQ(form, "a+b=c%26d%3De&=%C3%A4*%7E%2B%0D%0A");
  testing::Random random(8);
  for (int i = 0; i < 2000; ++i) {
    std::string name;
    std::string value;
    for (std::size_t size = 1 + random.below(8); size > 0; --size) {
      name += static_cast<char>(random.below(256));
      value += static_cast<char>(random.below(256));
    }
    form.clear();
    append_pair(form, name, value);
    Query query(form);
    ASSERT_TRUE(query.next());
    ASSERT_EQ(query.name(), name);
    ASSERT_EQ(query.value(), value);
    ASSERT_FALSE(query.next());
  }
}

}  // namespace
}  // namespace spate::http
