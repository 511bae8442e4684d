#include "scenario/reader/stored_text.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"
#include "support/same_scenario.hpp"
#include "support/shipped.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Options = std::vector<std::string>;

TEST(StoredText, GivesEveryShippedScenarioBackWithItsOverrides) {
  const std::filesystem::path folder = testing::kShippedScenarios;
  int scenarios = 0;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().string());
    if (!load_scenario(entry.path(), {}, Placing::optional).is_placed()) continue;
    ++scenarios;
    const Scenario plain = load_scenario(entry.path());
    testing::expect_same_scenario(read_stored(plain.text, plain.name + ".toml"), plain);
    Options set{"run.seed=7", "run.time_scale=0.5", "run.seed=9"};
    if (!plain.links.empty()) set.emplace_back("link.latency=7ms");
    const Scenario other = load_scenario(entry.path(), set);
    const Scenario again = read_stored(other.text, other.name + ".toml");
    testing::expect_same_scenario(again, other);
    EXPECT_EQ(again.run.seed, 9U);
    EXPECT_EQ(again.run.time_scale, 0.5);
  }
  EXPECT_GT(scenarios, 15);
}

TEST(StoredText, NeedsNoneOfTheFilesThatAScenarioNames) {
  std::string name = (std::filesystem::temp_directory_path() / "stored-XXXXXX").string();
  const std::filesystem::path directory{mkdtemp(name.data())};
  std::ofstream{directory / "rates.csv"} << "time_s,bandwidth_gbps\n0,5\n10,2.5\n";
  std::ofstream{directory / "pairs.csv"}
      << "src_region,dst_region,rtt_avg_ms,throughput_received_bps,note\n"
         "a:one,b:two,20.000002,4000000000.5,x\nb:two,a:one,21,3000000000,y\n";
  std::vector<std::string> lines = kLines;
  lines[8] += "\nregion = \"a:one\"";
  lines[11] += "\nregion = \"b:two\"";
  lines[14] = "trace = \"rates.csv\"\n[wan]\nregions = \"pairs.csv\"";
  std::ofstream{directory / "s.toml"} << joined(lines);
  const Scenario read = load_scenario(directory / "s.toml", Options{"link.loss=0.01"});
  std::filesystem::remove_all(directory);
  EXPECT_THAT(read.text, HasSubstr("#: regions pairs.csv\n#: src_region,"));
  testing::expect_same_scenario(read_stored(read.text, "s.toml"), read);
  EXPECT_EQ(read.link(DatacenterId{0}, DatacenterId{1})->latency, 10'000'001ns);
  EXPECT_EQ(read.link(DatacenterId{1}, DatacenterId{0})->latency, 10'500us);
}

// A file that was taken from a trace: what another run set was not set here.
TEST(StoredText, KeepsTheOverridesOfThisReadingAlone) {
  const Scenario first =
      parse_scenario(joined(kLines), "s.toml", Options{"run.seed=3", "link.latency=2ms"});
  const Scenario plain = parse_scenario(first.text, "s.toml");
  EXPECT_EQ(plain.run.seed, 1U);
  EXPECT_EQ(plain.text, joined(kLines));
  testing::expect_same_scenario(read_stored(plain.text, "s.toml"), plain);
  const Scenario second = parse_scenario(first.text, "s.toml", Options{"run.seed=4"});
  EXPECT_THAT(stored_options(second.text).set, ElementsAre("run.seed=4"));
  EXPECT_EQ(read_stored(second.text, "s.toml").link(DatacenterId{0}, DatacenterId{1})->latency,
            10ms);
  // As ranks get it, with the same options once more.
  EXPECT_EQ(parse_scenario(first.text, "s.toml", Options{"run.seed=3", "link.latency=2ms"}).text,
            first.text);
}

TEST(StoredText, HasTheLinksOfEachIteration) {
  Scenario scenario = parse_scenario(joined(kLines), "s.toml", Options{"link.latency=2ms"});
  store_changes(scenario.text, Options{"7:link.latency=4ms", "3:link.latency=3ms"});
  const auto latency = [&](int iteration) {
    return read_stored(scenario.text, "s.toml", iteration)
        .link(DatacenterId{0}, DatacenterId{1})
        ->latency;
  };
  EXPECT_EQ(latency(0), 2ms);
  EXPECT_EQ(latency(2), 2ms);
  EXPECT_EQ(latency(3), 3ms);
  EXPECT_EQ(latency(6), 3ms);
  EXPECT_EQ(latency(7), 4ms);
  EXPECT_EQ(latency(1'000'000), 4ms);
}

TEST(StoredText, BeginsEachOptionOnALineOfItsOwn) {
  std::string text = "a = 1";
  store_changes(text, {});
  EXPECT_EQ(text, "a = 1");
  store_overrides(text, Options{"x=1"});
  store_changes(text, Options{"2:y=3"});
  EXPECT_EQ(text, "a = 1\n# --set x=1\n# --change 2:y=3\n");
  EXPECT_EQ(without_stored_options(text), "a = 1\n");
  const StoredOptions options = stored_options(text + "# --change no number:y=3\n");
  EXPECT_THAT(options.set, ElementsAre("x=1"));
  ASSERT_EQ(options.changes.size(), 1U);
  EXPECT_EQ(options.changes[0].iteration, 2);
  EXPECT_EQ(options.changes[0].set, "y=3");
  EXPECT_THAT(stored_options("").set, IsEmpty());
  EXPECT_THAT(without_stored_options("  # --set x=1"), Not(IsEmpty()));
}

}  // namespace
}  // namespace longhaul::scenario
