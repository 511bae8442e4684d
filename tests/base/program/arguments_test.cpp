// Command lines: what options take, what is refused, in which words.
#include "base/program/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

/// The error's text; empty: there is none.
std::string problem_of(Arguments& arguments, const Words& words) {
  try {
    (void)arguments.parse(words);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(Arguments, EveryKindOfValueIsRead) {
  std::string text;
  int number = 0;
  std::int64_t large = 0;
  std::uint64_t seed = 0;
  double ratio = 0;
  std::optional<int> maybe;
  std::filesystem::path path;
  Words list;
  bool json = false;
  Arguments arguments{"A tool."};
  arguments.option("FILE", text);
  arguments.option("--number", number);
  arguments.option("--large", large);
  arguments.option("--seed", seed);
  arguments.option("--ratio", ratio);
  arguments.option("--maybe", maybe);
  arguments.option("--path", path);
  arguments.option("--set", list).one_value_each();
  arguments.flag("--json", json);
  const Words words{"--number", "-3",  "--large", "5000000000", "--seed", "7",
                    "--ratio",  "0.5", "--maybe", "4",          "--path", "a/b",
                    "--set",    "x=1", "a.toml",  "--set",      "y=2",    "--json"};
  EXPECT_FALSE(arguments.parse(words));
  EXPECT_EQ(text, "a.toml") << "no second value of --set";
  EXPECT_EQ(number, -3);
  EXPECT_EQ(large, 5'000'000'000);
  EXPECT_EQ(seed, 7U);
  EXPECT_EQ(ratio, 0.5);
  EXPECT_EQ(maybe, 4);
  EXPECT_EQ(path, "a/b");
  EXPECT_THAT(list, ElementsAre("x=1", "y=2"));
  EXPECT_TRUE(json);
}

TEST(Arguments, AnOptionThatIsNotGivenKeepsItsValue) {
  int number = 3;
  std::optional<int> maybe;
  Arguments arguments{"A tool."};
  arguments.option("--number", number);
  arguments.option("--maybe", maybe);
  EXPECT_FALSE(arguments.parse(Words{}));
  EXPECT_EQ(number, 3);
  EXPECT_FALSE(maybe);
}

TEST(Arguments, SlipsAreNamed) {
  int samples = 5;
  double loss = 0;
  std::string device = "cpu", scenario;
  bool json = false;
  Arguments arguments{"A tool."};
  arguments.option("scenario", scenario).required();
  arguments.option("--samples", samples).within(1, 100);
  arguments.option("--loss", loss).within(0.0, 1.0);
  arguments.option("--device", device).one_of({"cpu", "cuda"});
  arguments.flag("--json", json).takes_no_value();
  EXPECT_EQ(problem_of(arguments, {}), "scenario is required");
  EXPECT_EQ(problem_of(arguments, {"a", "--samples", "0"}),
            "--samples: Value 0 not in range 1 to 100");
  EXPECT_EQ(problem_of(arguments, {"a", "--samples"}),
            "--samples: 1 required INT:INT in [1 - 100] missing");
  EXPECT_THAT(problem_of(arguments, {"a", "--loss", "2"}), HasSubstr("--loss: Value 2 not in"));
  EXPECT_EQ(problem_of(arguments, {"a", "--device", "tpu"}), "--device: tpu not in {cpu,cuda}");
  EXPECT_EQ(problem_of(arguments, {"a", "--json=1"}), "json was given a disallowed flag override");
  EXPECT_THAT(problem_of(arguments, {"a", "--smaples", "3"}), HasSubstr("--smaples"));
}

TEST(Arguments, OptionsMayNeedOrExcludeOthers) {
  int search = 0, moves = 0, time = 0;
  Arguments arguments{"A tool."};
  const Argument first = arguments.option("--search", search);
  const Argument second = arguments.option("--moves", moves).needs(first);
  arguments.option("--time", time).excludes(second);
  EXPECT_EQ(problem_of(arguments, {"--search", "1", "--moves", "2"}), "");
  EXPECT_EQ(problem_of(arguments, {"--moves", "2"}), "--moves requires --search");
  EXPECT_THAT(problem_of(arguments, {"--search", "1", "--moves", "2", "--time", "3"}),
              HasSubstr("excludes"));
}

TEST(Arguments, HelpAndVersionAreTexts) {
  int samples = 5;
  std::string fault;
  Arguments arguments{"Measures a link."};
  arguments.option("--samples", samples, "of each target").shows_default();
  arguments.option("--fault", fault, "for tests").group("");
  arguments.version("1.2");
  arguments.footer("Example: tool --samples 3");
  const char* const help[] = {"tool", "--help"};
  const std::string text = arguments.parse(2, help).value();
  EXPECT_THAT(text, HasSubstr("Measures a link.\nUsage: tool [OPTIONS]"));
  EXPECT_THAT(text, HasSubstr("--samples INT=5"));
  EXPECT_THAT(text, HasSubstr("Example: tool --samples 3"));
  EXPECT_THAT(text, Not(HasSubstr("--fault")));
  EXPECT_EQ(arguments.parse(Words{"--version"}), "1.2\n");
}

TEST(Arguments, ACommandIsChosenAndUnknownWordsAreLeft) {
  bool json = false;
  Arguments arguments{"A tool."};
  arguments.program("tool");
  arguments.keeps_unknown();
  Arguments& trace = arguments.command("trace", "reads a trace");
  trace.keeps_unknown();
  Arguments& merge = trace.command("merge", "joins segments");
  merge.keeps_unknown();
  merge.flag("--json", json);
  EXPECT_FALSE(arguments.parse(Words{"trace", "merge", "--jsno", "x"}));
  ASSERT_EQ(arguments.chosen(), &trace);
  ASSERT_EQ(trace.chosen(), &merge);
  EXPECT_EQ(merge.chosen(), nullptr);
  EXPECT_THAT(merge.left(), ElementsAre("--jsno", "x"));
  EXPECT_THAT(merge.options(), ElementsAre("--help", "--json"));
  EXPECT_THAT(arguments.commands(), ElementsAre("trace"));
  EXPECT_EQ(merge.parent(), &trace);
  EXPECT_EQ(&arguments.at("trace").at("merge"), &merge);
  EXPECT_FALSE(arguments.parse(Words{"trac"}));
  EXPECT_EQ(arguments.chosen(), nullptr) << "a second line begins anew";
  EXPECT_THAT(arguments.left(), ElementsAre("trac"));
}

TEST(Arguments, NumbersInsideAWordAreReadAsValuesAre) {
  EXPECT_EQ(read_int("12"), 12);
  EXPECT_FALSE(read_int("1.5"));
  EXPECT_EQ(read_double("0.25"), 0.25);
  EXPECT_FALSE(read_double("x"));
}

TEST(Arguments, KnowWhichOptionsTakeNothingAndWhichSeveralValues) {
  int number = 0;
  bool json = false;
  Words sets, ends;
  Arguments arguments{"A tool."};
  arguments.option("--number", number);
  arguments.flag("--json", json);
  arguments.option("--set", sets).one_value_each();
  arguments.option("--ends", ends).values(1, 2);
  EXPECT_THAT(arguments.flags(), ElementsAre("--help", "--json"));
  EXPECT_THAT(arguments.repeatable(), ElementsAre("--set", "--ends"));
}

}  // namespace
}  // namespace longhaul::test
