// Heads of HTTP/1.1 requests, parsed over and over where they lie: whole, or with one more --piece
// of their bytes at a time. A contestant includes this file and defines
//
//   class Parser {
//    public:
//     static void version();               // calls bench_version()
//     void begin();                        // a head begins
//     bool parse(std::string_view bytes);  // all that is there of it; true: it is whole
//     Spans spans() const;                 // the result
//   };
//
// and keeps for each field where its name and its value are, as a program would need them.
#ifndef BENCH_WORKLOADS_PARSER_H
#define BENCH_WORKLOADS_PARSER_H

#include <algorithm>
#include <string>
#include <string_view>

#include "harness/contestant.h"

inline constexpr std::size_t kMostFields = 100;

// The result for one head: the number of fields, and the total bytes of each part.
struct Spans {
  std::size_t fields = 0, method = 0, target = 0, names = 0, values = 0;
};

// Makes a request of exactly `size` bytes, at least 100: a browser's, then fields of 120 bytes as
// proxies add them, and for the last 4,000 cookies.
inline std::string bench_head(std::size_t size) {
  std::string head = "GET /shop/items?page=2 HTTP/1.1\r\nHost: shop.example\r\n";
  const std::string end = "\r\n\r\n", cookie = "Cookie: ";
  const char* more[] = {
      "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n",
      "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n",
      "Accept-Language: en-GB,en;q=0.5\r\n",
      "Accept-Encoding: gzip, deflate, br\r\n",
      "Referer: https://shop.example/shop/items?page=1\r\n",
      "Connection: keep-alive\r\n",
  };
  for (const char* line : more)
    if (size > 200) head += line;
  for (int i = 0; head.size() + 4000 + 200 < size; ++i)
    head += "X-Passed-" + std::to_string(100 + i) + ": " + std::string(120, char('a' + i % 26)) +
            "\r\n";
  head += cookie;
  for (int i = 0; head.size() + end.size() < size; ++i) {
    const std::string pair = (i == 0 ? "k" : "; k") + std::to_string(i) + "=0123456789abcdef";
    head += pair.substr(0, size - head.size() - end.size());
  }
  return head + end;
}

template <class Parser>
int bench_parser(int argc, char** argv) {
  const auto heads = std::uint64_t(bench_number(argc, argv, "heads", 1000));
  const std::string head = bench_head(std::size_t(bench_number(argc, argv, "head_bytes", 703)));
  const auto given = std::size_t(bench_number(argc, argv, "piece", 0));
  const std::size_t piece = given == 0 ? head.size() : given;
  Parser::version();
  Parser parser;
  Spans sum;
  const std::uint64_t begin = bench_now_ns();
  for (std::uint64_t i = 0; i < heads; ++i) {
    parser.begin();
    bool is_whole = false;
    for (std::size_t there = piece; !is_whole && there < head.size() + piece; there += piece)
      is_whole = parser.parse(std::string_view(head).substr(0, std::min(there, head.size())));
    if (!is_whole) bench_die("a head is not whole");
    const Spans one = parser.spans();
    sum.fields += one.fields;
    sum.method += one.method;
    sum.target += one.target;
    sum.names += one.names;
    sum.values += one.values;
  }
  bench_metric("head_ns", "ns", double(bench_now_ns() - begin) / double(heads));
  bench_work("fields", sum.fields);
  bench_work("bytes_of_methods", sum.method);
  bench_work("bytes_of_targets", sum.target);
  bench_work("bytes_of_names", sum.names);
  bench_work("bytes_of_values", sum.values);
  bench_ops("head", heads);
  return 0;
}

#endif
