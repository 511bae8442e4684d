#include "prefill/gap_index.hpp"

#include <array>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prefill/instances.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {
namespace {

using ::testing::ElementsAre;

/// All gaps that a search finds: pipeline and start.
std::vector<std::pair<std::uint32_t, Duration>> found(GapIndex& gaps, Duration from,
                                                      Duration length, Duration limit) {
  GapIndex::Search search{gaps, from, length, limit};
  std::vector<std::pair<std::uint32_t, Duration>> places;
  while (const auto gap = search.next()) places.emplace_back(gap->pipeline, gap->start);
  return places;
}

/// Two GPUs of a period of 900 ns, 2 ns of guard: idle from 200 to 500, and from 300 to 400 and 700
/// to 1000.
GapIndex two_gpus(GapOrder order) {
  const IterationBubbles iteration{
      900ns, 2, {}, {{0, 200ns, 500ns}, {1, 300ns, 400ns}, {1, 700ns, 1000ns}}};
  return {iteration, {{{0, {0}}, {1, {1}}}, 0, 0}, 2ns, 5ns, {}, order};
}

TEST(GapIndex, FindsGapsByTheEarliestStartInThem) {
  GapIndex gaps = two_gpus(GapOrder::pipeline);
  gaps.advance(250ns);
  EXPECT_THAT(found(gaps, 250ns, 50ns, 1150ns),
              ElementsAre(std::pair{0U, 250ns}, std::pair{1U, 300ns}, std::pair{1U, 700ns},
                          std::pair{0U, 1100ns}));
  EXPECT_THAT(found(gaps, 250ns, 99ns, 900ns),
              ElementsAre(std::pair{0U, 250ns}, std::pair{1U, 700ns}))
      << "98 ns before the guard";
  EXPECT_THAT(found(gaps, 320ns, 78ns, 320ns),
              ElementsAre(std::pair{0U, 320ns}, std::pair{1U, 320ns}))
      << "one opened, one that opens until then";
  EXPECT_THAT(found(gaps, 321ns, 78ns, 321ns), ElementsAre(std::pair{0U, 321ns}))
      << "from then on the one that opens is 77 ns long";
  GapIndex tightest = two_gpus(GapOrder::end);
  tightest.advance(250ns);
  EXPECT_THAT(found(tightest, 320ns, 78ns, 320ns),
              ElementsAre(std::pair{1U, 320ns}, std::pair{0U, 320ns}));
}

TEST(GapIndex, KeepsWhatIsLeftOfAGap) {
  GapIndex gaps = two_gpus(GapOrder::pipeline);
  gaps.advance(250ns);
  gaps.replace(0, {{200ns, 500ns}, FreeGap{200ns, 300ns, false}, FreeGap{350ns, 500ns}});
  gaps.replace(1, {{700ns, 1000ns}, std::nullopt, FreeGap{720ns, 1000ns}});
  EXPECT_THAT(found(gaps, 250ns, 50ns, 899ns),
              ElementsAre(std::pair{0U, 250ns}, std::pair{1U, 300ns}, std::pair{0U, 350ns},
                          std::pair{1U, 720ns}));
  EXPECT_THAT(found(gaps, 250ns, 148ns, 899ns),
              ElementsAre(std::pair{0U, 350ns}, std::pair{1U, 720ns}));
  gaps.advance(5000ns);
  EXPECT_THAT(found(gaps, 5000ns, 298ns, 6200ns),
              ElementsAre(std::pair{1U, 5200ns}, std::pair{0U, 5600ns}, std::pair{1U, 6100ns}));
}

/// Of two models that share a GPU one keeps a guard of 50 ns, the other none.
TEST(GapIndex, FindsWhatIsLeftOfABubbleWhoseEndWasTaken) {
  const IterationBubbles iteration{1000ns, 1, {}, {{0, 100ns, 200ns}}};
  ServedModel free = linear_model(1ns, 1), guarded = free;
  free.name = "free";
  guarded.name = "guarded";
  guarded.guard = 50ns;
  for (const PipelineLookup lookup : {PipelineLookup::index, PipelineLookup::all}) {
    ControllerMeans means;
    means.lookup = lookup;
    const ServingPipelines serving{{{0, {0}}}, 0, 0};
    Controller controller{iteration,
                          {{free, serving}, {guarded, serving}},
                          PlacementPolicy::earliest,
                          {},
                          std::move(means)};
    Request first{0, 0ns, 10}, second{1, 0ns, 45};
    first.model = "free";
    second.model = "guarded";
    EXPECT_EQ(controller.decide(first, 380ns).start, 190ns);
    EXPECT_EQ(controller.decide(second, 230ns).start, 115ns) << "45 of the 90 ns before it";
  }
}

/// Random bubbles, models and requests, and what a controller is told of them.
struct RandomLoad {
  Scenario scenario;
  int cell = 1;
  IterationBubbles iteration;
  PlacementPolicy policy = PlacementPolicy::earliest;
  FillRange range;
  ControllerMeans means;
  std::vector<Request> requests;
  std::vector<Duration> networks;
};

ServedModel random_model(Random& random, int cells) {
  ServedModel model = linear_model(1ns, static_cast<int>(random.between(1, std::min(3, cells))));
  model.hop = Duration{random.between(0, 3)};
  model.guard = Duration{random.between(0, random.between(0, 2) == 0 ? 6 : 2)};
  if (random.between(0, 2) == 0) model.slo_ttft = Duration{random.between(5, 60)};
  if (random.between(0, 5) == 0) model.chunk = random.between(3, 5);
  model.dimensions = ServedDimensions{4, 8, 16, 2, 2, 4, 100, false};
  return model;
}

/// Most in order of their arrival, often several at once, seldom after a long time; in one of eight
/// loads some arrive before the one before them, which the index must bear as well.
void draw_requests(Random& random, RandomLoad& load) {
  const bool goes_back = random.between(0, 7) == 0;
  const std::int64_t farthest = random.between(0, 1) * 60;
  Duration arrival{};
  for (std::int64_t id = 0; id < 30; ++id) {
    const std::int64_t kind = random.between(0, 15);
    if (kind == 0) arrival += Duration{random.between(0, 200)};
    if (kind > 6) arrival += Duration{random.between(0, 9)};
    if (kind == 1 && goes_back) arrival = std::max(Duration{}, arrival - 10ns);
    Request request{id, arrival, random.between(3, 11)};
    request.model =
        load.scenario.served[at(random.between(0, 1)) % load.scenario.served.size()].name;
    load.requests.push_back(std::move(request));
    load.networks.emplace_back(random.between(0, farthest));
  }
}

RandomLoad random_load(Random& random) {
  const int cells = static_cast<int>(random.between(1, 4));
  RandomLoad load;
  load.cell = static_cast<int>(random.between(1, 2));
  // Seldom so many that gaps and pipelines make several groups, and that few tries do not do.
  const auto devices = random.between(0, 15) == 0 ? random.between(20, 40) : random.between(1, 5);
  load.scenario =
      serving_scenario(static_cast<int>(devices), cells * load.cell, random_model(random, cells));
  if (random.between(0, 2) == 0) {
    load.scenario.served.push_back(random_model(random, cells));
    load.scenario.served.back().name = "second";
  }
  const int gpus = load.scenario.ranks();
  load.iteration = find_bubbles(random_rows(random, gpus), gpus);
  if (random.between(0, 1) == 1) load.policy = PlacementPolicy::best_fit;
  load.range.from_zero = random.between(0, 1) == 1;
  load.range.apart = random.between(0, 5) == 0;
  if (random.between(0, 5) == 0) load.range.iterations = random.between(1, 9);
  if (random.between(0, 3) == 0) {
    const Bytes free = prompt_memory(load.scenario.served.front(), 11, 11, 0);
    load.means.memory.emplace(load.iteration.period,
                              std::vector<std::vector<FreeMemoryStep>>(
                                  to_size(gpus), {{0ns, free * random.between(1, 3)}}));
  }
  draw_requests(random, load);
  return load;
}

Controller controller_of(const RandomLoad& load, PipelineLookup lookup) {
  ControllerMeans means = load.means;
  means.lookup = lookup;
  return {load.iteration, served_models(load.scenario, load.cell), load.policy, load.range,
          std::move(means)};
}

auto parts_of(const Decision& decision) {
  return std::tuple{decision.refused, decision.pipeline,         decision.start,
                    decision.end,     decision.passes,           decision.compute,
                    decision.lacks,   decision.waited_for_memory};
}

TEST(GapIndex, DecidesAsAControllerThatLooksAtAllPipelines) {
  Random random{31};
  int placed = 0, later = 0, of_several_stages = 0, in_chunks = 0, for_memory = 0;
  std::array<int, 6> refused{};
  for (int instance = 0; instance < 4000; ++instance) {
    const RandomLoad load = random_load(random);
    Controller by_index = controller_of(load, PipelineLookup::index);
    Controller of_all = controller_of(load, PipelineLookup::all);
    for (std::size_t i = 0; i < load.requests.size(); ++i) {
      const Request& request = load.requests[i];
      const Decision predicted = by_index.predict(request, load.networks[i]);
      const Decision decision = by_index.decide(request, load.networks[i]);
      const Decision expected = of_all.decide(request, load.networks[i]);
      ASSERT_EQ(parts_of(decision), parts_of(expected))
          << "instance " << instance << " request " << i;
      ASSERT_EQ(parts_of(predicted), parts_of(expected))
          << "instance " << instance << " request " << i;
      if (decision.refused) {
        ++refused[static_cast<std::size_t>(*decision.refused)];
        continue;
      }
      ++placed;
      later += decision.start > request.arrival + load.networks[i];
      of_several_stages += load.scenario.served[decision.model].stages > 1;
      in_chunks += !decision.passes.empty();
      for_memory += decision.waited_for_memory;
    }
  }
  EXPECT_GT(placed, 40'000);
  EXPECT_GT(later, 20'000);
  EXPECT_GT(of_several_stages, 10'000);
  EXPECT_GT(in_chunks, 5000);
  EXPECT_GT(for_memory, 1000);
  EXPECT_GT(refused[static_cast<std::size_t>(RefusalReason::too_long)], 1000);
  EXPECT_GT(refused[static_cast<std::size_t>(RefusalReason::closed)], 1000);
  EXPECT_GT(refused[static_cast<std::size_t>(RefusalReason::slo)], 1000);
}

}  // namespace
}  // namespace longhaul::prefill
