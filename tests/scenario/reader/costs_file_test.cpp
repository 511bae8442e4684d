// Measured costs in a file that a scenario names.
#include "scenario/reader/costs_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 1 to 8 costs, 9 [model] with its dimensions, 19 [measured].
const std::vector<std::string> kCosts{"stages = 2",
                                      "forward = [\"10ms\", \"12ms\"]",
                                      "backward = [\"20ms\", \"25ms\"]",
                                      "dgrad = [\"11ms\", \"13ms\"]",
                                      "wgrad = [\"9ms\", \"11ms\"]",
                                      "recompute = [\"10500us\", \"12500us\"]",
                                      "activation = [\"3MiB\", \"4MiB\"]",
                                      "message = [\"1MiB\", \"1MiB\"]",
                                      "weights = [\"5MiB\", \"6MiB\"]",
                                      "[model]",
                                      "layers = 9",
                                      "hidden = 128",
                                      "intermediate = 512",
                                      "heads = 4",
                                      "kv_heads = 2",
                                      "vocabulary = 1000",
                                      "sequence_length = 64",
                                      "microbatch_size = 1",
                                      "layers_of_stages = [5, 4]",
                                      "[measured]",
                                      "device = \"cpu\"",
                                      "samples = 20",
                                      "message_time = \"1.5ms\""};

const char* const kModel =
    "[model]\nlayers = 9\nhidden = 128\nintermediate = 512\nheads = 4\nkv_heads = 2\n"
    "vocabulary = 1000\nsequence_length = 64\n";

class CostsFiles : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "costs-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    write("costs.toml", joined(kCosts));
    write("s.toml", scenario("[costs]\nfile = \"costs.toml\"\n"));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::string scenario(const std::string& costs) {
    return kModel + costs + "[parallel]\nstages = 2\nmicrobatches = 4\n";
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream{directory_ / name} << text;
  }
  [[nodiscard]] Scenario load(const std::vector<std::string>& set = {}) const {
    return load_scenario(directory_ / "s.toml", set);
  }
  /// The error's text, without the directory's name.
  [[nodiscard]] std::string said(const std::vector<std::string>& set = {}) const {
    try {
      (void)load(set);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      std::string text = error.what();
      const std::string folder = directory_.string() + "/";
      for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
        text.erase(at, folder.size());
      return text;
    }
    return "accepted";
  }
  /// With line `number` of the costs file replaced.
  [[nodiscard]] std::string said_with(std::size_t number, const std::string& by) const {
    std::vector<std::string> lines = kCosts;
    lines[number - 1] = by;
    write("costs.toml", joined(lines));
    return said();
  }

  std::filesystem::path directory_;
};

TEST_F(CostsFiles, GiveWhatTheScenarioDoesNotSayItself) {
  const Costs costs = load().costs;
  EXPECT_THAT(costs.forward, ElementsAre(10ms, 12ms));
  // Measured apart: a whole backward block need not take what D and W take.
  EXPECT_THAT(costs.backward, ElementsAre(20ms, 25ms));
  EXPECT_THAT(costs.dgrad, ElementsAre(11ms, 13ms));
  EXPECT_THAT(costs.wgrad, ElementsAre(9ms, 11ms));
  EXPECT_THAT(costs.recompute, ElementsAre(10'500us, 12'500us));
  EXPECT_THAT(costs.activation, ElementsAre(3_MiB, 4_MiB));
  EXPECT_THAT(costs.message, ElementsAre(1_MiB, 1_MiB));
  EXPECT_THAT(costs.weights, ElementsAre(5_MiB, 6_MiB));

  write("s.toml", scenario("[costs]\nforward = \"7ms\"\nfile = \"costs.toml\"\n"));
  EXPECT_THAT(load().costs.forward, ElementsAre(7ms, 7ms));
  EXPECT_THAT(load().costs.dgrad, ElementsAre(11ms, 13ms));
}

TEST_F(CostsFiles, AreNamedAndChangedOnTheCommandLine) {
  write("s.toml", scenario(""));
  const Costs costs =
      load({"costs.forward.1=30ms", "costs.file=costs.toml", "costs.weights=1KiB"}).costs;
  EXPECT_THAT(costs.forward, ElementsAre(10ms, 30ms));
  EXPECT_THAT(costs.weights, ElementsAre(1_KiB, 1_KiB));
}

TEST_F(CostsFiles, AreTakenBackByAnEmptyName) {
  std::filesystem::remove(directory_ / "costs.toml");
  write("plain.toml", scenario(""));
  EXPECT_EQ(load({"costs.file="}).costs.forward,
            load_scenario(directory_ / "plain.toml").costs.forward);
}

TEST_F(CostsFiles, TravelInTheScenariosText) {
  const Scenario read = load({"run.seed=5"});
  std::filesystem::remove(directory_ / "costs.toml");
  const Scenario handed =
      parse_scenario(read.text + "# --change 3:x\n", "elsewhere/s.toml", {{"run.seed=5"}});
  EXPECT_EQ(handed.costs.forward, read.costs.forward);
  EXPECT_EQ(handed.costs.message, read.costs.message);
  // Reading it again adds nothing.
  EXPECT_THAT(handed.text, HasSubstr("#: costs costs.toml"));
  EXPECT_EQ(parse_scenario(handed.text, "third.toml").costs.dgrad, read.costs.dgrad);
  // As a file that was taken out of a record.
  write("s.toml", read.text);
  EXPECT_EQ(load().costs.wgrad, read.costs.wgrad);
}

TEST_F(CostsFiles, CanBeToldFromCostsThatNobodyMeasured) {
  const Scenario named = load();
  EXPECT_TRUE(CostsFile::is_included(named.text));
  EXPECT_FALSE(CostsFile::is_included(named.text, std::vector<std::string>{"costs.file="}));
  EXPECT_FALSE(CostsFile::is_included(scenario("[costs]\nforward = \"1ms\"\n")));
  EXPECT_FALSE(CostsFile::is_included(scenario("")));
  const std::vector<std::string> set{"costs.file=costs.toml"};
  write("s.toml", scenario(""));
  EXPECT_TRUE(CostsFile::is_included(load(set).text, set)) << "of the command line";
}

TEST_F(CostsFiles, MayStandInTheScenario) {
  write("s.toml", scenario("[costs]\nfile = \"here\"\n[profiles]\nhere = \"\"\"\n" +
                           joined(kCosts) + "\"\"\"\n"));
  EXPECT_THAT(load().costs.forward, ElementsAre(10ms, 12ms));
  EXPECT_EQ(load().text.find("#: costs"), std::string::npos);
  std::vector<std::string> lines = kCosts;
  lines[1] = "forward = [\"10ms\", \"-12ms\"]";
  write("s.toml", scenario("[costs]\nfile = \"here\"\n[profiles]\nhere = \"\"\"\n" + joined(lines) +
                           "\"\"\"\n"));
  EXPECT_THAT(said(), HasSubstr("s.toml:12:8: profiles.here:2:20: costs.forward[1]"));
}

TEST_F(CostsFiles, OfNoModelStandAlone) {
  write("s.toml", "[costs]\nfile = \"costs.toml\"\n[parallel]\nstages = 2\nmicrobatches = 4\n");
  EXPECT_THAT(load().costs.forward, ElementsAre(10ms, 12ms));
  EXPECT_FALSE(load().model.has_value());
}

TEST_F(CostsFiles, OfAnotherModelAreRefusedWhereTheyDiffer) {
  EXPECT_THAT(said_with(1, "stages = 4"),
              HasSubstr("costs.toml:1:10: the costs are of 4 stages, the scenario has 2"));
  EXPECT_THAT(said_with(12, "hidden = 256"),
              HasSubstr("costs.toml:12:10: the costs are of a model with hidden = 256, the "
                        "scenario's has 128"));
  EXPECT_THAT(said_with(18, "microbatch_size = 2"), HasSubstr("costs.toml:18:19: "));
  EXPECT_THAT(said_with(19, "layers_of_stages = [4, 5]"),
              HasSubstr("costs.toml:19:20: the costs are of 4 layers on stage 0, the scenario "
                        "puts 5 there"));
  EXPECT_THAT(said_with(19, "layers_of_stages = [4, 4, 1]"), HasSubstr("has 3 values"));
  write("costs.toml", joined(kCosts));
  EXPECT_THAT(said({"model.hidden=64"}), HasSubstr("hidden = 128, the scenario's has 64"));
  EXPECT_THAT(said({"parallel.stages=3"}), HasSubstr("costs.toml:1:10: "));
}

TEST_F(CostsFiles, ThatAreNoneAreRefused) {
  EXPECT_THAT(said_with(2, "forward = [\"10ms\", \"-12ms\"]"),
              HasSubstr("costs.toml:2:20: costs.forward[1]"));
  EXPECT_THAT(said_with(2, "forward = [\"10ms\", 12]"), HasSubstr("costs.toml:2:20: "));
  EXPECT_THAT(said_with(2, "forward = [\"10ms\"]"), HasSubstr("costs.toml:2:11: "));
  EXPECT_THAT(said_with(2, "forwrd = \"10ms\""),
              HasSubstr("costs.toml:2:1: unknown key \"forwrd\""));
  EXPECT_THAT(said_with(2, ""), HasSubstr("forward"));
  EXPECT_THAT(said_with(1, ""), HasSubstr("stages"));
  EXPECT_THAT(said_with(14, ""), HasSubstr("heads"));
  EXPECT_THAT(said_with(22, "samples = -1"), HasSubstr("costs.toml:22:11: "));
  EXPECT_THAT(said_with(23, "mesage_time = \"1ms\""), HasSubstr("Did you mean"));
  EXPECT_THAT(said_with(2, "forward = [\"10ms\","), HasSubstr("costs.toml:"));
  write("costs.toml", "");
  EXPECT_THAT(said(), HasSubstr("costs.toml"));
  write("s.toml", scenario("[costs]\nfile = \"none.toml\"\n"));
  EXPECT_THAT(said(), HasSubstr("s.toml:10:8: none.toml: the file of measured costs cannot be "
                                "read (there is no such file). Correct costs.file"));
  write("s.toml", scenario("[costs]\nfile = \".\"\n"));
  EXPECT_THAT(said(), HasSubstr("this is no file"));
  write("s.toml", scenario("[costs]\nfile = 3\n"));
  EXPECT_THAT(said(), HasSubstr("s.toml:10:8: costs.file = 3 is no text"));
  write("s.toml", scenario("[costs]\nfile = \"\\u0001\"\n"));
  EXPECT_THAT(said(), HasSubstr("names no file"));
}

TEST_F(CostsFiles, CannotPretendToHoldOtherFiles) {
  std::vector<std::string> lines = kCosts;
  lines.emplace_back("command = \"\"\"\ntrace far.csv\ncosts costs.toml\n\"\"\"");
  write("costs.toml", joined(lines));
  const Scenario read = load();
  EXPECT_EQ(parse_scenario(read.text, "elsewhere.toml").costs.forward, read.costs.forward);
}

}  // namespace
}  // namespace longhaul::scenario
