// http_parser, Node's until it had llhttp, and still that of many servers.
#include <http_parser.h>

#include "workloads/parser/found_fields.h"

namespace {

class Parser {
 public:
  static void version() {
    const unsigned long v = http_parser_version();
    char text[32];
    snprintf(text, sizeof text, "%lu.%lu.%lu", v >> 16 & 255, v >> 8 & 255, v & 255);
    bench_version(text, "libhttp_parser");
  }

  Parser() {
    http_parser_settings_init(&settings_);
    settings_.on_url = [](http_parser* parser, const char* at, std::size_t size) {
      return of(parser).on_target(at, size), 0;
    };
    settings_.on_header_field = [](http_parser* parser, const char* at, std::size_t size) {
      return of(parser).on_name(at, size), 0;
    };
    settings_.on_header_value = [](http_parser* parser, const char* at, std::size_t size) {
      return of(parser).on_value(at, size), 0;
    };
    settings_.on_message_complete = [](http_parser* parser) {
      return http_parser_pause(parser, 1), 0;
    };
  }

  void begin() {
    http_parser_init(&parser_, HTTP_REQUEST);
    parser_.data = &found_;
    found_.clear();
    fed_ = 0;
  }

  bool parse(std::string_view bytes) {
    const std::string_view more = bytes.substr(fed_);
    http_parser_execute(&parser_, &settings_, more.data(), more.size());
    fed_ = bytes.size();
    const http_errno error = HTTP_PARSER_ERRNO(&parser_);
    if (error != HPE_OK && error != HPE_PAUSED) bench_die("refused");
    return error == HPE_PAUSED;
  }

  Spans spans() const { return found_.spans(strlen(http_method_str(http_method(parser_.method)))); }

 private:
  static FoundFields& of(http_parser* parser) { return *static_cast<FoundFields*>(parser->data); }

  http_parser parser_;
  http_parser_settings settings_;
  FoundFields found_;
  std::size_t fed_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return bench_parser<Parser>(argc, argv); }
