// Images of digits as samples.
#include <set>

#include <gmock/gmock.h>

#include "files.hpp"
#include "training/data/byte_source.hpp"

namespace longhaul::testing {
namespace {

using namespace training;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr nn::ModelShape kImageShape{.sequence = 64, .vocabulary = 17};

/// Row r: pixels (r + column) % 17, class r % 10.
std::string table(int rows, const std::string& end = "\n") {
  std::string text;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < 64; ++column) text += std::to_string((row + column) % 17) + ",";
    text += std::to_string(row % 10) + end;
  }
  return text;
}

/// What the SHA-256 is of: rows [first, past).
std::string packed(int first, int past) {
  std::string rows;
  for (int row = first; row < past; ++row) {
    for (int column = 0; column < 64; ++column) rows += static_cast<char>((row + column) % 17);
    rows += static_cast<char>(row % 10);
  }
  return rows;
}

class DigitsData : public DataFiles {
protected:
  [[nodiscard]] std::string refusal_of(const std::string& csv) const {
    return refusal("digits:" + write("table.csv", csv), 64);
  }
};

TEST_F(DigitsData, SaysWhatItIs) {
  const std::string file = write("table.csv", table(400));
  const DataFacts facts = open_data("digits:" + file, kImageShape, 1)->facts();
  EXPECT_EQ(facts.name, "digits:" + file);
  EXPECT_EQ(facts.vocabulary, 17);
  EXPECT_EQ(facts.classes, 10);
  EXPECT_EQ(facts.train.samples, 40);
  EXPECT_EQ(facts.train.bytes, 40 * 65);
  EXPECT_EQ(facts.train.sha256, sha256(packed(0, 40)));
  EXPECT_EQ(facts.held_out.samples, 360);
  EXPECT_EQ(facts.held_out.bytes, 360 * 65);
  EXPECT_EQ(facts.held_out.sha256, sha256(packed(40, 400)));
}

TEST_F(DigitsData, PredictsTheClassAtTheLastPixelAlone) {
  const auto data = open_data("digits:" + write("table.csv", table(400)), kImageShape, 1);
  std::set<std::pair<std::int32_t, std::int32_t>> seen;  // first pixel and class: r % 170
  const nn::MicrobatchText epoch = data->samples(0, 40);
  ASSERT_EQ(epoch.tokens.size(), 40U * 64);
  ASSERT_EQ(epoch.targets.size(), 40U * 64);
  for (std::size_t i = 0; i < epoch.targets.size(); ++i) {
    const std::size_t column = i % 64, begin = i - column;
    EXPECT_EQ(epoch.tokens[i], (epoch.tokens[begin] + static_cast<int>(column)) % 17);
    if (column == 63) {
      seen.emplace(epoch.tokens[begin], epoch.targets[i]);
    } else {
      EXPECT_EQ(epoch.targets[i], -1);
    }
  }
  std::set<std::pair<std::int32_t, std::int32_t>> expected;
  for (int row = 0; row < 40; ++row) expected.emplace(row % 17, row % 10);
  EXPECT_EQ(seen, expected);
}

TEST_F(DigitsData, HoldsOutTheLastRows) {
  const auto data = open_data("digits:" + write("table.csv", table(361)), kImageShape, 1);
  EXPECT_EQ(data->samples(0, 3).targets[127], 0);  // the only row, three times
  const auto held_out = data->held_out(100, 1000);
  ASSERT_EQ(held_out.size(), 4U);
  EXPECT_EQ(held_out[3].tokens.size(), 60U * 64);
  EXPECT_EQ(held_out[0].targets[63], 1);
  EXPECT_EQ(held_out[3].targets[59 * 64 + 63], 0);
  EXPECT_EQ(held_out[3].tokens[59 * 64], 360 % 17);
}

TEST_F(DigitsData, TakesNumbersAsOtherProgramsWriteThem) {
  std::string csv = table(361, "\r\n") + "\r\n";
  csv.replace(0, 3, "0.0,1e0");  // 0,1
  const auto data = open_data("digits:" + write("table.csv", csv), kImageShape, 1);
  EXPECT_EQ(data->facts().train.sha256, sha256(packed(0, 1)));
}

TEST_F(DigitsData, RefusesATableThatIsNone) {
  const std::string good = table(2);
  EXPECT_THAT(refusal_of(good + "1,2,3\n"), EndsWith("table.csv:3: is no row of 65 numbers (it has "
                                                     "3). Write 64 pixels and a class, with "
                                                     "commas between."));
  EXPECT_THAT(refusal_of(table(1, ",1\n")), HasSubstr(":1: is no row of 65 numbers (it has more)"));
  EXPECT_THAT(refusal_of(good + "17" + good), HasSubstr(":3: \"170\" in column 1 is no pixel (a "
                                                        "whole number from 0 to 16)"));
  for (const char* const bad : {"-1", "0.5", "nan", "", " 1", "1x", "0x1", "1e300"})
    EXPECT_THAT(refusal_of(std::string{bad} + good.substr(1)), HasSubstr("in column 1 is no pixel"))
        << bad;
  EXPECT_THAT(refusal_of(table(10) + table(11, "0\n")),
              HasSubstr(":12: \"10\" in column 65 is no class (a whole number from 0 to 9)"));
  EXPECT_THAT(refusal_of(table(360)), HasSubstr("has 360 rows (the last 360 are held out, and "
                                                "there is none to train on)"));
  EXPECT_THAT(refusal_of(""), HasSubstr("has 0 rows"));
  EXPECT_THAT(refusal("digits:/nowhere.csv", 64), HasSubstr("/nowhere.csv: cannot be read"));
}

TEST_F(DigitsData, RefusesAShapeThatDoesNotFit) {
  const std::string spec = "digits:" + write("table.csv", table(400));
  EXPECT_THAT(refusal(spec, 32), HasSubstr("does not fit sequences of 32 (an image is 64 tokens). "
                                           "Set model.sequence_length = 64."));
  EXPECT_THAT(refusal(spec, 64, 16), HasSubstr("does not fit a vocabulary of 16"));
}

}  // namespace
}  // namespace longhaul::testing
