#include "http/codec/characters.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace spate::http {
namespace {

using ScanFunction = const char* (*)(const char*, const char*, const char*);

// In a block of just this size, from its middle on, and as if nothing in front could be read.
void expect_same_end(ScanFunction by_vector, ScanFunction by_table, const std::string& text) {
  const auto block = std::make_unique<char[]>(text.size());
  const char* const begin = block.get();
  const char* const end = begin + text.size();
  text.copy(block.get(), text.size());
  for (const char* at : {begin, begin + text.size() / 2, end}) {
    ASSERT_EQ(by_vector(begin, at, end), by_table(begin, at, end)) << text;
    ASSERT_EQ(by_vector(at, at, end), by_table(begin, at, end)) << text;
  }
}

void expect_same_ends(ScanFunction by_vector, ScanFunction by_table) {
  for (std::size_t size = 0; size < 70; ++size) {
    expect_same_end(by_vector, by_table, std::string(size, 'a'));
    for (int c = 0; c < 256; ++c)
      for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
        if (at >= size) continue;
        std::string text(size, 'a');
        text[at] = static_cast<char>(c);
        expect_same_end(by_vector, by_table, text);
      }
  }
}

TEST(Scan, FindsSameEndByVectorAndByTable) {
  expect_same_ends(VectorScan::line_feed, TableScan::line_feed);
  expect_same_ends(VectorScan::value_end, TableScan::value_end);
  expect_same_ends(VectorScan::visible_end, TableScan::visible_end);
  expect_same_ends(VectorScan::name_end, TableScan::name_end);
}

TEST(Scan, FindsEndOfName) {
  for (const char* name :
       {"a", "X-1", "abc_def", "a-name-of-more-than-sixteen", "a.name_of~more-than_16"})
    for (const char* behind : {":", " :", "", "\r", "\x80", "@:"}) {
      const std::string text = std::string(name) + behind;
      EXPECT_EQ(VectorScan::name_end(text.data(), text.data(), text.data() + text.size()),
                text.data() + std::string_view(name).size())
          << text;
    }
}

TEST(Trimmed, KeepsInnerBlanks) {
  EXPECT_EQ(trimmed(" \ta \tb\t "), "a \tb");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed("\r\n"), "\r\n");
}

}  // namespace
}  // namespace spate::http
