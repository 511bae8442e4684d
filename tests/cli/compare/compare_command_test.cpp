#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "cli/support.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Noise of 1% around `center`, from a seed.
std::vector<double> sample(double center, std::size_t n, std::uint64_t seed) {
  Random random{seed};
  std::vector<double> times(n);
  for (double& time : times) time = center * (1 + 0.01 * random.normal());
  return times;
}

Json entry(const std::string& schedule, const std::vector<double>& times) {
  return {{"schedule", schedule}, {"samples_ns", times}, {"check", "ok"}};
}

Json record(const std::vector<Json>& schedules) {
  return {{"numbers", "measured"}, {"comm", "decoupled"},
          {"emulate", "on"},       {"git_commit", "abc"},
          {"time_scale", 0.5},     {"scenario", "[scenario]\nname = \"two\"\n"},
          {"schedules", schedules}};
}

class Compare : public ::testing::Test {
protected:
  std::string write(const std::string& name, const Json& content) {
    return dir_.write(name, content.dump());
  }
  /// JSON of comparing one schedule's samples.
  Json compared(const std::vector<double>& a, const std::vector<double>& b) {
    const Outcome run = longhaul_run({"compare", write("a.json", record({entry("1f1b", a)})),
                                      write("b.json", record({entry("1f1b", b)})), "--json"});
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["comparisons"][0];
  }

  TempDir dir_;
};

TEST_F(Compare, TellsFasterFromSlower) {
  const auto a = sample(1e9, 20, 1);
  const auto b = sample(1.05e9, 20, 2);
  EXPECT_EQ(compared(a, b)["b_is"], "slower");
  EXPECT_EQ(compared(b, a)["b_is"], "faster");
  EXPECT_EQ(compared(a, sample(1e9, 20, 3))["b_is"], "not distinguishable");
  EXPECT_EQ(compared(a, a)["b_is"], "not distinguishable");
}

/// Four against four that do not overlap: the interval is the range of the 16 ratios.
TEST_F(Compare, KnownValues) {
  const Json c = compared({100, 101, 102, 103}, {110, 111, 112, 113});
  EXPECT_EQ(c["a"]["median_ns"], 101.5);
  EXPECT_TRUE(c["a"]["median_low_ns"].is_null());
  EXPECT_DOUBLE_EQ(c["ratio_low"], 110.0 / 103);
  EXPECT_DOUBLE_EQ(c["ratio_high"], 113.0 / 100);
  EXPECT_DOUBLE_EQ(c["ratio"], (111.0 / 101 + 112.0 / 102) / 2);
  EXPECT_EQ(c["b_is"], "slower");
}

TEST_F(Compare, SaysWhereSamplesAreTooSmall) {
  const Json c = compared({1, 2, 3}, {11, 12, 13});
  EXPECT_EQ(c["b_is"], "not distinguishable");
  EXPECT_TRUE(c["ratio_low"].is_null());
  EXPECT_THAT(c["reason"], HasSubstr("too few samples: 3 and 3"));
}

/// Each pair of runs of one program is told apart wrongly once in 20: 0.05 of 200, 10 +- 3 sqrt.
TEST_F(Compare, EqualRunsAreRarelyToldApart) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    wrong += compared(sample(1e9, 12, 2 * seed), sample(1e9, 12, 2 * seed + 1))["b_is"] !=
                     "not distinguishable"
                 ? 1
                 : 0;
  EXPECT_LE(wrong, 21);  // P(X > 21) < 0.001 for Binomial(200, 0.05)
}

/// Runs of one program whose iterations vary by 1% and whose starts by 2%, as neighbours and
/// placement make them: iterations alone tell most of them apart, runs do not.
TEST_F(Compare, TheSpreadBetweenRunsIsInTheIntervalOfSeveral) {
  Random random{1};
  std::uint64_t seed = 1000;
  const auto some_run = [&] {
    const double center = 1e9 * (1 + 0.02 * random.normal());
    ++seed;
    return write(std::to_string(seed) + ".json", record({entry("1f1b", sample(center, 12, seed))}));
  };
  const auto side = [&] { return some_run() + "," + some_run() + "," + some_run(); };
  int told_of_one = 0, told_of_several = 0;
  for (int i = 0; i < 60; ++i) {
    const auto is_told = [&](const std::vector<std::string>& sides) {
      std::vector<std::string> words{"compare", "--json"};
      words.insert(words.end(), sides.begin(), sides.end());
      return longhaul_run(words).json()["comparisons"][0]["b_is"] != "not distinguishable";
    };
    told_of_one += is_told({some_run(), some_run()}) ? 1 : 0;
    told_of_several += is_told({side(), side()}) ? 1 : 0;
  }
  EXPECT_GT(told_of_one, 30) << "one run a side says nothing of the program";
  EXPECT_LE(told_of_several, 8);  // P(X > 8) < 0.005 for Binomial(60, 0.05)
}

/// Medians 100, 102 and 110, 112 of runs: log ratios +0.0935, pooled deviation 0.0134.
TEST_F(Compare, SeveralRunsASide) {
  const auto run_of = [&](const std::string& name, double time) {
    return write(name + ".json", record({entry("1f1b", {time, time, time})}));
  };
  const std::string a = run_of("a1", 100) + "," + run_of("a2", 102);
  const std::string b = run_of("b1", 110) + "," + run_of("b2", 112);
  const Json found = longhaul_run({"compare", a + ":" + b, "--json"}).json();
  EXPECT_EQ(found["holds_for"], "runs like these");
  const Json c = found["comparisons"][0];
  EXPECT_EQ(c["a"]["runs"], 2);
  EXPECT_EQ(c["b"]["run_medians_ns"], (Json{110.0, 112.0}));
  EXPECT_NEAR(c["ratio"].get<double>(), std::sqrt(110.0 * 112 / (100 * 102)), 1e-12);
  EXPECT_NEAR(c["ratio_low"].get<double>(), 1.0375, 1e-4);
  EXPECT_EQ(c["b_is"], "slower");
  EXPECT_EQ(longhaul_run({"compare", a, b, "--json"}).json()["comparisons"], found["comparisons"]);
  const Outcome text = longhaul_run({"compare", a, b});
  EXPECT_THAT(text.out, HasSubstr("medians of 2 and 2 runs"));
  EXPECT_THAT(text.out, HasSubstr("1f1b of A: medians of 2 runs from 100.0 to 102.0 ns"));
  EXPECT_THAT(longhaul_run({"compare", a, a}).out, HasSubstr("not distinguishable"));
}

TEST_F(Compare, SaysWhomAnAnswerIsAbout) {
  const std::string a = write("a.json", record({entry("1f1b", sample(1e9, 12, 1))}));
  EXPECT_THAT(longhaul_run({"compare", a, a}).out, HasSubstr("It is about these two runs:"));
  EXPECT_EQ(longhaul_run({"compare", a, a, "--json"}).json()["holds_for"], "these two runs");
}

TEST_F(Compare, DifferencesBelowTheLeastDoNotCount) {
  const std::string a = write("a.json", record({entry("1f1b", sample(1e9, 30, 1))}));
  const std::string b = write("b.json", record({entry("1f1b", sample(1.02e9, 30, 2))}));
  const auto verdict = [&](const std::string& least) {
    return longhaul_run({"compare", a, b, "--at-least", least, "--json"})
        .json()["comparisons"][0]["b_is"];
  };
  EXPECT_EQ(verdict("0%"), "slower");
  EXPECT_EQ(verdict("1%"), "slower");
  EXPECT_EQ(verdict("3%"), "not distinguishable");
  for (const char* odd : {"1", "x%", "-1%", "100%"})
    EXPECT_EQ(longhaul_run({"compare", a, b, "--at-least", odd}).code, 2) << odd;
}

TEST_F(Compare, RunsOfASideAreHeldAgainstEachOther) {
  Json other = record({entry("1f1b", {1, 1, 1, 1})});
  const std::string a = write("a.json", other);
  other["git_commit"] = "def";
  const std::string b = write("b.json", other);
  EXPECT_THAT(longhaul_run({"compare", a + "," + b, a}).out,
              HasSubstr("! runs of A differ: commit: " + a + " abc | " + b + " def"));
  other["time_scale"] = 1.0;
  EXPECT_EQ(longhaul_run({"compare", a + "," + write("c.json", other), a}).code, 2);
  EXPECT_THAT(longhaul_run({"compare", a + ",", a}).err, HasSubstr("a run without a name"));
  const std::string odd = write("with,comma:and colon.json", record({entry("1f1b", {1, 1, 1, 1})}));
  EXPECT_EQ(longhaul_run({"compare", odd, a}).code, 0) << "a file that is there is one run";
}

TEST_F(Compare, DoubtsOfARunAreTold) {
  Json other = record({entry("1f1b", {1, 1, 1, 1})});
  other["schedules"][0]["doubts"] = {"load 9.0 on 2 cores"};
  const std::string a = write("a.json", other);
  EXPECT_THAT(longhaul_run({"compare", a, a}).out,
              HasSubstr("! 1f1b of " + a + ": doubtful: load 9.0 on 2 cores"));
}

TEST_F(Compare, NeedsMediansToAgreeWithPairs) {
  // Most of B lies above most of A, but B's median lies below A's.
  const std::vector<double> a{1, 1, 1, 1, 1, 1, 1, 1, 1, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
  const std::vector<double> b{2, 2, 2, 2, 2, 2, 2, 2, 2, 9, 11, 11, 11, 11, 11, 11, 11, 11, 11};
  const Json c = compared(a, b);
  EXPECT_EQ(c["b_is"], "not distinguishable");
}

TEST_F(Compare, NamesOutliersAndKeepsThem) {
  auto a = sample(1e9, 20, 1);
  a[7] = 5e9;
  const std::string file = write("a.json", record({entry("1f1b", a)}));
  const Outcome run = longhaul_run({"compare", file, file});
  EXPECT_THAT(run.out, HasSubstr("1f1b of A: 1 of 20 samples beyond Tukey's fences"));
  EXPECT_EQ(longhaul_run({"compare", file, file, "--json"}).json()["comparisons"][0]["a"]["n"], 20);
}

TEST_F(Compare, PairsSchedulesByNameOrAsAsked) {
  const std::string a = write(
      "a.json", record({entry("1f1b", sample(2e9, 9, 1)), entry("gpipe", sample(3e9, 9, 2))}));
  const std::string b =
      write("b.json", record({entry("1f1b", sample(2e9, 9, 3)), entry("zbv", sample(1e9, 9, 4))}));
  const Json both = longhaul_run({"compare", a, b, "--json"}).json();
  EXPECT_EQ(both["comparisons"].size(), 1U);
  EXPECT_EQ(both["only_in_a"], Json{"gpipe"});
  EXPECT_EQ(both["only_in_b"], Json{"zbv"});
  const Outcome asked = longhaul_run({"compare", a, b, "--schedule", "gpipe,zbv"});
  EXPECT_THAT(asked.out, HasSubstr("gpipe / zbv"));
  EXPECT_THAT(asked.out, HasSubstr("faster"));
  const Outcome slip = longhaul_run({"compare", a, b, "--schedule", "zvb"});
  EXPECT_EQ(slip.code, 2);
  EXPECT_THAT(slip.err, HasSubstr("holds no schedule \"zvb\""));
  const std::string other = write("c.json", record({entry("zbv", sample(1e9, 9, 4))}));
  EXPECT_THAT(longhaul_run({"compare", a, other}).err, HasSubstr("no schedule in common"));
}

TEST_F(Compare, WarnsOfOtherConditions) {
  Json other = record({entry("1f1b", sample(1e9, 9, 1))});
  other["environment"]["load_average"]["after"] = {4.0, 1.0, 1.0};
  const std::string a = write("a.json", other);
  other["comm"] = "grouped";
  other["scenario"] = "[scenario]\nname = \"three\"\n";
  other["schedules"][0]["check"] = "2 lost";
  other["environment"]["load_average"]["after"] = {9.0, 1.0, 1.0};
  const Outcome run = longhaul_run({"compare", a, write("b.json", other)});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("! differs: comm: A decoupled | B grouped"));
  EXPECT_THAT(run.out, HasSubstr("! differs: scenario, from line 2 on: A name = \"two\" | B name = "
                                 "\"three\""));
  EXPECT_THAT(run.out, HasSubstr("! differs: load average: A 4.0 | B 9.0"));
  EXPECT_THAT(run.out, HasSubstr("! 1f1b of "));
  EXPECT_THAT(longhaul_run({"compare", a, a}).out, Not(HasSubstr("!")));
}

TEST_F(Compare, RefusesTimesThatDoNotMeanTheSame) {
  Json other = record({entry("1f1b", sample(1e9, 9, 1))});
  const std::string a = write("a.json", other);
  other["time_scale"] = 1.0;
  const Outcome scaled = longhaul_run({"compare", a, write("b.json", other)});
  EXPECT_EQ(scaled.code, 2);
  EXPECT_THAT(scaled.err, HasSubstr("time_scale 0.5 and "));
  const std::string simulated = write(
      "c.json",
      {{"numbers", "simulated"}, {"schedules", {{{"schedule", "1f1b"}, {"makespan_ns", 5}}}}});
  const Outcome mixed = longhaul_run({"compare", a, simulated});
  EXPECT_EQ(mixed.code, 2);
  EXPECT_THAT(mixed.err, HasSubstr("is measured and "));
}

TEST_F(Compare, ExpectationsDecideTheExitCode) {
  const std::string a = write("a.json", record({entry("1f1b", sample(1e9, 12, 1))}));
  const std::string b = write("b.json", record({entry("1f1b", sample(1.1e9, 12, 2))}));
  const auto code = [&](const std::string& expected) {
    return longhaul_run({"compare", a, b, "--expect", expected}).code;
  };
  EXPECT_EQ(code("slower"), 0);
  EXPECT_EQ(code("not-faster"), 0);
  EXPECT_EQ(code("faster"), 1);
  EXPECT_EQ(code("not-slower"), 1);
  EXPECT_EQ(code("not-distinguishable"), 1);
  const Outcome slip = longhaul_run({"compare", a, b, "--expect", "slowed"});
  EXPECT_EQ(slip.code, 2);
  EXPECT_THAT(slip.err, HasSubstr("Did you mean \"slower\"?"));
  const Json no = longhaul_run({"compare", a, b, "--expect", "faster", "--json"}).json();
  EXPECT_EQ(no["holds"], false);
}

TEST_F(Compare, ReadsDirectoriesTracesAndSimulations) {
  const std::string scenario = dir_.write("two.toml", kTwoSites);
  const std::string trace = dir_.path("t.h5");
  ASSERT_EQ(longhaul_run({"simulate", scenario, "--schedule", "1f1b,zb-h1", "--out", trace}).code,
            0);
  const Json c = longhaul_run({"compare", trace, trace, "--schedule", "1f1b,zb-h1", "--json"})
                     .json()["comparisons"][0];
  EXPECT_EQ(c["b_is"], "faster");
  EXPECT_EQ(c["a"]["n"], 1);
  const std::string printed = dir_.write(
      "s.json", longhaul_run({"simulate", scenario, "--schedule", "1f1b", "--json"}).out);
  EXPECT_EQ(longhaul_run({"compare", trace, printed, "--json"}).json()["comparisons"][0]["b_is"],
            "not distinguishable");
  std::filesystem::create_directory(dir_.path("run"));
  write("run/record.json", record({entry("1f1b", sample(1e9, 6, 1))}));
  EXPECT_EQ(longhaul_run({"compare", dir_.path("run"), dir_.path("run")}).code, 0);
}

TEST_F(Compare, NamesOfStrangersDoNotReachTheTerminal) {
  const std::string file = write("a.json", record({entry("\x1b[31mred\x7f", {1, 2, 3})}));
  const Outcome run = longhaul_run({"compare", file, file});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("?[31mred?"));
  EXPECT_EQ(run.out.find_first_of("\x1b\x7f"), std::string::npos);
  EXPECT_EQ(longhaul_run({"compare", file, "\x1b[31m.json"}).err.find('\x1b'), std::string::npos);
}

TEST_F(Compare, BadInputIsOneLine) {
  const std::string a = write("a.json", record({entry("1f1b", {1, 2})}));
  for (const auto& [bad, why] :
       {std::pair{dir_.write("x.json", "{"), "not a record to compare"},
        {write("y.json", {{"numbers", "measured"}, {"schedules", {{{"schedule", 5}}}}}),
         "not a record to compare"},
        {write("z.json", record({entry("1f1b", {})})), "no values"},
        {write("w.json", record({entry("1f1b", {1, -2})})), "not positive"},
        {write("v.json", record({entry("1f1b", {1, 1e300})})), "1f1b of "},
        {dir_.path("nothing.h5"), "no such file"}}) {
    const Outcome run = longhaul_run({"compare", a, bad});
    EXPECT_EQ(run.code, 2) << why;
    EXPECT_THAT(run.err, HasSubstr(why));
    EXPECT_THAT(run.out, IsEmpty());
  }
  EXPECT_THAT(longhaul_run({"compare", a}).err, HasSubstr("a file is missing"));
  EXPECT_THAT(longhaul_run({"compare", a, a, a}).err, HasSubstr("it takes two FILE"));
}

}  // namespace
}  // namespace longhaul::test
