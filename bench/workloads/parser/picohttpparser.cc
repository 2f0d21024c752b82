// picohttpparser, of H2O. It has no version.
#include <picohttpparser.h>

#include "workloads/parser/parser.h"

namespace {

class Parser {
 public:
  static void version() { bench_version("none", nullptr); }

  void begin() { last_ = 0; }

  bool parse(std::string_view bytes) {
    count_ = kMostFields;
    int minor = 0;
    const int size = phr_parse_request(bytes.data(), bytes.size(), &method_, &method_size_,
                                       &target_, &target_size_, &minor, fields_, &count_, last_);
    last_ = bytes.size();
    if (size == -1) bench_die("refused");
    return size > 0;
  }

  Spans spans() const {
    Spans sum = {.fields = count_, .method = method_size_, .target = target_size_};
    for (std::size_t i = 0; i < count_; ++i) {
      sum.names += fields_[i].name_len;
      sum.values += fields_[i].value_len;
    }
    return sum;
  }

 private:
  const char *method_ = nullptr, *target_ = nullptr;
  std::size_t method_size_ = 0, target_size_ = 0, count_ = 0, last_ = 0;
  phr_header fields_[kMostFields];
};

}  // namespace

int main(int argc, char** argv) { return bench_parser<Parser>(argc, argv); }
