#include "spate/http/html.h"

#include <gtest/gtest.h>

namespace spate::http {
namespace {

TEST(Html, TextIsEscaped) {
  EXPECT_EQ(html_of("<a href=\"x\" b='y'>&amp;</a>"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;");
  EXPECT_EQ(html_of("\xc3\xa4 plain\n"), "\xc3\xa4 plain\n");
  EXPECT_EQ(html_of(""), "");
  std::string page = "<p>";
  append_html(page, "<script>");
  EXPECT_EQ(page, "<p>&lt;script&gt;");
}

}  // namespace
}  // namespace spate::http
