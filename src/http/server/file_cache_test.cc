#include "http/server/file_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace spate::http {
namespace {

FileCache::Entry entry(const std::string& key, std::size_t size) {
  Buffer content;
  content.append(std::string(size, 'x'));
  return {.key = key,
          .file = std::make_shared<const FileCache::File>("text/plain", "", sys::FileStatus{},
                                                          std::move(content))};
}

std::size_t content_of(FileCache& cache, const std::string& key) {
  const FileCache::Entry* found = cache.find(key);
  return found == nullptr || found->file == nullptr ? 0 : found->file->content.size();
}

TEST(FileCache, DropsEntryThatWasNotUsedForLongest) {
  FileCache cache(30'000);
  cache.put(entry("a", 10'000));
  cache.put(entry("b", 10'000));
  EXPECT_EQ(content_of(cache, "a"), 10'000u);
  cache.put(entry("c", 10'000));
  EXPECT_EQ(content_of(cache, "b"), 0u);
  EXPECT_EQ(content_of(cache, "a"), 10'000u);
  EXPECT_EQ(content_of(cache, "c"), 10'000u);
}

TEST(FileCache, ReplacesEntryWithSameKey) {
  FileCache cache(30'000);
  for (const std::size_t size : {20'000, 100, 20'000, 25'000}) {
    cache.put(entry("a", size));
    EXPECT_EQ(content_of(cache, "a"), size);
  }
  cache.drop("a");
  EXPECT_EQ(cache.find("a"), nullptr);
}

TEST(FileCache, KeepsNothingBeyondItsSize) {
  FileCache cache(30'000);
  cache.put(entry("a", 10'000));
  cache.put(entry("b", 30'000));
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_EQ(content_of(cache, "a"), 10'000u);
  cache.put(entry("a", 40'000));  // The old content must not stay.
  EXPECT_EQ(cache.find("a"), nullptr);
}

TEST(FileCache, CountsEntriesWithoutContent) {
  FileCache cache(100'000);
  for (int i = 0; i < 10'000; ++i) cache.put({.key = std::to_string(i), .file = nullptr});
  int found = 0;
  for (int i = 0; i < 10'000; ++i) found += cache.find(std::to_string(i)) != nullptr;
  EXPECT_GT(found, 50);
  EXPECT_LT(found, 100);
}

TEST(FileCache, KeepsNothingIfDisabled) {
  FileCache cache(0);
  cache.put({.key = "a", .file = nullptr});
  EXPECT_EQ(cache.find("a"), nullptr);
}

}  // namespace
}  // namespace spate::http
