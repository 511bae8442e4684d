#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rewrite/repeated.hpp"
#include "plan/rows.hpp"
#include "prefill/accounts/training_state.hpp"
#include "prefill/inference_controller.hpp"
#include "prefill/instances.hpp"
#include "prefill/outcome.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "sim/simulate.hpp"

namespace longhaul::testing {

/// Training and what is served beside it: 2 to 6 stages of uneven times, 1 to 4 replicas, 1 to 3
/// datacenters, 1 or 2 served models on 1 to 4 GPUs each.
struct HeterogeneousOptions {
  bool limits_memory = true;  ///< capacities leave room for a few prompts
  bool sends_keys = true;     ///< half of the instances do
  bool chunks = true;         ///< a third do
};

/// The stages of each replica over datacenters, in order; of half of the instances each replica's
/// own.
inline void place_stages(Scenario& scenario, Random& random) {
  const auto datacenters = static_cast<std::int64_t>(scenario.datacenters.size());
  const bool are_same = random.between(0, 1) == 0;
  std::vector<std::int64_t> of_stage;
  scenario.placement.assign(to_size(scenario.training_ranks()), DatacenterId{0});
  for (int replica = 0; replica < scenario.parallel.replicas; ++replica) {
    if (!are_same || replica == 0) {
      of_stage.clear();
      for (int stage = 0; stage < scenario.parallel.stages; ++stage)
        of_stage.push_back(random.between(0, datacenters - 1));
      std::ranges::sort(of_stage);
    }
    for (const DeviceId device : scenario.device_ids())
      scenario.placement[index(scenario.rank(ReplicaId{replica}, device))] =
          DatacenterId{static_cast<int>(of_stage[index(device)])};
  }
}

/// A served model on k GPUs, as it was drawn.
inline ServedModel random_served(Random& random, const std::string& name, int k,
                                 const HeterogeneousOptions& options) {
  ServedModel model = prefill::linear_model(Duration{random.between(50, 900)}, k);
  model.name = name;
  model.hop = Duration{random.between(0, 500)};
  model.guard = Duration{random.between(0, 1'000)};
  if (random.between(0, 2) == 0) model.slo_ttft = Duration{random.between(200'000, 4'000'000)};
  if (k > 1 && random.between(0, 2) == 0) model.skewed_for = 100;
  if (options.chunks && random.between(0, 2) == 0) model.chunk = random.between(20, 120);
  model.dimensions = ServedDimensions{.layers = static_cast<int>(random.between(4, 9)),
                                      .hidden = 64,
                                      .intermediate = 128,
                                      .heads = 4,
                                      .kv_heads = 4,
                                      .head_size = 16,
                                      .vocabulary = 100};
  return model;
}

/// Without capacities of memory: these follow from the schedule.
inline Scenario heterogeneous_scenario(Random& random, const HeterogeneousOptions& options) {
  const int stages = static_cast<int>(random.between(2, 6));
  const int replicas = static_cast<int>(random.between(1, 4));
  Scenario scenario = uniform_scenario(stages, static_cast<int>(random.between(2, 6)));
  scenario.parallel.replicas = replicas;
  scenario.parallel.chunks = static_cast<int>(random.between(1, 2));
  scenario.memory.recompute = random.between(0, 3) == 0;
  const auto datacenters = static_cast<int>(random.between(1, std::min(3, stages)));
  scenario = spread(scenario, datacenters, Duration{random.between(0, 60'000)},
                    Duration{random.between(0, 40'000)});
  place_stages(scenario, random);
  Costs& costs = scenario.costs;
  for (auto* times : {&costs.forward, &costs.dgrad, &costs.wgrad, &costs.recompute})
    for (Duration& time : *times) time = Duration{random.between(1'000, 60'000)};
  for (std::size_t i = 0; i < costs.forward.size(); ++i) {
    costs.backward[i] = costs.dgrad[i] + costs.wgrad[i];
    costs.activation[i] = Bytes{random.between(2'000, 100'000)};
  }
  const auto models = random.between(1, 2);
  for (std::int64_t i = 0; i < models; ++i)
    scenario.served.push_back(
        random_served(random, i == 0 ? "one" : "two",
                      static_cast<int>(random.between(1, std::min(4, replicas))), options));
  if (options.sends_keys && random.between(0, 1) == 0) {
    const DecodeLink link{.rate = Bandwidth{8e9 * static_cast<double>(random.between(1, 40))},
                          .latency = Duration{random.between(0, 500)},
                          .slice = Bytes{random.between(1, 40) * 1000},
                          .first_token = Duration{random.between(0, 900)}};
    for (ServedModel& model : scenario.served) model.decode = link;
    for (int i = 0; i < datacenters; ++i)
      scenario.add_services({RankRole::decode, DatacenterId{i}, 1});
  }
  return scenario;
}

/// Each device has what training and weights of served models need, and room for a part of a large
/// prompt, or for two.
inline void limit_memory(Scenario& scenario, const Schedule& schedule, Random& random) {
  scenario.memory.capacity.clear();
  for (const schedule::DeviceNeed& need : schedule::device_memory(schedule, scenario)) {
    Bytes all = need.total(), prompt;
    for (const ServedModel& model : scenario.served) {
      all += model.dimensions->weights() / model.stages + Bytes{model.stages};
      prompt = std::max(prompt, prefill::prompt_memory(model, 200, 200, 0));
    }
    const double room = 0.1 + 1.9 * random.uniform() * random.uniform();
    scenario.memory.capacity.push_back(
        all + Bytes{static_cast<std::int64_t>(room * static_cast<double>(prompt.count()))});
  }
}

/// An instance, and what the simulator predicts of `iterations` of its training.
struct Heterogeneous {
  Scenario scenario;
  Schedule schedule;
  Plan plan;
  OpTimes times;
  prefill::IterationBubbles bubbles;
  std::vector<prefill::Served> served;
  std::vector<prefill::Request> requests;

  /// What controllers keep account of.
  [[nodiscard]] prefill::ControllerMeans means(prefill::KvSending sending) const {
    prefill::ControllerMeans all;
    all.sending = sending;
    if (prefill::limits_memory(scenario))
      all.memory.emplace(bubbles.period,
                         prefill::free_memory_steps(schedule, scenario, plan, times, served));
    all.link.emplace(bubbles.period, prefill::interface_holds(plan, times, bubbles.gpus));
    return all;
  }
  [[nodiscard]] std::vector<prefill::Decision> place(
      prefill::PlacementPolicy policy, const prefill::FillRange& range,
      prefill::KvSending sending = prefill::KvSending::layerwise, Duration held_after = {}) const {
    prefill::ControllerMeans own = means(sending);
    own.held_after = held_after;
    const scenario::RegionTable nowhere;
    prefill::InferenceController controller{
        prefill::serving_sites(scenario, served, bubbles, policy, range, own), nowhere,
        prefill::Routing::ttft};
    return prefill::place_open_loop(controller, requests);
  }
};

inline std::vector<prefill::Request> heterogeneous_requests(Random& random,
                                                            const Scenario& scenario) {
  std::vector<prefill::Request> requests;
  const std::int64_t apart = random.between(0, 30'000);
  Duration arrival{};
  for (std::int64_t i = 0; i < 30; ++i) {
    arrival += Duration{random.between(0, apart)};
    prefill::Request request{i, arrival, random.between(1, 200)};
    request.model =
        scenario.served[to_size(random.between(0, std::ssize(scenario.served) - 1))].name;
    requests.push_back(std::move(request));
  }
  return requests;
}

/// nullopt: the generator is not defined there.
inline std::optional<Heterogeneous> heterogeneous(std::uint64_t seed,
                                                  const schedule::Generator& generator,
                                                  int iterations,
                                                  const HeterogeneousOptions& options = {}) {
  Random random{seed};
  Heterogeneous all;
  all.scenario = heterogeneous_scenario(random, options);
  auto schedule = schedule::try_generate(generator, all.scenario);
  if (!schedule) return std::nullopt;
  all.schedule = std::move(*schedule);
  if (options.limits_memory && random.between(0, 3) > 0)
    limit_memory(all.scenario, all.schedule, random);
  all.plan = plan::repeated(plan::lower(all.schedule, all.scenario), iterations);
  all.times = sim::simulate(all.plan);
  Timeline rows;
  plan::append_rows(rows, all.plan, all.times, 0);
  all.bubbles = prefill::find_bubbles(rows.rows, all.scenario.training_ranks());
  const int cell = all.schedule.cell;
  for (const ServedModel& model : all.scenario.served)
    if (model.stages > all.scenario.parallel.replicas / cell) return std::nullopt;
  all.served = prefill::served_models(all.scenario, cell, all.bubbles);
  all.requests = heterogeneous_requests(random, all.scenario);
  return all;
}

}  // namespace longhaul::testing
