// Slips on the command line of a program without commands.
#include "base/program/command_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

/// The error's text; empty: there is none.
std::string answer_to(std::vector<std::string> words) {
  std::string scenario, out;
  int iterations = 0;
  std::vector<std::string> overrides;
  bool json = false;
  Arguments arguments{"A benchmark."};
  arguments.option("scenario", scenario).required();
  arguments.option("--iterations", iterations);
  arguments.option("--out", out);
  arguments.option("--set", overrides).one_value_each();
  arguments.flag("--json", json).takes_no_value();
  words.insert(words.begin(), "build/bin/bench_it");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  try {
    (void)parse_words(arguments, static_cast<int>(argv.size()), argv.data());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CommandWords, ASlipIsAnsweredWithItsOptionAndTheNearestKnownOne) {
  EXPECT_EQ(answer_to({"s.toml", "--set", "a=1", "--set", "b=2", "--iterations", "3"}), "");
  EXPECT_THAT(answer_to({"s.toml", "--iteratons", "3"}),
              HasSubstr("bench_it: unknown option \"--iteratons\". Did you mean "
                        "\"--iterations\"?"));
  EXPECT_THAT(answer_to({"s.toml", "--iteratons=3"}), HasSubstr("unknown option \"--iteratons\""));
  EXPECT_THAT(answer_to({"--jsn"}), HasSubstr("Did you mean \"--json\"?"))
      << "before the scenario that is missing";
  EXPECT_THAT(answer_to({}), HasSubstr("scenario is required"));
  EXPECT_THAT(answer_to({"s.toml", "more"}), HasSubstr("unexpected argument \"more\""));
  EXPECT_THAT(answer_to({"s.toml", "--iterations", "x"}), HasSubstr("--iterations"));
  EXPECT_THAT(answer_to({"s.toml", "--iterations", "3", "--iterations=4"}),
              HasSubstr("--iterations is given 2 times (it takes one value)"));
  EXPECT_THAT(answer_to({"s.toml", "--json=3"}), HasSubstr("--json=3: unexpected value"));
}

TEST(CommandWords, OutHasAName) {
  EXPECT_THAT(answer_to({"s.toml", "--out", ""}), HasSubstr("--out \"\" names no file"));
  EXPECT_THAT(answer_to({"s.toml", "--out="}), HasSubstr("--out \"\" names no file"));
  EXPECT_THAT(answer_to({"s.toml", "--out", "-"}), HasSubstr("--out \"-\" names no file"));
  EXPECT_THAT(answer_to({"s.toml", "--out=-"}), HasSubstr("--out \"-\" names no file"));
  EXPECT_EQ(answer_to({"s.toml", "--out", "runs/first"}), "");
}

TEST(CommandWords, AnErrorNamesTheOptionWhoseValueItIs) {
  try {
    (void)value_of("--deadline", []() -> int { fail("\"3\" is no duration (it has no unit)."); });
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--deadline: \"3\" is no duration (it has no unit).");
  }
  EXPECT_EQ(value_of("--deadline", [] { return 3; }), 3);
}

}  // namespace
}  // namespace longhaul::test
