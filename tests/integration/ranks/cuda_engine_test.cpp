// Lowered schedules on real ranks whose blocks run on the device, against what is predicted.
#include <algorithm>

#include "device/cuda/factories.hpp"
#include "engine/engine.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/plan.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/ranks/on_device.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

class CudaEngineTest : public OnDevice {
protected:
  static Scenario scenario_of(Duration latency) {
    Scenario scenario = uniform_scenario(ranks().count(), ranks().count(), 2ms);
    if (ranks().count() > 1) scenario = spread(std::move(scenario), 2, latency, 1ms);
    return scenario;
  }

  static engine::IterationResult play(const Plan& plan, const Scenario& scenario) {
    engine::EngineOptions options;
    options.run = scenario.run;
    const auto device = device::make_cuda_timed_device(0, options.credit);
    ranks().watchdog().watch(&plan, 20s);
    engine::Engine engine{plan, ranks(), *device, options};
    (void)engine.run(-1);
    engine::IterationResult result = engine.run(0);
    ranks().watchdog().watch(nullptr, {});
    EXPECT_EQ(ranks().world().sum(result.checks.wrong()), 0);
    return result;
  }

  /// Blocks and messages of this rank by their starts.
  static std::vector<OpId> order_of(const Plan& plan, const OpTimes& times) {
    const OpRange range = ops_of_rank(plan, ranks().self());
    std::vector<OpId> blocks;
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i)
      if (plan.ops[i].kind == OpKind::compute) blocks.push_back(OpId{i});
    std::ranges::stable_sort(blocks, {}, [&](OpId id) { return times[index(id)].start; });
    return blocks;
  }
};

TEST_F(CudaEngineTest, BlocksRunInThePredictedOrderForTheirTimes) {
  for (const char* name : {"1f1b", "zbv"}) {
    const Scenario scenario = scenario_of(6ms);
    const Plan plan =
        plan::lower(schedule::generate(name, scenario), scenario, Arrangement::decoupled);
    const OpTimes predicted = sim::simulate(plan);
    const OpTimes times = play(plan, scenario).times;
    EXPECT_EQ(order_of(plan, times), order_of(plan, predicted)) << name;
    const OpRange range = ops_of_rank(plan, ranks().self());
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
      if (plan.ops[i].kind != OpKind::compute) continue;
      const Duration shorter = plan.ops[i].duration - (times[i].end - times[i].start);
      EXPECT_LE(shorter, 1ms + 1us) << name << ": no more than the credit";
    }
  }
}

TEST_F(CudaEngineTest, NoRankIsDoneBeforeThePredictionSays) {
  const Scenario scenario = scenario_of(20ms);
  const Plan plan =
      plan::lower(schedule::generate("1f1b", scenario), scenario, Arrangement::decoupled);
  const OpTimes predicted = sim::simulate(plan);
  const OpTimes times = play(plan, scenario).times;
  const OpRange range = ops_of_rank(plan, ranks().self());
  const std::span mine = std::span{times}.subspan(range.first, range.count);
  const std::span theirs = std::span{predicted}.subspan(range.first, range.count);
  const auto span_of = [](std::span<const OpTime> ops) {
    return std::ranges::max(ops, {}, &OpTime::end).end -
           std::ranges::min(ops, {}, &OpTime::start).start;
  };
  EXPECT_GE(span_of(mine), span_of(theirs) - 2ms) << "1 ms of credit on either side";
}

}  // namespace
}  // namespace longhaul::testing
