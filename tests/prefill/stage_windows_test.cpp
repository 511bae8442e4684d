#include "prefill/stage_windows.hpp"

#include <gtest/gtest.h>

#include "prefill/bounds.hpp"
#include "prefill/instances.hpp"
#include "prefill/outcome.hpp"

namespace longhaul::prefill {
namespace {

/// The most work by augmenting paths: prompts to nanoseconds of GPUs, one after the other.
std::int64_t most_flow_by_paths(const IterationBubbles& iteration, const Served& served,
                                const std::vector<Request>& requests, std::int64_t iterations) {
  const std::int64_t period = iteration.period.count(), end = period * iterations;
  std::vector<std::int64_t> gpus(static_cast<std::size_t>(end), 0);
  for (const Bubble& bubble : iteration.bubbles)
    for (std::int64_t t = bubble.start.count(); t < (bubble.end - served.model.guard).count(); ++t)
      for (std::int64_t i = -1; i < iterations; ++i)
        if (t + i * period >= 0 && t + i * period < end)
          ++gpus[static_cast<std::size_t>(t + i * period)];
  // Each nanosecond goes to the prompt of the earliest deadline that it may go to.
  std::vector<std::int64_t> left, deadline;
  for (const Request& request : requests) {
    left.push_back(served.model.time(request.tokens)->count());
    deadline.push_back(served.model.slo_ttft
                           ? std::min(end, (request.arrival + *served.model.slo_ttft).count())
                           : end);
  }
  std::int64_t filled = 0;
  for (std::int64_t t = 0; t < end; ++t)
    for (std::int64_t gpu = 0; gpu < gpus[static_cast<std::size_t>(t)]; ++gpu) {
      std::size_t best = left.size();
      for (std::size_t i = 0; i < left.size(); ++i)
        if (left[i] > 0 && requests[i].arrival.count() <= t && deadline[i] > t &&
            (best == left.size() || deadline[i] < deadline[best]))
          best = i;
      if (best == left.size()) break;
      --left[best];
      ++filled;
    }
  return filled;
}

TEST(FlowBound, IsWhatNanosecondByNanosecondFills) {
  Random random{23};
  for (int instance = 0; instance < 300; ++instance) {
    ServedModel model = linear_model(1ns);
    if (random.between(0, 2) > 0) model.slo_ttft = Duration{random.between(4, 40)};
    const Scenario scenario = serving_scenario(2, 1, model);
    const IterationBubbles iteration = find_bubbles(random_rows(random, 2), 2);
    const auto served = served_models(scenario, 1);
    std::vector<Request> requests;
    Duration arrival{};
    for (std::int64_t id = 0; id < 8; ++id) {
      arrival += Duration{random.between(0, 12)};
      requests.push_back({id, arrival, random.between(1, 12)});
    }
    const auto windows = fill_windows(iteration, served, requests);
    EXPECT_EQ(most_flow(iteration, windows, served, requests, 3).count(),
              most_flow_by_paths(iteration, served.front(), requests, 3))
        << "instance " << instance;
  }
}

std::vector<Request> random_prompts(Random& random) {
  std::vector<Request> requests;
  Duration arrival{};
  for (std::int64_t id = 0; id < 12; ++id) {
    arrival += Duration{random.between(0, 6)};
    requests.push_back({id, arrival, random.between(3, 12)});
  }
  return requests;
}

/// Many prompts at once, of one length and with one prefix.
std::vector<Request> prompts_of_a_prefix(Random& random) {
  std::vector<Request> requests;
  const std::int64_t tokens = PrefixCache::kBlockTokens * 3 + random.between(1, 400);
  for (std::int64_t id = 0; id < 150; ++id)
    requests.push_back(
        {.id = id, .arrival = Duration{500 * id}, .tokens = tokens, .hash_ids = {1, 2, 3}});
  return requests;
}

/// Those of two devices in us, the same in all replicas: stages follow each other closely.
std::vector<TimelineRow> same_rows(Random& random, int replicas) {
  std::vector<TimelineRow> all;
  const std::vector<TimelineRow> rows = random_rows(random, 2);
  for (std::int32_t replica = 0; replica < replicas; ++replica)
    for (TimelineRow row : rows) {
      row.rank += 2 * replica;
      row.start_ns *= 1000;
      row.end_ns *= 1000;
      all.push_back(row);
    }
  return all;
}

TEST(Bounds, HoldForEveryPlacementOfAnOpenLoop) {
  Random random{29};
  int met = 0, cached = 0;
  for (int instance = 0; instance < 600; ++instance) {
    const int stages = static_cast<int>(random.between(1, 3));
    const bool has_cache = instance % 2 == 1;
    ServedModel model = linear_model(1ns, stages);
    if (has_cache) {  // 2 us at least, 8 at 2,000 tokens
      model.profile = {{1, 2us}, {500, 2us}, {2000, 8us}};
      model.dimensions = ServedDimensions{4, 8, 16, 2, 2, 4, 100, false};
      model.prefix_cache = 1_MiB;
    }
    model.hop = Duration{random.between(0, 2)};
    model.guard = Duration{random.between(0, 1)};
    if (!has_cache && random.between(0, 1) == 1) model.slo_ttft = Duration{random.between(10, 60)};
    const Scenario scenario = serving_scenario(2, stages * 2, model);
    const IterationBubbles iteration = find_bubbles(
        has_cache ? same_rows(random, 2 * stages) : random_rows(random, scenario.ranks()),
        scenario.ranks());
    const auto served = served_models(scenario, 1);
    const std::vector<Request> requests =
        has_cache ? prompts_of_a_prefix(random) : random_prompts(random);
    ControllerMeans means;
    if (has_cache) means.caches = {PrefixCache{1000}};
    Controller controller{iteration, served, PlacementPolicy::best_fit, {}, std::move(means)};
    const auto decisions = place_open_loop(controller, requests);
    const Outcome outcome = summarize_decisions(iteration, served, decisions, std::nullopt);
    const UtilisationBounds bounds =
        utilisation_bounds(iteration, served, requests, std::nullopt, outcome.iterations);
    EXPECT_LE(outcome.utilisation.total, bounds.upper() + 1e-9) << "instance " << instance;
    met += outcome.utilisation.total > bounds.upper() - 1e-9;
    cached += outcome.cached_tokens > 0;
  }
  EXPECT_GT(met, 10);
  EXPECT_GT(cached, 100);
}

}  // namespace
}  // namespace longhaul::prefill
