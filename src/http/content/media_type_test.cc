#include "spate/http/media_type.h"

#include <gtest/gtest.h>

#include "spate/http/negotiate.h"

namespace spate::http {
namespace {

TEST(MediaTypeTest, TypeSubtypeAndParametersAreParsed) {
  const auto type = MediaType::parse(" Text/HTML ; Charset=\"utf-\\8\";q=1 ");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->type(), "Text");
  EXPECT_EQ(type->subtype(), "HTML");
  EXPECT_TRUE(type->is("text", "html"));
  EXPECT_FALSE(type->is("text", "htm"));
  EXPECT_EQ(type->parameter("charset"), "utf-8");
  EXPECT_EQ(type->parameter("Q"), "1");
  EXPECT_EQ(type->parameter("boundary"), std::nullopt);
  EXPECT_EQ(MediaType::parse("a/b;c=1;c=2")->parameter("c"), "1");
  EXPECT_EQ(MediaType::parse("application/vnd.a+json")->subtype(), "vnd.a+json");
}

TEST(MediaTypeTest, MalformedTypeIsRefused) {
  for (const char* text :
       {"", "text", "text/", "/html", "text /html", "text/ html", "text/html charset=x",
        "text/html;a", "text/html;a=", "text/html;=b", "text/html;a=\"b", "text/html, text/plain",
        "te(xt/html", "text/html/x", "text/html; a = b", "text/html\r\nX: y", "text/html;a=b\n"})
    EXPECT_FALSE(MediaType::parse(text)) << text;
}

TEST(MediaTypeTest, FileExtensionDeterminesType) {
  for (const char* name : {"a.html", "A.HTML", "/x.y/a.tar.html", ".html"})
    EXPECT_EQ(content_type_of(name), "text/html; charset=utf-8") << name;
  EXPECT_EQ(content_type_of("a.7z"), "application/x-7z-compressed");
  EXPECT_EQ(content_type_of("a.zst"), "application/zstd");
  EXPECT_EQ(content_type_of("a.webmanifest"), "application/manifest+json");
  for (const char* name :
       {"", "html", "a.", "a.html/b", "a.htmlx", "a.webmanifestx", "a.\xff", "x.y/html"})
    EXPECT_EQ(content_type_of(name), "application/octet-stream") << name;
}

TEST(MediaTypeTest, EveryRegisteredExtensionHasValidType) {
  for (const char* name : {"a.js", "a.json", "a.svg", "a.woff2", "a.png", "a.css", "a.wasm",
                           "a.mp4", "a.txt", "a.docx"})
    EXPECT_TRUE(MediaType::parse(content_type_of(name))) << name;
}

TEST(MediaTypeTest, TextTypesAreCompressible) {
  for (const char* type :
       {"text/html; charset=utf-8", "Text/X", "application/json", "application/ld+json",
        "image/svg+xml", "application/wasm", "application/XML ; a=b"})
    EXPECT_TRUE(is_compressible(type)) << type;
  for (const char* type : {"", "image/png", "application/zip", "font/woff2", "video/mp4",
                           "application/octet-stream", "textx/y", "application/jsonx"})
    EXPECT_FALSE(is_compressible(type)) << type;
}

TEST(AcceptEncoding, WeighsCodings) {
  EXPECT_EQ(weight_of_encoding("gzip, deflate;q=0.5", "gzip"), 1000);
  EXPECT_EQ(weight_of_encoding("gzip, deflate;q=0.5", "deflate"), 500);
  EXPECT_EQ(weight_of_encoding("gzip, deflate;q=0.5", "br"), 0);
  EXPECT_EQ(weight_of_encoding("GZIP;Q=0.2", "gzip"), 200);
  EXPECT_EQ(weight_of_encoding("x-gzip", "gzip"), 1000);
  EXPECT_EQ(weight_of_encoding("*;q=0.3, gzip;q=0", "gzip"), 0);
  EXPECT_EQ(weight_of_encoding("*;q=0.3, gzip;q=0", "br"), 300);
}

TEST(AcceptEncoding, AllowsIdentityUnlessItIsExcluded) {
  EXPECT_GT(weight_of_encoding("", "identity"), 0);
  EXPECT_EQ(weight_of_encoding("", "gzip"), 0);
  EXPECT_GT(weight_of_encoding("gzip", "identity"), 0);
  EXPECT_EQ(weight_of_encoding("identity;q=0", "identity"), 0);
  EXPECT_EQ(weight_of_encoding("*;q=0", "identity"), 0);
  EXPECT_EQ(weight_of_encoding("*;q=0, identity;q=0.5", "identity"), 500);
}

TEST(AcceptEncoding, SkipsMalformedElements) {
  EXPECT_EQ(
      weight_of_encoding(", ;q=1, gzip;q=x, gzip;q=2, gzip;q, gzip x, (), gzip;q=0.4", "gzip"),
      400);
}

TEST(AcceptEncoding, ChoosesFirstOfEquallyWeightedCodings) {
  constexpr std::string_view kOffered[] = {"br", "gzip", "identity"};
  EXPECT_EQ(choose_encoding("gzip, br", kOffered), 0u);
  EXPECT_EQ(choose_encoding("gzip;q=0.1", kOffered), 1u);
  EXPECT_EQ(choose_encoding("gzip;q=0.1, identity", kOffered), 2u);
  EXPECT_EQ(choose_encoding("zstd", kOffered), 2u);
  EXPECT_EQ(choose_encoding("", kOffered), 2u);
  EXPECT_EQ(choose_encoding("*;q=0", kOffered), std::nullopt);
}

TEST(Accept, WeighsByMostSpecificRange) {
  const std::string_view accept =
      "text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, text/plain;format=fixed;q=0.4, "
      "*/*;q=0.5";
  EXPECT_EQ(weight_of_type(accept, "text/plain;format=flowed"), 1000);
  EXPECT_EQ(weight_of_type(accept, "text/plain"), 700);
  EXPECT_EQ(weight_of_type(accept, "text/html"), 300);
  EXPECT_EQ(weight_of_type(accept, "image/jpeg"), 500);
  EXPECT_EQ(weight_of_type(accept, "text/plain;format=fixed"), 400);
  EXPECT_EQ(weight_of_type(accept, "TEXT/html;level=3"), 300);
}

TEST(Accept, AllowsAllTypesIfEmptyAndOnlyListedTypesOtherwise) {
  EXPECT_EQ(weight_of_type("", "a/b"), 1000);
  EXPECT_EQ(weight_of_type(" ", "a/b"), 1000);
  EXPECT_EQ(weight_of_type("a/c, b/*", "a/b"), 0);
  EXPECT_EQ(weight_of_type("a/b;q=0, */*", "a/b"), 0);
  EXPECT_EQ(weight_of_type("a/b;q=x, a, /b, */b, a/b c", "a/b"), 0);
  EXPECT_EQ(weight_of_type("*/*", "nonsense"), 0);
}

TEST(Accept, ChoosesFirstOfEquallyWeightedTypes) {
  constexpr std::string_view kOffered[] = {"text/html", "application/json"};
  EXPECT_EQ(choose_type("*/*", kOffered), 0u);
  EXPECT_EQ(choose_type("application/json, text/html;q=0.9", kOffered), 1u);
  EXPECT_EQ(choose_type("image/png", kOffered), std::nullopt);
}

}  // namespace
}  // namespace spate::http
