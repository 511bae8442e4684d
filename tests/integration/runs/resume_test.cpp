// Whole runs of bench_pipeline that are cut short and gone on with (--resume).
#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class ResumeTest : public BenchPipeline {
protected:
  const Words two_{"--schedule", "1f1b,zb-h1", "--iterations", "3",
                   "--deadline", "2s",         "--out",        out()};

  /// Two iterations of the first schedule are finished.
  void cut_short(const Words& words) {
    ASSERT_NE(run(4, words + Words{"--fault", "kill@1:4:2"}), 0);
    ASSERT_EQ(trace::finished_iterations(out()).size(), 2u) << output();
  }
  /// The words with another value of an option.
  static Words with(Words words, const std::string& option, const std::string& value) {
    const auto at = std::ranges::find(words, option);
    if (at == words.end()) return words + Words{option, value};
    *std::next(at) = value;
    return words;
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{out()})
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  static std::vector<TimelineRow> rows_of(const trace::Trace& trace, int schedule, int before) {
    std::vector<TimelineRow> rows;
    for (const TimelineRow& row : trace.measured.rows)
      if (row.schedule == schedule && row.iteration < before) rows.push_back(row);
    return rows;
  }
};

TEST_F(ResumeTest, GoesOnBehindTheLastFinishedIterationOfEachSchedule) {
  cut_short(two_);
  const auto finished = rows_of(trace::merge_run(out()), 0, 2);
  ASSERT_EQ(run(4, two_ + Words{"--resume"}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("resumed at "));
  EXPECT_THAT(files(),
              ElementsAre("input.json", "record.json", "report.html", "trace.h5", "unfinished-1"));
  for (const auto& kept : std::filesystem::directory_iterator{out() + "/unfinished-1"})
    EXPECT_THAT(kept.path().filename().string(), ::testing::StartsWith("report."))
        << "what the first part ended with is kept, and nothing else was half-written";
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
  const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
  EXPECT_EQ(rows_of(trace, 0, 2), finished) << "what was measured stays as it was";
  EXPECT_EQ(trace.measured.rows.size(), 3 * trace.predicted.rows.size());
  for (const auto& schedule : schedules()) {
    EXPECT_EQ(schedule["n"], 3);
    EXPECT_EQ(schedule["check"], "ok");
    // 6 messages a microbatch, 4 microbatches, a warm-up and 3 iterations.
    EXPECT_EQ(schedule["checks"]["messages"], 4 * 6 * 4) << "the warm-up counts once";
  }
  const auto parts = record()["environment"]["parts"];
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0]["finished_before"], nlohmann::json::array());
  EXPECT_EQ(parts[1]["finished_before"], (nlohmann::json{2, 0}));
  for (const char* name : {"time", "hosts", "git_commit", "command_line"})
    EXPECT_FALSE(parts[1][name].empty()) << name;
  EXPECT_THAT(trace.info.environment, HasSubstr("finished_before"));
}

TEST_F(ResumeTest, ACompleteRunIsLeftAsItIs) {
  const Words words{"--schedule", "1f1b", "--iterations", "1", "--out", out(), "--resume"};
  ASSERT_EQ(run(4, words), 0) << "a directory that is not there: " << output();
  const std::string before = file_text(out() + "/record.json");
  ASSERT_EQ(run(4, words), 0) << output();
  EXPECT_THAT(output(), HasSubstr("is complete"));
  EXPECT_EQ(file_text(out() + "/record.json"), before);
  EXPECT_THAT(files(), ElementsAre("input.json", "record.json", "report.html", "trace.h5"));
  ASSERT_EQ(run(4, with(words, "--iterations", "2")), 2);
  EXPECT_THAT(output(), HasSubstr("--iterations: was 1 and is 2"));
}

TEST_F(ResumeTest, OtherInputIsRefusedByName) {
  cut_short(two_);
  const auto before = files();
  struct Slip {
    const char* option;
    const char* value;
    const char* difference;
  };
  for (const auto& [option, value, difference] :
       {Slip{"--schedule", "1f1b", R"(--schedule: was "1f1b,zb-h1" and is "1f1b")"},
        Slip{"--iterations", "4", "--iterations: was 3 and is 4"},
        Slip{"--comm", "grouped", R"(--comm: was "decoupled" and is "grouped")"},
        Slip{"--payload", "1KiB", "--payload"}, Slip{"--search-seed", "7", "--search-seed"},
        Slip{"--set", "run.seed=3", R"(--set: was [] and is ["run.seed=3"])"}}) {
    EXPECT_EQ(run(4, with(two_, option, value) + Words{"--resume"}), 2) << difference;
    EXPECT_THAT(output(), AllOf(HasSubstr("cannot be resumed"), HasSubstr(difference)));
  }
  std::string other = kFourStages;
  write_scenario(other.replace(other.find("latency = \"2ms\""), 15, "latency = \"3ms\""));
  EXPECT_EQ(run(4, two_ + Words{"--resume"}), 2);
  EXPECT_THAT(output(), HasSubstr(R"(was "latency = "2ms"" and is "latency = "3ms"")"));
  EXPECT_EQ(files(), before) << "nothing is touched";
}

TEST_F(ResumeTest, WhatCannotBeGoneOnWithIsRefused) {
  const Words words{"--schedule", "1f1b", "--iterations", "1", "--resume"};
  EXPECT_EQ(run(4, words), 2);
  EXPECT_THAT(output(), HasSubstr("--resume needs --out"));
  EXPECT_EQ(run(4, words + Words{"--out", out(), "--adaptive"}), 2);
  EXPECT_THAT(output(), HasSubstr("--resume cannot go on with --adaptive"));
  EXPECT_EQ(run(4, words + Words{"--out", out(), "--change", "1:link.latency=3ms"}), 2);
  EXPECT_THAT(output(), HasSubstr("--resume cannot go on with --change"));
  std::filesystem::create_directory(out());
  std::ofstream{out() + "/precious"} << "work of a night";
  EXPECT_EQ(run(4, words + Words{"--out", out()}), 2) << "no run of ours";
  EXPECT_THAT(files(), ElementsAre("precious"));
  std::filesystem::remove(out() + "/precious");
  EXPECT_EQ(run(4, words + Words{"--out", out()}), 0) << "it is empty: " << output();
}

TEST_F(ResumeTest, WhatRankZeroHandedOutIsNotLookedForAgain) {
  const Words words{"--schedule", "best", "--search-moves", "200", "--iterations", "3",
                    "--deadline", "2s",   "--out",          out()};
  cut_short(words);
  const std::filesystem::path file = out() + "/input.json";
  auto kept = nlohmann::json::parse(std::ifstream{file});
  auto& planning = kept["handed"]["schedules"][0]["planning"];
  ASSERT_TRUE(planning.contains("moves_tried"));
  planning["moves_tried"] = 123'456;
  std::ofstream{file, std::ios::trunc} << kept;
  ASSERT_EQ(run(4, words + Words{"--resume"}), 0) << output();
  EXPECT_EQ(record()["schedules"][0]["planning"]["moves_tried"], 123'456);
  EXPECT_EQ(record()["schedules"][0]["n"], 3);
}

TEST_F(ResumeTest, HalfWrittenFilesAreSweptAside) {
  cut_short(two_);
  std::ofstream{out() + "/.segment.0.9.1.h5.77-0.tmp"} << "half";
  std::ofstream{out() + "/trace.h5"} << "no record came behind it";
  std::ofstream{out() + "/journal.jsonl", std::ios::app} << R"({"schedule":0,"iterat)";
  for (const auto& entry : std::filesystem::directory_iterator{out()})
    if (entry.path().filename().string().starts_with("segment.0.1."))
      std::filesystem::resize_file(entry.path(), 100);
  ASSERT_EQ(run(4, two_ + Words{"--resume"}), 0) << output();
  EXPECT_EQ(record()["environment"]["parts"][1]["finished_before"], (nlohmann::json{1, 0}));
  EXPECT_TRUE(std::filesystem::exists(out() + "/unfinished-1/.segment.0.9.1.h5.77-0.tmp"));
  EXPECT_EQ(file_text(out() + "/unfinished-1/trace.h5"), "no record came behind it");
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
}

/// Without them it could not be said that the iteration was right.
TEST_F(ResumeTest, AnIterationWhoseChecksAreGoneIsPlayedAnew) {
  cut_short(two_);
  const std::filesystem::path whole = scratch_.path() / "whole";
  std::filesystem::copy(out(), whole);
  const std::filesystem::path journal = out() + "/journal.jsonl";
  const std::string text = file_text(journal);
  const auto line_of = [&](const std::string& part) {
    const std::size_t at = text.find(part);
    const std::size_t begin = text.rfind('\n', at) + 1;
    return std::pair{begin, text.find('\n', at) + 1 - begin};
  };
  const auto without = [&](const std::string& part) {
    const auto [begin, length] = line_of(part);
    return std::string{text}.erase(begin, length);
  };
  struct Damage {
    const char* what;
    std::string left;
    int finished;
  };
  std::string renamed = text;
  const std::size_t last = renamed.rfind("\"corrupted\"");
  ASSERT_NE(last, std::string::npos) << text;
  renamed.replace(last, 11, "\"corrubted\"");
  for (const auto& [what, left, finished] :
       {Damage{"emptied", "", 0}, Damage{"cut", text.substr(0, text.size() - 40), 1},
        Damage{"a line of it lost", without("\"iteration\":0,"), 0},
        Damage{"its warm-up lost", without("\"iteration\":-1,"), 0},
        Damage{"its beginning lost", without("\"part\":"), 0},
        Damage{"a count of it lost", renamed, 1}}) {
    SCOPED_TRACE(what);
    std::filesystem::remove_all(out());
    std::filesystem::copy(whole, out());
    std::ofstream{journal, std::ios::trunc} << left;
    if (left.empty()) std::filesystem::remove(journal);
    ASSERT_EQ(run(4, two_ + Words{"--resume"}), 0) << output();
    for (const auto& schedule : schedules()) {
      EXPECT_EQ(schedule["n"], 3);
      EXPECT_EQ(schedule["checks"]["messages"], 4 * 6 * 4) << "each was checked, once";
    }
    const auto kept = trace::finished_iterations(whole.string());
    std::size_t aside = 0;
    for (const auto& file : std::filesystem::directory_iterator{out() + "/unfinished-1"})
      aside += file.path().filename().string().starts_with("segment.") ? 1U : 0U;
    EXPECT_EQ(aside, kept.size() - static_cast<std::size_t>(finished));
  }
}

/// Earlier failures stay in the record.
TEST_F(ResumeTest, WrongMessagesOfEarlierPartsCount) {
  const Words words{"--schedule", "1f1b", "--iterations", "100000", "--out", out()};
  start(4, words + Words{"--fault", "corrupt@1:0:1"});
  (void)wait_for_iterations(3);
  kill(child_, SIGTERM);
  EXPECT_NE(finish(), 0);
  // The number of iterations is part of the input: the run is made shorter unnoticed.
  const std::filesystem::path file = out() + "/input.json";
  auto kept = nlohmann::json::parse(std::ifstream{file});
  const auto finished = static_cast<int>(trace::finished_iterations(out()).size());
  kept["asked"]["--iterations"] = finished + 1;
  std::ofstream{file, std::ios::trunc} << kept;
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", std::to_string(finished + 1), "--out",
                    out(), "--resume"}),
            1)
      << output();
  EXPECT_EQ(record()["schedules"][0]["check"], "1 corrupted");
}

/// Started at once; whatever the order, one has the directory and the other leaves it alone.
TEST_F(ResumeTest, OfTwoRunsInOneDirectoryOneWins) {
  for (const Words& more : {Words{}, Words{"--resume"}}) {
    std::filesystem::remove_all(out());
    std::array<int, 2> codes{};
    std::array<int, 2> children{};
    std::array<std::filesystem::path, 2> outputs;
    for (std::size_t i = 0; i < 2; ++i) {
      start(4, Words{"--schedule", "1f1b", "--iterations", "40", "--out", out()} + more);
      children[i] = child_;
      outputs[i] = output_;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      child_ = children[i];
      codes[i] = finish();
    }
    const std::size_t loser = codes[0] == 2 ? 0 : 1;
    EXPECT_EQ(codes[loser], 2) << file_text(outputs[loser]);
    EXPECT_EQ(codes[1 - loser], 0) << file_text(outputs[1 - loser]);
    EXPECT_THAT(file_text(outputs[loser]), HasSubstr(out()));
    EXPECT_THAT(file_text(outputs[loser]), Not(HasSubstr("the run ends")));
    EXPECT_EQ(record()["schedules"][0]["n"], 40);
    EXPECT_FALSE(record()["environment"].contains("parts"));
    EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
  }
}

}  // namespace
}  // namespace longhaul::testing
