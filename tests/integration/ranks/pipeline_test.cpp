// Lowered schedules of random pipelines on real ranks: every block once, in order, after its
// inputs; every message the right one; nothing left over.
#include "base/random.hpp"
#include "device/cpu_devices.hpp"
#include "engine/engine.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/plan.hpp"
#include "schedule/generators/generate.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

Scenario random_scenario(Random& random, int ranks) {
  const int replicas = ranks % 2 == 0 && random.between(0, 1) == 1 ? 2 : 1;
  const int stages = ranks / replicas;
  const auto microbatches = static_cast<int>(stages * random.between(1, 3));
  Scenario scenario = uniform_scenario(stages, microbatches, 500us);
  for (Duration& time : scenario.costs.forward) time = Duration{random.between(100'000, 800'000)};
  for (Duration& time : scenario.costs.dgrad) time = Duration{random.between(100'000, 800'000)};
  scenario.parallel.replicas = replicas;
  scenario.placement.assign(static_cast<std::size_t>(ranks), DatacenterId{0});
  if (stages > 1)
    scenario = spread(std::move(scenario), 2, Duration{random.between(0, 900'000)},
                      Duration{random.between(0, 600'000)});
  if (random.between(0, 1) == 1)
    for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
  return scenario;
}

class PipelineTest : public RanksTest {
protected:
  void play(const std::string& name, const Scenario& scenario, Arrangement arrangement) {
    const Plan plan = plan::lower(schedule::generate(name, scenario), scenario, arrangement);
    engine::EngineOptions options;
    options.run = scenario.run;
    device::TimedDevice device;
    ranks().watchdog().watch(&plan, 10s);
    engine::Engine engine{plan, ranks(), device, options};
    engine::Checks checks;
    for (int i = 0; i < 2; ++i) checks += engine.run(i).checks;
    ranks().watchdog().watch(nullptr, {});
    ranks().world().barrier();
    checks.unclaimed += ranks().transport().unclaimed();
    ranks().world().barrier();
    const OpRange mine = ops_of_rank(plan, ranks().self());
    std::int64_t blocks = 0;
    std::int64_t receives = 0;
    for (std::uint32_t i = mine.first; i < mine.first + mine.count; ++i) {
      blocks += plan.ops[i].kind == OpKind::compute ? 2 : 0;
      receives += plan.ops[i].kind == OpKind::recv ? 2 : 0;
    }
    EXPECT_EQ(checks.wrong(), 0) << name;
    EXPECT_EQ(checks.blocks, blocks) << name;
    EXPECT_EQ(checks.messages, receives) << name;
  }
};

TEST_F(PipelineTest, StaticSchedulesOfRandomPipelines) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Random random{seed};
    const Scenario scenario = random_scenario(random, ranks().count());
    for (const std::string& name : schedule::static_schedule_names()) {
      for (const Arrangement arrangement : {Arrangement::decoupled, Arrangement::grouped})
        play(name, scenario, arrangement);
    }
  }
}

}  // namespace
}  // namespace longhaul::testing
