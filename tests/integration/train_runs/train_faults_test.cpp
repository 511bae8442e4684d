// Runs of bench_train that were cut short, and what they go on from.
#include <cctype>

#include "integration/train_runs/train_runs_fixture.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "planner/make_schedule.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(TrainRuns, ThatWereKilledGoOnAsIfTheyHadNotBeen) {
  const std::string methods = "topk:exchange=sites,threshold:values=int8,powersgd:2";
  ASSERT_EQ(run(3, words(methods)), 0) << output();
  const nlohmann::json whole = curves();
  std::filesystem::remove_all(out());
  const std::vector<std::string> kept{"--checkpoint-every", "5"};
  std::vector<std::string> killed = kept;
  killed.insert(killed.end(), {"--fault", "kill@1:3:11"});
  EXPECT_NE(run(3, words(methods, killed)), 0);
  EXPECT_THAT(output(), HasSubstr("rank 1 is gone"));
  EXPECT_TRUE(std::filesystem::exists(out() + "/10.2.state")) << "after two checkpoints";
  EXPECT_FALSE(std::filesystem::exists(out() + "/5.2.state")) << "the old one is gone";
  std::vector<std::string> other = kept;
  other.insert(other.end(), {"--resume", "--seeds", "2"});
  EXPECT_EQ(run(3, words(methods, other)), 2);
  EXPECT_THAT(output(), HasSubstr("another --seeds"));
  std::vector<std::string> resumed = kept;
  resumed.emplace_back("--resume");
  ASSERT_EQ(run(3, words(methods, resumed)), 0) << output();
  const nlohmann::json again = curves();
  ASSERT_EQ(again.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(again[i]["losses"], whole[i]["losses"]);
    for (std::size_t k = 0; k < whole[i]["points"].size(); ++k)
      EXPECT_EQ(again[i]["points"][k][3], whole[i]["points"][k][3]);
    EXPECT_EQ(again[i]["messages"], whole[i]["messages"]);
    EXPECT_TRUE(again[i]["replay"]["losses_equal"].get<bool>());
  }
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator{out()})
    left.push_back(entry.path().filename());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("curves.csv", "input.json", "record.json",
                                                    "report.html"))
      << "nothing else is left";
}

/// Where a batch system starts a run again, it need not know whether there is anything to do.
TEST_F(TrainRuns, BeginWithResumeAndAreCompleteWithIt) {
  const std::vector<std::string> resumed{"--resume"};
  ASSERT_EQ(run(3, words("none", resumed)), 0) << output();
  const nlohmann::json whole = record();
  std::ofstream{out() + "/8.1.state"} << "of a rank that was killed before it removed this";
  ASSERT_EQ(run(3, words("none", resumed)), 0) << output();
  EXPECT_THAT(output(), HasSubstr("is complete: nothing is left to run"));
  EXPECT_FALSE(std::filesystem::exists(out() + "/8.1.state"));
  EXPECT_EQ(record(), whole) << "nothing ran";
  EXPECT_EQ(run(3, words("none", {"--resume", "--seeds", "2"})), 2);
  EXPECT_THAT(output(), HasSubstr("another --seeds"));
  EXPECT_EQ(run(3, words("none")), 2);
  EXPECT_THAT(output(), HasSubstr("exists and is not empty"));
  std::filesystem::remove(out() + "/input.json");
  EXPECT_EQ(run(3, words("none", resumed)), 2);
  EXPECT_THAT(output(), HasSubstr("input.json is missing"));
}

/// A loss of gradients is still one when the run is asked for again.
TEST_F(TrainRuns, ThatAreCompleteSayAgainWhatWasWrong) {
  const std::vector<std::string> broken{"--fault", "corrupt@1:0:3"};
  ASSERT_EQ(run(3, words("topk", broken)), 1) << output();
  ASSERT_EQ(run(3, words("topk", {"--resume"})), 1) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("is complete"), HasSubstr("topk, seed 1: ")));
}

/// Among the ops of rank 1 of what the file says, fresh and sent to each: the first such task.
int place_of(TaskKind kind, const std::string& file) {
  Scenario scenario = scenario::load_scenario(file);
  scenario.train.staleness = 0;
  scenario.train.compress.exchange = SetExchange::direct;
  const Plan plan =
      plan::lower_exchanges(planner::make_schedule("stella", scenario).schedule, scenario, {});
  const OpRange mine = ops_of_rank(plan, Rank{1});
  for (const plan::OpTask& task : plan.extras.tasks)
    if (task.kind == kind && index(task.op) >= mine.first &&
        index(task.op) < mine.first + mine.count)
      return static_cast<int>(index(task.op) - mine.first);
  ADD_FAILURE() << "rank 1 has no " << to_string(kind);
  return 0;
}

/// In the choice of what is sent, in the middle of an exchange, in the step.
TEST_F(TrainRuns, OfARankThatWasKilledInAnyTaskGoOn) {
  const std::string method = "stella:staleness=0:exchange=direct";
  const std::vector<std::string> kept{"--checkpoint-every", "4"};
  ASSERT_EQ(run(3, words(method, kept)), 0) << output();
  const nlohmann::json whole = curves().front();
  for (const std::string& place :
       {fmt::format("{}", place_of(TaskKind::compress, scenario())), std::string{"send0"},
        std::string{"recv0"}, fmt::format("{}", place_of(TaskKind::optimize, scenario()))}) {
    SCOPED_TRACE(place);
    std::filesystem::remove_all(out());
    std::vector<std::string> killed = kept;
    killed.insert(killed.end(), {"--fault", fmt::format("kill@1:{}:9", place)});
    EXPECT_NE(run(3, words(method, killed)), 0);
    EXPECT_THAT(output(), HasSubstr("rank 1 is gone"));
    EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_TRUE(std::filesystem::exists(fmt::format("{}/8.{}.state", out(), rank)));
    std::vector<std::string> resumed = kept;
    resumed.emplace_back("--resume");
    ASSERT_EQ(run(3, words(method, resumed)), 0) << output();
    EXPECT_EQ(curves().front()["losses"], whole["losses"]);
    EXPECT_EQ(curves().front()["points"].back()[3], whole["points"].back()[3]);
    EXPECT_TRUE(curves().front()["replay"]["losses_equal"].get<bool>());
  }
}

struct OfMethod {
  const char* method;
  int local_steps = 1;
};

void PrintTo(const OfMethod& of, std::ostream* out) { *out << of.method; }

/// A curve of one method, of 8 exchanges, that is killed in the sixth, after two checkpoints.
class TrainRunsOfEachMethod : public TrainRuns, public ::testing::WithParamInterface<OfMethod> {
protected:
  [[nodiscard]] std::vector<std::string> with(std::vector<std::string> more) const {
    more.insert(more.end(), {"--checkpoint-every", "2", "--max-iterations",
                             std::to_string(8 * GetParam().local_steps), "--points", "2", "--set",
                             "parallel.microbatches=1"});
    return words(GetParam().method, more);
  }
};

/// Whatever a method remembers. Weights are those of the replay, to the same last bit of what they
/// differ by; what is lost counts all that was sent and all that waits.
TEST_P(TrainRunsOfEachMethod, GoOnWithTheSameBits) {
  ASSERT_EQ(run(3, with({})), 0) << output();
  const nlohmann::json whole = curves().front();
  ASSERT_EQ(whole["losses"].size(), 8U);
  std::filesystem::remove_all(out());
  EXPECT_NE(run(3, with({"--fault", "kill@1:3:5"})), 0);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(std::filesystem::exists(fmt::format("{}/4.{}.state", out(), rank))) << rank;
  ASSERT_EQ(run(3, with({"--resume"})), 0) << output();
  const nlohmann::json again = curves().front();
  for (const char* const key :
       {"losses", "messages", "sent", "mass", "replay", "replicas_equal", "learning_rate"})
    EXPECT_EQ(again[key], whole[key]) << key;
  for (std::size_t k = 0; k < whole["points"].size(); ++k)
    EXPECT_EQ(again["points"][k][3], whole["points"][k][3]) << "validation " << k;
  EXPECT_TRUE(again["replay"]["equal"].get<bool>());
}

INSTANTIATE_TEST_SUITE_P(
    Of, TrainRunsOfEachMethod,
    ::testing::Values(
        OfMethod{"none"}, OfMethod{"fp16"}, OfMethod{"int8"}, OfMethod{"byteps"},
        OfMethod{"bytepscompress"}, OfMethod{"randomk"}, OfMethod{"topk:exchange=sites"},
        OfMethod{"threshold:values=int8"}, OfMethod{"stella:staleness=0:lazy=exact"},
        OfMethod{"onebit"}, OfMethod{"onebit:warmup=6"}, OfMethod{"powersgd:2"}, OfMethod{"dgc"},
        OfMethod{"dgc:ramp=1"}, OfMethod{"dgc:ramp=3"}, OfMethod{"demo"}, OfMethod{"espresso"},
        OfMethod{"localsgd:2", 2}, OfMethod{"diloco:2", 2}, OfMethod{"streaming-diloco:2,2,0", 2},
        OfMethod{"streaming-diloco:2,1,1:feedback=1", 2}, OfMethod{"sparseloco:2", 2}),
    [](const auto& each) {
      std::string name = each.param.method;
      for (char& letter : name)
        if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
      return name;
    });

/// Rank by rank: another's, an older one, one that was cut short, and none.
TEST_F(TrainRuns, RefuseACheckpointThatIsNotTheirs) {
  const std::vector<std::string> kept{"--set", "train.staleness=0", "--checkpoint-every", "4"};
  std::vector<std::string> killed = kept, resumed = kept;
  killed.insert(killed.end(), {"--fault", "kill@1:3:9"});
  resumed.emplace_back("--resume");
  EXPECT_NE(run(3, words("dgc", killed)), 0);
  const std::filesystem::path ours = out() + "/8.1.state", keeps = scratch_.path() / "kept";
  std::filesystem::copy_file(ours, keeps);
  const auto refusal = [&] {
    EXPECT_EQ(run(3, words("dgc", resumed)), 2);
    EXPECT_THAT(output(), HasSubstr("rank 1: --resume: " + ours.string() + " "));
    EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
    return output();
  };
  std::filesystem::resize_file(ours, std::filesystem::file_size(ours) / 2);
  EXPECT_THAT(refusal(), HasSubstr("after its header, which says "));
  std::filesystem::copy_file(out() + "/8.2.state", ours,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(), HasSubstr("is of rank 2 of 3 after 8 exchanges"));
  std::filesystem::remove(ours);
  EXPECT_THAT(refusal(), HasSubstr("cannot be read (No such file or directory)"));
  std::filesystem::rename(keeps, ours);
  const std::string text = file_text(out() + "/progress.json");
  const auto with_curve = [&](const nlohmann::json& curve) {
    nlohmann::json other = nlohmann::json::parse(text);
    other["under_way"]["curve"] = curve;
    std::ofstream{out() + "/progress.json", std::ios::trunc} << other;
    EXPECT_EQ(run(3, words("dgc", resumed)), 2);
    return output();
  };
  EXPECT_THAT(with_curve({{"method", 3}}),
              AllOf(HasSubstr("progress.json is damaged (curve dgc"), HasSubstr("Begin anew")));
  std::ofstream{out() + "/progress.json", std::ios::trunc} << text;
  ASSERT_EQ(run(3, words("dgc", resumed)), 0) << output();
}

/// A text that was written to since is another.
TEST_F(TrainRuns, RefuseToGoOnWithOtherData) {
  const std::filesystem::path text = scratch_.path() / "some.txt";
  const auto write = [&](char last) {
    std::ofstream{text, std::ios::trunc} << std::string(4000, 'a') << last;
  };
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--data", "text:" + text.string(), "--set", "model.vocabulary=256",
                             "--checkpoint-every", "4"});
    return words("none", more);
  };
  write('a');
  EXPECT_NE(run(3, with({"--fault", "kill@1:3:9"})), 0);
  write('b');
  EXPECT_EQ(run(3, with({"--resume"})), 2);
  EXPECT_THAT(output(), HasSubstr("another content of --data (results would mix)"));
  write('a');
  EXPECT_EQ(run(3, with({"--resume"})), 0) << output();
}

/// With weights that wait for their update, and with those of the iteration before.
TEST_F(TrainRuns, EndInAnOutageThatOutlastsTheDeadline) {
  for (const char* const staleness : {"0", "1"}) {
    SCOPED_TRACE(std::string{"staleness "} + staleness);
    const auto with_outage = [&](const char* outage, const char* iterations) {
      return words("stella", {"--set", std::string{"train.staleness="} + staleness, "--set",
                              std::string{"link.outage="} + outage, "--max-iterations", iterations,
                              "--checkpoint-every", "4"});
    };
    EXPECT_EQ(run(3, with_outage("[\"50ms\", \"600ms\"]", "12")), 0) << output();
    EXPECT_TRUE(curves().front()["replay"]["equal"].get<bool>());
    std::filesystem::remove_all(out());
    EXPECT_EQ(run(3, with_outage("[\"500ms\", \"60s\"]", "2000")), 3) << output();
    EXPECT_THAT(output(),
                AllOf(HasSubstr("the run ends: an outage of link "), HasSubstr("has held rank "),
                      HasSubstr("goes on for"), HasSubstr("deadline of 2 s")));
    EXPECT_TRUE(std::filesystem::exists(out() + "/progress.json")) << "it can be gone on from";
    EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
    std::filesystem::remove_all(out());
  }
}

/// The disk has room for the states of one checkpoint, and not for those of the next beside them.
TEST_F(TrainRuns, GoOnFromTheCheckpointBeforeAFullDisk) {
  const std::vector<std::string> kept{"--set", "train.staleness=0", "--checkpoint-every", "4"};
  ASSERT_EQ(run(3, words("stella", kept)), 0) << output();
  const nlohmann::json whole = curves();
  std::filesystem::remove_all(out());
  const SmallDisk disk{scratch_.path() / "disk", "size=900k"};
  if (!disk.is_there()) GTEST_SKIP() << kNoMount;
  out_ = "disk/out";
  EXPECT_EQ(run(3, words("stella", kept)), 3) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("cannot write "), HasSubstr("space")));
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(std::filesystem::exists(fmt::format("{}/4.{}.state", out(), rank)));
  disk.grow();
  std::vector<std::string> resumed = kept;
  resumed.emplace_back("--resume");
  ASSERT_EQ(run(3, words("stella", resumed)), 0) << output();
  EXPECT_EQ(curves().front()["losses"], whole.front()["losses"]);
  EXPECT_EQ(curves().front()["points"].back()[3], whole.front()["points"].back()[3]);
}

}  // namespace
}  // namespace longhaul::testing
