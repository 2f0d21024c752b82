// The head's parser of spate::http's codec. It validates: input that violates the grammar is
// rejected.
#include "http/codec/head.h"
#include "workloads/parser/parser.h"

namespace {

using namespace spate::http;

class Parser {
 public:
  static void version() { bench_version("0.1.0", nullptr); }

  void begin() { looked_at_ = 0; }

  bool parse(std::string_view bytes) {
    const Parsed parsed =
        parse_request(std::as_bytes(std::span(bytes)), looked_at_, HeadLimits{}, head_);
    if (parsed.state == Parsed::State::broken) bench_die("refused");
    looked_at_ = parsed.looked_at;
    return parsed.state == Parsed::State::whole;
  }

  Spans spans() const {
    Spans sum = {.fields = head_.fields.size(),
                 .method = head_.method_name.size(),
                 .target = head_.target.size()};
    for (const auto& field : head_.fields) {
      sum.names += field.name.size();
      sum.values += field.value.size();
    }
    return sum;
  }

 private:
  std::size_t looked_at_ = 0;
  RequestHead head_;
};

}  // namespace

int main(int argc, char** argv) { return bench_parser<Parser>(argc, argv); }
