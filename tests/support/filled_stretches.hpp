#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rewrite/repeated.hpp"
#include "plan/rows.hpp"
#include "prefill/instances.hpp"
#include "prefill/lowering/filled_plan.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::testing {

/// A stretch of iterations of a schedule, and what the simulator predicts of it.
struct PlacedStretch {
  PlacedStretch(const Scenario& of, const std::string& schedule, int iterations)
      : PlacedStretch{of, schedule::generate(schedule, of), iterations} {}
  PlacedStretch(const Scenario& of, const Schedule& schedule, int iterations)
      : scenario{of},
        plan{plan::repeated(plan::lower(schedule, of), iterations)},
        times{sim::simulate(plan)},
        bubbles{bubbles_of(plan, times, of.training_ranks())},
        served{prefill::served_models(of, 1, bubbles)} {}

  [[nodiscard]] static prefill::IterationBubbles bubbles_of(const Plan& of, const OpTimes& when,
                                                            int gpus) {
    Timeline rows;
    plan::append_rows(rows, of, when, 0);
    return prefill::cut_at_ends(prefill::find_bubbles(rows.rows, gpus));
  }
  [[nodiscard]] std::vector<prefill::Decision> place(
      const std::vector<prefill::Request>& requests) const {
    prefill::ControllerMeans means;
    means.decode_ranks = 1;
    prefill::Controller controller{
        bubbles, served, prefill::PlacementPolicy::earliest, {false, 1}, means};
    return prefill::place_open_loop(controller, requests);
  }
  /// With deadlines that move.
  [[nodiscard]] prefill::FilledPlan fill(const std::vector<prefill::Decision>& decisions,
                                         prefill::FillOptions options = {}) const {
    options.graph =
        std::make_shared<const prefill::TrainingGraph>(plan, times, scenario.training_ranks());
    return fill_as_said(decisions, options);
  }
  [[nodiscard]] prefill::FilledPlan fill_as_said(const std::vector<prefill::Decision>& decisions,
                                                 const prefill::FillOptions& options) const {
    return prefill::fill_plan(plan, times, bubbles.period, served, decisions, options);
  }

  Scenario scenario;
  Plan plan;
  OpTimes times;
  prefill::IterationBubbles bubbles;
  std::vector<prefill::Served> served;
};

/// Of 2 to 4 stages of random times, 1 to 4 DP-cells, prompts on 1 to as many GPUs.
inline Scenario random_serving_scenario(Random& random) {
  const int stages = static_cast<int>(random.between(2, 4));
  const int cells = static_cast<int>(random.between(1, 4));
  const int k = static_cast<int>(random.between(1, cells));
  Scenario scenario = prefill::serving_scenario(
      stages, cells, prefill::linear_model(Duration{random.between(1, 900)}, k));
  scenario.parallel.microbatches = static_cast<int>(random.between(2, 5));
  for (auto* costs : {&scenario.costs.forward, &scenario.costs.backward, &scenario.costs.dgrad,
                      &scenario.costs.wgrad})
    for (Duration& each : *costs) each = Duration{random.between(1'000, 90'000)};
  scenario.served.front().hop = Duration{random.between(0, 500)};
  scenario.served.front().guard = Duration{random.between(0, 1'000)};
  if (k > 1 && random.between(0, 1) == 1) scenario.served.front().skewed_for = 100;
  return scenario;
}

/// The first served model sends its keys and values, in slices of `least` or more, over interfaces
/// that training's messages hold too.
inline void send_keys_and_values(Scenario& scenario, Bytes least, Random& random) {
  ServedModel& model = scenario.served.front();
  model.dimensions = ServedDimensions{.layers = static_cast<int>(random.between(4, 7)),
                                      .hidden = 8,
                                      .intermediate = 8,
                                      .heads = 2,
                                      .kv_heads = 2,
                                      .head_size = 4,
                                      .vocabulary = 10};
  model.decode = DecodeLink{.rate = Bandwidth{8e9 * random.uniform()},
                            .latency = Duration{random.between(0, 900)},
                            .slice = Bytes{random.between(least.count(), 9'000)},
                            .first_token = Duration{random.between(0, 900)}};
  scenario.nodes.push_back({.datacenter = DatacenterId{0},
                            .egress = Bandwidth::unlimited(),
                            .ingress = Bandwidth::unlimited(),
                            .internal = Bandwidth{8e9 * 200}});
}

inline PlacedStretch random_stretch(Random& random) {
  const Scenario scenario = random_serving_scenario(random);
  const char* const names[] = {"gpipe", "1f1b", "zb-h1", "zbv"};
  return {scenario, names[random.between(0, 3)], static_cast<int>(random.between(1, 3))};
}

inline std::vector<prefill::Request> random_requests(Random& random) {
  std::vector<prefill::Request> requests;
  for (std::int64_t i = 0; i < 40; ++i)
    requests.push_back({i, Duration{i * random.between(0, 20'000)}, random.between(1, 200)});
  std::ranges::sort(requests, {}, &prefill::Request::arrival);
  return requests;
}

}  // namespace longhaul::testing
