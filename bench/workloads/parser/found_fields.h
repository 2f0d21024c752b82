// For the parsers that call back with pieces of names and values: where each field is.
#ifndef BENCH_WORKLOADS_PARSER_FOUND_FIELDS_H
#define BENCH_WORKLOADS_PARSER_FOUND_FIELDS_H

#include <utility>

#include "workloads/parser/parser.h"

class FoundFields {
 public:
  void clear() {
    target_ = {};
    count_ = 0;
    is_in_value_ = false;
  }

  void on_target(const char* at, std::size_t size) { extend(target_, at, size); }
  void on_name(const char* at, std::size_t size) {
    if (std::exchange(is_in_value_, false) || count_ == 0) begin_field();
    extend(names_[count_ - 1], at, size);
  }
  void on_value(const char* at, std::size_t size) {
    is_in_value_ = true;
    extend(values_[count_ - 1], at, size);
  }

  Spans spans(std::size_t method) const {
    Spans sum = {.fields = count_, .method = method, .target = target_.size()};
    for (std::size_t i = 0; i < count_; ++i) {
      sum.names += names_[i].size();
      sum.values += values_[i].size();
    }
    return sum;
  }

 private:
  void begin_field() {
    if (count_ == kMostFields) bench_die("too many fields");
    names_[count_] = values_[count_] = {};
    ++count_;
  }
  static void extend(std::string_view& span, const char* at, std::size_t size) {
    span = span.empty() ? std::string_view(at, size)
                        : std::string_view(span.data(), span.size() + size);
  }

  std::string_view target_;
  std::string_view names_[kMostFields], values_[kMostFields];
  std::size_t count_ = 0;
  bool is_in_value_ = false;
};

#endif
