// Lines of tables: words between commas, and in quotes.
#include "scenario/text/csv_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::scenario {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  split_words(line, words);
  return {words.begin(), words.end()};
}

TEST(CsvLines, AreSplitAtCommas) {
  EXPECT_THAT(words_of("a,b c,"), ElementsAre("a", "b c", ""));
  EXPECT_THAT(words_of(""), ElementsAre(""));
  EXPECT_THAT(words_of(",,"), ElementsAre("", "", ""));
}

TEST(CsvLines, KeepCommasInQuotes) {
  EXPECT_THAT(words_of("gemm,\"f<1, 2>(int, int)\",0"),
              ElementsAre("gemm", "f<1, 2>(int, int)", "0"));
  EXPECT_THAT(words_of("\"a,b\""), ElementsAre("a,b"));
  EXPECT_THAT(words_of("\"a,b\","), ElementsAre("a,b", ""));
  EXPECT_THAT(words_of("\"\",x"), ElementsAre("", "x"));
  EXPECT_THAT(words_of("\"say \"\"a,b\"\"\",x"), ElementsAre("say \"\"a,b\"\"", "x"));
}

TEST(CsvLines, TakeQuotesThatDoNotEndAWordAsTheyAre) {
  EXPECT_THAT(words_of("\"a,b"), ElementsAre("\"a", "b"));
  EXPECT_THAT(words_of("\"a\"b,c"), ElementsAre("\"a\"b", "c"));
  EXPECT_THAT(words_of("a\"b,c\""), ElementsAre("a\"b", "c\""));
  EXPECT_THAT(words_of("\""), ElementsAre("\""));
  EXPECT_THAT(words_of("\"\"\""), ElementsAre("\"\"\""));
}

TEST(CsvLines, AreShort) {
  EXPECT_EQ(words_of(std::string(1000, ',')).size(), 65U);
  std::string quoted;
  for (int i = 0; i < 100; ++i) quoted += "\"a\",";
  EXPECT_EQ(words_of(quoted).size(), 65U);
}

}  // namespace
}  // namespace longhaul::scenario
