// The text format of Prometheus, version 0.0.4, parsed strictly, line by line.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace spate::testing {

// Fails the test at text that a Prometheus server would reject or misread.
class PrometheusText {
 public:
  explicit PrometheusText(std::string_view text) {
    EXPECT_TRUE(text.ends_with('\n'));
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      read_line(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }
  // Returns the value of `name{labels}`, spelled as in the text; -1 if it is missing.
  double operator[](const std::string& sample) const {
    const auto found = values_.find(sample);
    return found == values_.end() ? -1 : found->second;
  }
  std::string type(const std::string& metric) const {
    const auto found = types_.find(metric);
    return found == types_.end() ? "" : found->second;
  }

 private:
  static constexpr std::string_view kNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

  static std::string_view take_name(std::string_view& line) {
    const std::size_t size = std::min(line.find_first_not_of(kNames), line.size());
    const std::string_view name = line.substr(0, size);
    EXPECT_FALSE(name.empty() || (name[0] >= '0' && name[0] <= '9')) << name;
    line.remove_prefix(size);
    return name;
  }
  static bool take(std::string_view& line, std::string_view prefix) {
    if (!line.starts_with(prefix)) return false;
    line.remove_prefix(prefix.size());
    return true;
  }

  void read_line(std::string_view line) {
    const std::string whole(line);
    if (take(line, "# HELP ")) {
      metric_ = take_name(line);
      EXPECT_TRUE(take(line, " ")) << whole;
      EXPECT_TRUE(metrics_.insert(metric_).second) << "a metric in two places: " << whole;
    } else if (take(line, "# TYPE ")) {
      EXPECT_EQ(take_name(line), metric_) << whole;
      EXPECT_TRUE(line == " counter" || line == " gauge" || line == " histogram") << whole;
      EXPECT_TRUE(line != " counter" || metric_.ends_with("_total")) << whole;
      types_[metric_] = line.substr(1);
    } else {
      read_sample(line);
    }
  }
  void read_sample(std::string_view line) {
    const std::string whole(line);
    const std::string name(take_name(line));
    const bool is_part = types_[metric_] == "histogram" &&
                         (name == metric_ + "_bucket" || name == metric_ + "_sum" ||
                          name == metric_ + "_count");
    EXPECT_TRUE(name == metric_ || is_part) << "under another metric: " << whole;
    EXPECT_TRUE(types_.contains(metric_)) << whole;
    if (take(line, "{")) read_labels(line, whole);
    const std::string sample = whole.substr(0, whole.size() - line.size());
    EXPECT_TRUE(take(line, " ")) << whole;
    char* end = nullptr;
    const std::string value(line);
    EXPECT_TRUE(values_.emplace(sample, std::strtod(value.c_str(), &end)).second)
        << "said twice: " << whole;
    EXPECT_TRUE(!value.empty() && *end == '\0') << whole;
  }
  static void read_labels(std::string_view& line, const std::string& whole) {
    do {
      take_name(line);
      EXPECT_TRUE(take(line, "=\"")) << whole;
      while (!line.empty() && line[0] != '"') {
        const bool is_escape = line[0] == '\\';
        if (is_escape && line.size() > 1) {
          EXPECT_NE(std::string_view("\\\"n").find(line[1]), std::string_view::npos) << whole;
        }
        line.remove_prefix(is_escape ? 2 : 1);
      }
      EXPECT_TRUE(take(line, "\"")) << whole;
    } while (take(line, ","));
    EXPECT_TRUE(take(line, "}")) << whole;
  }

  std::string metric_;
  std::set<std::string> metrics_;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> values_;
};

}  // namespace spate::testing
