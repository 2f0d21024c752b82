// llhttp, Node's parser.
#include <llhttp.h>

#include "workloads/parser/found_fields.h"

namespace {

class Parser {
 public:
  static void version() {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR,
             LLHTTP_VERSION_PATCH);
    bench_version(text, nullptr);
  }

  Parser() {
    llhttp_settings_init(&settings_);
    settings_.on_url = [](llhttp_t* parser, const char* at, std::size_t size) {
      return of(parser).on_target(at, size), 0;
    };
    settings_.on_header_field = [](llhttp_t* parser, const char* at, std::size_t size) {
      return of(parser).on_name(at, size), 0;
    };
    settings_.on_header_value = [](llhttp_t* parser, const char* at, std::size_t size) {
      return of(parser).on_value(at, size), 0;
    };
    settings_.on_message_complete = [](llhttp_t*) { return int(HPE_PAUSED); };
  }

  void begin() {
    llhttp_init(&parser_, HTTP_REQUEST, &settings_);
    parser_.data = &found_;
    found_.clear();
    fed_ = 0;
  }

  bool parse(std::string_view bytes) {
    const std::string_view more = bytes.substr(fed_);
    const llhttp_errno_t error = llhttp_execute(&parser_, more.data(), more.size());
    fed_ = bytes.size();
    if (error != HPE_OK && error != HPE_PAUSED) bench_die("refused");
    return error == HPE_PAUSED;
  }

  Spans spans() const {
    return found_.spans(strlen(llhttp_method_name(llhttp_method_t(parser_.method))));
  }

 private:
  static FoundFields& of(llhttp_t* parser) { return *static_cast<FoundFields*>(parser->data); }

  llhttp_t parser_;
  llhttp_settings_t settings_;
  FoundFields found_;
  std::size_t fed_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return bench_parser<Parser>(argc, argv); }
