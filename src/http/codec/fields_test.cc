#include "spate/http/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/fault.h"
#include "http/codec/field_hash.h"

namespace spate::http {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> strings(auto range) {
  std::vector<std::string> found;
  for (const std::string_view each : range) found.emplace_back(each);
  return found;
}

TEST(FieldId, MatchesItsNameInAnyCase) {
  for (int i = 1; i < kFieldIds; ++i) {
    const auto id = static_cast<FieldId>(i);
    std::string name(name_of(id));
    EXPECT_EQ(field_id_of(name), id) << name;
    for (char& c : name) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(field_id_of(name), id) << name;
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(field_id_of(name), id) << name;
  }
  EXPECT_EQ(name_of(FieldId::other), "");
}

TEST(FieldId, IsUnknownIfOneByteDiffers) {
  for (int i = 1; i < kFieldIds; ++i) {
    const auto id = static_cast<FieldId>(i);
    const std::string name(name_of(id));
    EXPECT_EQ(field_id_of(name + "x"), FieldId::other) << name;
    EXPECT_NE(field_id_of(name.substr(1)), id) << name;
    for (std::size_t at = 0; at < name.size(); ++at)
      for (int bit = 0; bit < 8; ++bit) {
        std::string other = name;
        other[at] = static_cast<char>(other[at] ^ 1 << bit);
        const bool is_case = bit == 5 && name[at] != '-';
        EXPECT_EQ(field_id_of(other) == id, is_case) << name << " " << at << " " << bit;
      }
  }
  EXPECT_EQ(field_id_of(""), FieldId::other);
  EXPECT_EQ(field_id_of("X"), FieldId::other);
  EXPECT_EQ(field_id_of(std::string(1000, 'a')), FieldId::other);
}

TEST(Fields, KeepOrderAndSpellingOfAddedFields) {
  Fields fields;
  EXPECT_TRUE(fields.empty());
  ASSERT_TRUE(fields.add("X-One", "1"));
  ASSERT_TRUE(fields.add(FieldId::content_type, "text/plain"));
  ASSERT_TRUE(fields.add("x-ONE", " \t2 "));
  ASSERT_TRUE(fields.add("sERVER", ""));
  EXPECT_EQ(fields.lines(), "X-One: 1\r\nContent-Type: text/plain\r\nx-ONE: 2\r\nsERVER: \r\n");
  EXPECT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields["x-one"], "1");
  EXPECT_EQ(fields["content-type"], "text/plain");
  EXPECT_EQ(fields.find(FieldId::server), "");
  EXPECT_FALSE(fields.find("X-Two"));
  EXPECT_FALSE(fields.find(FieldId::date));
  EXPECT_EQ(fields.view().at(3).id, FieldId::server);
  EXPECT_EQ(fields.view().count("X-ONE"), 2u);
  EXPECT_THAT(strings(fields.view().all("X-One")), ElementsAre("1", "2"));
  std::string names;
  for (const Field field : fields.view()) names += std::string(field.name) + " ";
  EXPECT_EQ(names, "X-One Content-Type x-ONE sERVER ");
}

TEST(Fields, RefuseNamesThatAreNotTokens) {
  Fields fields;
  for (const std::string_view name :
       {"",     " ",   "a b", "a:",  ":a",  "a\r",  "a\n", "\xe4", "a(b)", "a,b",  "a;b",
        "a\"b", "a/b", "{a}", "[a]", "a@b", "a\\b", "a=b", "a?",   "<a>",  "a\x7f"})
    EXPECT_FALSE(fields.add(name, "x")) << name;
  EXPECT_FALSE(fields.add(std::string_view("a\0b", 3), "x"));
  EXPECT_TRUE(fields.add("!#$%&'*+-.^_`|~09azAZ", "x"));
  EXPECT_EQ(fields.size(), 1u);
}

TEST(Fields, RefuseValuesWithControls) {
  Fields fields;
  for (int c = 0; c < 256; ++c) {
    const std::string value = std::string("a") + static_cast<char>(c) + "b";
    const bool is_control = (c < 0x20 && c != '\t') || c == 0x7f;
    EXPECT_NE(fields.set("x", value), is_control) << c;
    if (!is_control) EXPECT_EQ(fields["x"], value);
  }
  EXPECT_FALSE(fields.add("x", "a\r\nSet-Cookie: b"));
  EXPECT_EQ(fields.size(), 1u);
}

TEST(Fields, ReplaceAllFieldsOfNameOnSet) {
  Fields fields;
  ASSERT_TRUE(fields.add("A", "1") && fields.add("b", "2") && fields.add("a", "3"));
  ASSERT_TRUE(fields.set("a", "4"));
  EXPECT_EQ(fields.lines(), "b: 2\r\na: 4\r\n");
  EXPECT_FALSE(fields.set("b", "\n"));
  ASSERT_TRUE(fields.set(FieldId::host, "h"));
  ASSERT_TRUE(fields.set("HOST", "i"));
  EXPECT_EQ(fields.lines(), "b: 2\r\na: 4\r\nHOST: i\r\n");
}

TEST(Fields, MaySetValuesFromTheirOwnStorage) {
  Fields fields;
  ASSERT_TRUE(fields.add("a", std::string(200, 'x')));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(fields.set("b", fields["a"]));
  ASSERT_TRUE(fields.set(fields.view().at(1).name, fields["b"]));
  EXPECT_EQ(fields["b"], std::string(200, 'x'));
  ASSERT_TRUE(fields.add_all(fields));
  EXPECT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields.view().at(3).value, std::string(200, 'x'));
}

TEST(Fields, RemoveAllFieldsOfName) {
  Fields fields;
  ASSERT_TRUE(fields.add("Host", "1") && fields.add("b", "2") && fields.add("Host", "3"));
  EXPECT_EQ(fields.remove(FieldId::host), 2u);
  EXPECT_FALSE(fields.contains(FieldId::host));
  EXPECT_FALSE(fields.view().contains_any(bit_of(FieldId::host)));
  EXPECT_EQ(fields.lines(), "b: 2\r\n");
  EXPECT_EQ(fields.remove("c"), 0u);
  EXPECT_EQ(fields.remove("B"), 1u);
  EXPECT_EQ(fields.lines(), "");
  ASSERT_TRUE(fields.add("d", "4"));
  fields.clear();
  EXPECT_EQ(fields.size(), 0u);
  EXPECT_TRUE(fields.add("e", "5"));
}

TEST(Fields, AreEmptyAfterMove) {
  Fields fields;
  ASSERT_TRUE(fields.add("a", "1"));
  Fields other = std::move(fields);
  EXPECT_EQ(other["a"], "1");
  EXPECT_TRUE(fields.empty());
  fields = std::move(other);
  EXPECT_EQ(fields["a"], "1");
  EXPECT_TRUE(other.empty());
}

TEST(Fields, AreIncompleteAfterFailure) {
  Fields fields;
  EXPECT_TRUE(fields.add("a", "1") && fields.is_complete());
  EXPECT_FALSE(fields.add("b", "\n"));
  EXPECT_FALSE(fields.is_complete());
  EXPECT_TRUE(fields.set("b", "2"));
  EXPECT_FALSE(fields.is_complete());
  fields.accept_incomplete();
  EXPECT_TRUE(fields.is_complete());
  EXPECT_FALSE(fields.set("b c", "2"));
  EXPECT_FALSE(fields.is_complete());

  Fields copy;
  EXPECT_TRUE(copy.add_all(fields.view()) && copy.is_complete());
  EXPECT_FALSE(copy.add_all(fields));
  EXPECT_FALSE(copy.is_complete());
  const Fields moved = std::move(copy);
  EXPECT_FALSE(moved.is_complete());
  EXPECT_TRUE(copy.is_complete());
  fields.clear();
  EXPECT_TRUE(fields.is_complete());
}

TEST(Fields, HoldExactlyMaximumSize) {
  Fields fields;
  const std::size_t frame = std::string_view("a: \r\n").size();
  ASSERT_TRUE(fields.add("a", std::string(Fields::kMostBytes - 2 * frame - 1, 'x')));
  EXPECT_FALSE(fields.add("b", "12"));
  EXPECT_TRUE(fields.add("b", "1"));
  EXPECT_EQ(fields.lines().size(), Fields::kMostBytes);
  EXPECT_EQ(fields["b"], "1");
  EXPECT_FALSE(fields.add("c", ""));
  fields.accept_incomplete();
  Fields other;
  EXPECT_TRUE(other.add_all(fields));
  EXPECT_FALSE(other.add_all(fields));
  EXPECT_EQ(other.lines(), fields.lines());
}

TEST(Fields, AreUnchangedWhenMemoryRunsOut) {
  Fields fields;
  ASSERT_TRUE(fields.add("a", "1"));
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM, 100);
  FaultScope scope(plan);
  const std::string large(300, 'x');
  EXPECT_FALSE(fields.add("b", large));
  EXPECT_FALSE(fields.set("a", large));
  EXPECT_FALSE(fields.is_complete());
  EXPECT_EQ(fields.lines(), "a: 1\r\n");
  Fields other;
  EXPECT_FALSE(other.add_all(fields));
}

TEST(Fields, AgreeWithListOverRandomOperations) {
  Fields fields;
  std::vector<std::pair<std::string, std::string>> model;
  std::uint32_t random = 1;
  const auto below = [&random](std::uint32_t bound) {
    random = random * 1664525 + 1013904223;
    return (random >> 16) % bound;
  };
  const char* const names[] = {"Host", "X-A", "Date", "x-b", "ETag"};
  for (int i = 0; i < 5000; ++i) {
    const std::string name = names[below(5)];
    const std::string value(below(40), static_cast<char>('a' + below(26)));
    const std::uint32_t what = below(8);
    if (what != 0) {
      if (what > 4) std::erase_if(model, [&](const auto& field) { return field.first == name; });
      if (what < 7) model.emplace_back(name, value);
    }
    if (what > 0 && what <= 4) ASSERT_TRUE(fields.add(name, value));
    if (what == 5 || what == 6) ASSERT_TRUE(fields.set(name, value));
    if (what == 7) fields.remove(name);
    if (fields.lines().size() > 4000) {
      fields.clear();
      model.clear();
    }
    std::string lines;
    for (const auto& [key, text] : model) lines += key + ": " + text + "\r\n";
    ASSERT_EQ(fields.lines(), lines);
    for (const char* each : names)
      ASSERT_EQ(fields.contains(each),
                std::ranges::any_of(model, [&](const auto& field) { return field.first == each; }));
  }
}

TEST(ListValues, SplitsAtCommasOutsideOfQuotes) {
  Fields fields;
  ASSERT_TRUE(fields.add("Accept", "a, b;q=\"x, y\" ,, c"));
  ASSERT_TRUE(fields.add("Date", "d, e"));
  ASSERT_TRUE(fields.add("Accept", ""));
  ASSERT_TRUE(fields.add("Accept", " , "));
  ASSERT_TRUE(fields.add("Accept", R"("f \", g" h,i)"));
  EXPECT_THAT(strings(fields.view().list("accept")),
              ElementsAre("a", "b;q=\"x, y\"", "c", R"("f \", g" h)", "i"));
  EXPECT_THAT(strings(fields.view().list("Vary")), IsEmpty());
  EXPECT_TRUE(fields.view().list("Accept").contains("C"));
  EXPECT_FALSE(fields.view().list("Accept").contains("d"));
}

TEST(ListValues, EndsAtUnterminatedQuote) {
  Fields fields;
  ASSERT_TRUE(fields.add("a", "x, \"y, z"));
  EXPECT_THAT(strings(fields.view().list("a")), ElementsAre("x", "\"y, z"));
  ASSERT_TRUE(fields.set("a", "\"\\"));
  EXPECT_THAT(strings(fields.view().list("a")), ElementsAre("\"\\"));
  ASSERT_TRUE(fields.set("a", ","));
  EXPECT_THAT(strings(fields.view().list("a")), IsEmpty());
}

}  // namespace
}  // namespace spate::http
