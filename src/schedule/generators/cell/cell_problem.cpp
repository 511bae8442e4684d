#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/generators/cell/cell.hpp"
#include "schedule/link_delays.hpp"
#include "schedule/memory.hpp"

namespace longhaul::schedule::families {
namespace {

/// The schedule's stages, with an R of each that recomputes: what costs ask for. The last one does
/// not: its B follows its F.
Schedule layout_of(const Scenario& scenario, const Schedule& schedule) {
  Schedule layout = schedule;
  layout.link_orders.clear();
  layout.rows.assign(at(schedule.devices), {});
  if (!scenario.memory.recompute) return layout;
  for (const ChunkId chunk : schedule.chunk_ids()) {
    if (!schedule.is_last(chunk))
      layout.rows[at(chunk)].push_back({.kind = BlockKind::R, .chunk = chunk});
  }
  return layout;
}

/// Fills in all but the hops.
CellProblem bare_problem(const Scenario& scenario, const Schedule& schedule, int pipelines) {
  const Schedule layout = layout_of(scenario, schedule);
  const BlockCosts costs{layout, scenario};
  const ActivationModel memory{layout, scenario};
  const LinkDelays links{scenario};
  CellProblem problem;
  problem.pipelines = pipelines;
  problem.microbatches = schedule.microbatches;
  for (const DeviceId device : schedule.device_ids()) {
    const int s = number(device);  // stage s lies on device s
    const auto block = [s](BlockKind kind) { return Block{.kind = kind, .chunk = ChunkId{s}}; };
    const SyncTimes sync = sync_times(scenario, links, device, scenario.costs.weights[at(s)]);
    CellStage stage;
    stage.forward = costs.duration(block(BlockKind::F));
    stage.backward = costs.duration(block(BlockKind::B));
    stage.release = sync.gather;
    stage.reduction = sync.reduction;
    stage.kept = memory.effect(block(BlockKind::F)).at_start;
    stage.recomputes = !layout.rows[at(s)].empty();
    if (stage.recomputes) {
      stage.recompute = costs.duration(block(BlockKind::R));
      stage.rest = memory.effect(block(BlockKind::R)).at_start;
    }
    problem.stages.push_back(stage);
  }
  problem.activations.resize(at(pipelines * schedule.devices));
  problem.gradients.resize(at(pipelines * schedule.devices));
  return problem;
}

/// Calls `set(hop, from, to)` for every message between stages of one pipeline, both ways.
template <typename Set>
void for_each_hop(CellProblem& problem, int pipeline, Set set) {
  const int stages = static_cast<int>(problem.stages.size());
  for (int s = 0; s + 1 < stages; ++s) {
    const int node = pipeline * stages + s;
    const DeviceId here{s}, there{s + 1};
    set(problem.activations[at(node)], here, there);
    set(problem.gradients[at(node + 1)], there, here);
    problem.activations[at(node)].node = node + 1;
    problem.gradients[at(node + 1)].node = node;
  }
}

/// Activations and gradients of one boundary are as large as each other.
Bytes message_between(const Scenario& scenario, DeviceId from, DeviceId to) {
  return scenario.costs.message[index(std::min(from, to))];
}

/// Makes the hops of a cell. Resources are numbered as they come up, so that cells with equal
/// links give equal problems.
class CellHops {
public:
  CellHops(const Scenario& scenario, CellProblem& problem, const CellReplicas& replicas)
      : scenario_{scenario}, problem_{problem}, replicas_{replicas}, routes_{scenario} {}

  void make() {
    for (int pipeline = 0; pipeline < problem_.pipelines; ++pipeline) {
      for_each_hop(problem_, pipeline, [&](CellHop& hop, DeviceId from, DeviceId to) {
        if (crosses(from, to)) {
          hop = pooled(from, to);
        } else {
          hop.way = alone(pipeline, from, to);
        }
      });
    }
    problem_.resources = resources_;
  }

private:
  [[nodiscard]] Rank rank(int pipeline, DeviceId device) const {
    return scenario_.rank(replicas_[pipeline], device);
  }
  [[nodiscard]] DatacenterId datacenter(int pipeline, DeviceId device) const {
    return scenario_.datacenter_of(rank(pipeline, device));
  }
  [[nodiscard]] bool crosses(DeviceId from, DeviceId to) const {
    return datacenter(0, from) != datacenter(0, to);
  }
  [[nodiscard]] Bytes piece(DeviceId from, DeviceId to, int pipeline) const {
    return share(message_between(scenario_, from, to), problem_.pipelines, pipeline);
  }

  int resource(const LinkResource& held) {
    const auto [known, is_new] = known_.try_emplace(held, resources_);
    if (is_new) ++resources_;
    return known->second;
  }

  [[nodiscard]] GreedyHop alone(int pipeline, DeviceId from, DeviceId to) {
    const NetworkRoute route = routes_.between(rank(pipeline, from), rank(pipeline, to));
    GreedyHop hop;
    hop.local = false;
    hop.transfer = message_between(scenario_, from, to) / route.rate;
    hop.latency = route.latency;
    for (const RouteSegment& segment : route.segments)
      if (segment.capacity == 1) hop.resources.push_back(resource(segment.resource));
    return hop;
  }

  /// Pieces of a message between the ranks of one stage, one after the other: from its owner to
  /// the others, or back.
  [[nodiscard]] Duration spread_time(DeviceId device, DeviceId from, DeviceId to) const {
    Duration time{};
    Duration latency{};
    for (int other = 1; other < problem_.pipelines; ++other) {
      const NetworkRoute route = routes_.between(rank(0, device), rank(other, device));
      time += piece(from, to, other) / route.rate;
      latency = std::max(latency, route.latency);
    }
    return time + latency;
  }

  [[nodiscard]] CellHop pooled(DeviceId from, DeviceId to) {
    const auto [known, is_new] = crossings_.try_emplace({from, to});
    if (!is_new) return known->second;
    CellHop& hop = known->second;
    hop.turns = static_cast<int>(problem_.turns.size());
    problem_.turns.push_back({from, to});
    hop.way.local = false;
    hop.scatter = spread_time(from, from, to);
    hop.way.resources.push_back(resources_++);  // the turn itself
    struct Load {
      Duration longest{};
      std::int64_t pieces = 0;
      int capacity = 1;
    };
    std::map<LinkResource, Load> loads;
    for (int pipeline = 0; pipeline < problem_.pipelines; ++pipeline) {
      const NetworkRoute route = routes_.between(rank(pipeline, from), rank(pipeline, to));
      const Duration time = piece(from, to, pipeline) / route.rate;
      hop.way.latency = std::max(hop.way.latency, route.latency);
      for (const RouteSegment& segment : route.segments) {
        Load& load = loads[segment.resource];
        load.longest = std::max(load.longest, time);
        load.capacity = segment.capacity;
        ++load.pieces;
      }
    }
    for (const auto& [held, load] : loads) {
      const std::int64_t rounds = (load.pieces + load.capacity - 1) / load.capacity;
      hop.way.transfer = std::max(hop.way.transfer, rounds * load.longest);
      const bool full = load.capacity < 2 * load.pieces;
      if (held.kind != ResourceKind::link && full) hop.way.resources.push_back(resource(held));
    }
    hop.way.latency += spread_time(to, from, to);
    return hop;
  }

  const Scenario& scenario_;
  CellProblem& problem_;
  CellReplicas replicas_;
  NetworkRoutes routes_;
  std::map<LinkResource, int> known_;
  std::map<std::pair<DeviceId, DeviceId>, CellHop> crossings_;
  int resources_ = 0;
};

std::optional<Refusal> why_over_budget(const CellProblem& problem, const Scenario& scenario,
                                       const Schedule& schedule) {
  const auto needed = [](const CellStage& stage) { return stage.kept + stage.rest; };
  const auto largest = std::ranges::max_element(problem.stages, {}, needed);
  if (needed(*largest) <= problem.limit) return std::nullopt;
  return refused(
      "{} does not fit memory.budget = {} (device {} holds {} bytes of activations for one "
      "microbatch alone, the budget is {}). Set memory.budget to {} or more.",
      schedule.name, scenario.memory.budget, largest - problem.stages.begin(),
      needed(*largest).count(), problem.limit.count(),
      least_budget(needed(*largest), schedule, scenario));
}

}  // namespace

CellProblem varuna_problem(const Scenario& scenario, const Schedule& schedule) {
  CellProblem problem = bare_problem(scenario, schedule, 1);
  LinkDelays links{scenario};
  for_each_hop(problem, 0, [&](CellHop& hop, DeviceId from, DeviceId to) {
    const LinkDelay delay = links.delay(from, to, message_between(scenario, from, to));
    hop.way.local = false;
    hop.way.transfer = delay.transfer;
    hop.way.latency = delay.latency;
    hop.way.queued = delay.shared;
    hop.way.resources = delay.resources;
  });
  problem.resources = links.resources();
  return problem;
}

Result<CellProblem> atlas_problem(const Scenario& scenario, const Schedule& schedule,
                                  const CellReplicas& replicas) {
  CellProblem problem = bare_problem(scenario, schedule, replicas.count);
  problem.limit = allowed_activation(schedule, scenario);
  if (auto why = why_over_budget(problem, scenario, schedule)) return *std::move(why);
  CellHops{scenario, problem, replicas}.make();
  return problem;
}

}  // namespace longhaul::schedule::families
