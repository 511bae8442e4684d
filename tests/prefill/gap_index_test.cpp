#include "prefill/gap_index.hpp"

#include <gtest/gtest.h>

#include "prefill/instances.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {
namespace {

TEST(GapIndex, PlacesAsTheControllerDoes) {
  Random random{31};
  int placed = 0, later = 0;
  for (int instance = 0; instance < 300; ++instance) {
    ServedModel model = linear_model(1ns);
    model.guard = Duration{random.between(0, 2)};
    const int gpus = static_cast<int>(random.between(1, 5));
    const Scenario scenario = serving_scenario(gpus, 1, model);
    const IterationBubbles iteration = find_bubbles(random_rows(random, gpus), gpus);
    const auto served = served_models(scenario, 1);
    Controller controller{iteration, served, PlacementPolicy::earliest};
    std::vector<std::int32_t> ranks;
    for (const Pipeline& pipeline : served.front().serving.pipelines)
      ranks.push_back(pipeline.ranks.front());
    GapIndex gaps{iteration, ranks, model.guard, least_stage_time(served)};
    Duration arrival{};
    for (std::int64_t id = 0; id < 40; ++id) {
      arrival += Duration{random.between(0, 6)};
      const std::int64_t tokens = random.between(1, 9);
      const Decision decision = controller.decide({id, arrival, tokens});
      if (decision.refused) continue;
      const auto place = gaps.place(arrival, Duration{tokens});
      ASSERT_TRUE(place.has_value()) << "instance " << instance;
      EXPECT_EQ(place->start, decision.start) << "instance " << instance << " request " << id;
      ASSERT_EQ(static_cast<std::int32_t>(place->pipeline), decision.pipeline)
          << "instance " << instance << " request " << id;
      ++placed;
      later += place->start > arrival;
    }
  }
  EXPECT_GT(placed, 8000);
  EXPECT_GT(later, 3000);
}

}  // namespace
}  // namespace longhaul::prefill
