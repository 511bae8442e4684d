#include "collective/explain/exposure_causes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/overlap/evaluate_overlap.hpp"
#include "support/overlaps.hpp"
#include "support/random_iterations.hpp"

namespace longhaul::planner {
namespace {

using collective::ExplainedCommunication;
using collective::ExposureCause;
using collective::IterationPlan;
using testing::centauri_toy;
using testing::planned_iteration;
using namespace std::chrono_literals;

std::vector<ExplainedCommunication> explained_of(const IterationPlan& plan, Rank rank = Rank{0}) {
  const SimulatedIteration ran = simulate_all_ranks(plan).or_throw();
  return collective::explained(plan, ran.lowered, ran.times, rank);
}

/// "0-1 ms: late_data 1" for each collective.
std::string text_of(const ExplainedCommunication& each) {
  const auto ms = [](Duration time) { return static_cast<double>(time.count()) / 1e6; };
  std::string text = fmt::format("{:g}-{:g}:", ms(each.span.start), ms(each.span.end));
  for (const collective::HiddenBeside& beside : each.beside)
    text += fmt::format(" {} {} {:g}", beside.name, to_string(beside.work), ms(beside.time));
  for (const ExposureCause cause : every<ExposureCause>())
    if (const Duration time = each.exposed[static_cast<std::size_t>(cause)]; time > Duration{})
      text += fmt::format(" {} {:g}", to_string(cause), ms(time));
  return text;
}
std::vector<std::string> texts_of(const IterationPlan& plan) {
  std::vector<std::string> texts;
  for (const ExplainedCommunication& each : explained_of(plan)) texts.push_back(text_of(each));
  return texts;
}

// The columns of docs/overlap.md, worked by hand.
TEST(ExposureCauses, AreThoseOfTheToy) {
  EXPECT_THAT(texts_of(planned_iteration(centauri_toy(), "zero3")),
              ::testing::ElementsAre("0-1: length 1", "1-2: first F 1", "5-6: second D 1",
                                     "9-10: first D 1", "13-14: late_data 1"));
  EXPECT_THAT(texts_of(planned_iteration(centauri_toy(), "serial")),
              ::testing::ElementsAre("0-1: length 1", "3-4: lane_order 1", "10-11: late_data 1",
                                     "11-12: lane_order 1", "16-17: late_data 1"));
}

// Gathered when its unit starts, each gather is what the device waits for.
TEST(ExposureCauses, NamePrefetch) {
  EXPECT_THAT(texts_of(planned_iteration(centauri_toy({"parallel.prefetch=0"}), "zero3")),
              ::testing::ElementsAre("0-1: length 1", "3-4: prefetch_depth 1", "10-11: late_data 1",
                                     "11-12: lane_order 1", "16-17: late_data 1"));
}

/// Hidden and exposed are the whole span, and exposed what the device does not compute in.
void expect_sums(const IterationPlan& plan, const std::string& name) {
  const SimulatedIteration ran = simulate_all_ranks(plan).or_throw();
  const collective::IterationTimes times{ran.lowered, ran.times};
  for (const Rank rank : times.ranks()) {
    Duration exposed{};
    for (const ExplainedCommunication& each :
         collective::explained(plan, ran.lowered, ran.times, rank)) {
      EXPECT_EQ(each.hidden() + each.total_exposed(), each.span.end - each.span.start) << name;
      for (const Duration part : each.exposed) EXPECT_GE(part, Duration{}) << name;
      exposed += each.total_exposed();
    }
    const collective::Exposure all = times.exposure(rank);
    const auto pp = static_cast<std::size_t>(collective::Traffic::pp);
    EXPECT_GE(exposed, all.total_exposed() - all.exposed[pp]) << name;
  }
}

TEST(ExposureCauses, AddUp) {
  const std::vector<Scenario> scenarios{
      centauri_toy(), centauri_toy({"parallel.replicas=4", "node.internal=500MB/s"}),
      centauri_toy({"parallel.stages=2", "parallel.microbatches=3", "costs.message=1MB",
                    "node.internal=500MB/s"})};
  for (const Scenario& scenario : scenarios) {
    for (const collective::Overlap& overlap : collective::overlaps())
      expect_sums(planned_iteration(scenario, overlap.name, "1f1b"), overlap.name);
    // Stages that are shuffled apart may wait for each other in a circle.
    for (std::uint64_t seed = 0; seed < 20 && scenario.parallel.stages == 1; ++seed) {
      IterationPlan plan = planned_iteration(scenario, "zero3", "1f1b");
      Random random{seed};
      for (collective::StageWork& work : plan.stages) testing::shuffle(work, 3, random);
      expect_sums(plan, fmt::format("seed {}", seed));
    }
  }
}

}  // namespace
}  // namespace longhaul::planner
