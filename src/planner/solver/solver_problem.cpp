#include "planner/solver/solver_problem.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/bounds/relaxation.hpp"
#include "planner/bounds/stage_times.hpp"
#include "planner/collectives/time_alone.hpp"
#include "planner/solver/solver_model.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/memory.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using Json = nlohmann::json;

/// Collects the model piece by piece.
class ProblemMaker {
public:
  ProblemMaker(const Scenario& scenario, const SolverOptions& options, SolverProblem& problem)
      : options_{options},
        problem_{problem},
        start_{problem.start},
        scenario_{scenario},
        plan_{plan::lower(start_, scenario, Arrangement::decoupled, time_alone(scenario))},
        times_{sim::simulate(plan_)},
        relaxation_{relax(start_, scenario)},
        heads_{stage_times(relaxation_, relaxation_.replicas.front(), MemoryLimit::kept)},
        costs_{start_, scenario},
        memory_{start_, scenario},
        blocks_{start_} {}

  void make() {
    for (const OpTime& time : times_)
      problem_.start_makespan = std::max(problem_.start_makespan, time.end);
    add_blocks();
    problem_.blocks = blocks_.all();
    const ModelMessages messages = messages_of(blocks_, plan_);
    problem_.exact = messages.exact && collectives_take_no_less(start_, scenario_);
    Json& json = problem_.json;
    json["after"] = dependencies_of(blocks_);
    json["messages"] = messages.json;
    json["collectives"] = collectives_of(blocks_, plan_);
    json["held"] = held_of(blocks_, memory_);
    json["schema_version"] = 2;
    json["devices"] = start_.devices;
    json["microbatch_order"] = options_.microbatch_order;
    json["time_limit_s"] = std::chrono::duration<double>(options_.time_limit).count();
    json["threads"] = options_.threads;
    json["start_makespan_ns"] = problem_.start_makespan.count();
    json["lower_bound_ns"] = lower_bound(start_, scenario_).lower_bound.count();
    json["exact"] = problem_.exact;
  }

private:
  void add_blocks() {
    std::map<Block, OpTime> played;
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const OpId id{static_cast<std::uint32_t>(i)};
      const Op& op = plan_.ops[i];
      if (op.kind == OpKind::compute &&
          plan_.ranks[index(plan_.rank_of(id))].replica == ReplicaId{0})
        played[op.block()] = times_[i];
    }
    for (ChunkId chunk{}; chunk < start_.chunks; ++chunk) {
      for (MicrobatchId m{start_.copy_of(chunk)}; m < start_.microbatches; m += start_.copies) {
        const auto found = played.find({BlockKind::B, 0, 1, chunk, m});
        const bool fused = found != played.end();
        for (const BlockKind kind : {BlockKind::F, BlockKind::R, BlockKind::D, BlockKind::W}) {
          const Block block{kind, 0, 1, chunk, m};
          if (kind == BlockKind::R && !played.contains(block)) continue;
          const bool here = kind == BlockKind::F || kind == BlockKind::R || !fused;
          const Duration start = here                   ? played.at(block).start
                                 : kind == BlockKind::D ? found->second.start
                                                        : found->second.end;
          add_block(block, start);
        }
        add_fusion(chunk, m, fused);
      }
    }
  }

  void add_block(const Block& block, Duration start) {
    blocks_.add(block);
    const Duration length = costs_.duration(block);
    const auto [head, tail] = window(block, length);
    problem_.json["blocks"].push_back({{"device", number(start_.device_of_chunk[block.chunk])},
                                       {"kind", longhaul::to_string(block.kind)},
                                       {"chunk", number(block.chunk)},
                                       {"microbatch", number(block.microbatch)},
                                       {"duration_ns", length.count()},
                                       {"start_ns", start.count()},
                                       {"head_ns", head.count()},
                                       {"tail_ns", tail.count()}});
  }

  void add_fusion(ChunkId chunk, MicrobatchId microbatch, bool fused) {
    Json& fusions = problem_.json["fusions"];
    if (fusions.is_null()) fusions = Json::array();
    if (!options_.fuse || !fusing_saves_time(costs_, chunk)) return;
    fusions.push_back(
        {{"gradient", blocks_.index_of({BlockKind::D, 0, 1, chunk, microbatch})},
         {"weight", blocks_.index_of({BlockKind::W, 0, 1, chunk, microbatch})},
         {"duration_ns", costs_.duration({BlockKind::B, 0, 1, chunk, microbatch}).count()},
         {"fused", fused}});
  }

  /// The least time from the iteration's start to the block's start, and from there to the end.
  [[nodiscard]] std::pair<Duration, Duration> window(const Block& block, Duration length) const {
    const StageTimes& of_chunk = heads_[at(block.chunk)];
    const RelaxedChunk& chunk = relaxation_.replicas.front().chunks[at(block.chunk)];
    const auto rank = at(block.microbatch / start_.copies);
    const std::size_t first = options_.microbatch_order ? rank : 0;
    const std::size_t last = options_.microbatch_order ? rank : of_chunk.forward_tail.size() - 1;
    switch (block.kind) {
      case BlockKind::F: return {of_chunk.forward_head[first], of_chunk.forward_tail[last]};
      case BlockKind::R:
        return {of_chunk.forward_head[first] + chunk.forward,
                length + of_chunk.gradient_tail[last]};
      case BlockKind::B:
      case BlockKind::D: return {of_chunk.gradient_head[first], of_chunk.gradient_tail[last]};
      case BlockKind::W:
        return {of_chunk.gradient_head[first] + chunk.gradient, length + chunk.reduction};
    }
    return {};
  }

  const SolverOptions& options_;
  SolverProblem& problem_;
  const Schedule& start_;
  const Scenario& scenario_;
  Plan plan_;
  OpTimes times_;
  Relaxation relaxation_;
  std::vector<StageTimes> heads_;
  schedule::BlockCosts costs_;
  schedule::ActivationModel memory_;
  ModelBlocks blocks_;
};

}  // namespace

SolverProblem make_problem(const Scenario& scenario, const Schedule& warm_start,
                           const SolverOptions& options) {
  if (scenario.parallel.tensor > 1)
    fail(
        "the solver models one rank of each stage (parallel.tensor = {}). Write "
        "model.tensor_parallel instead.",
        scenario.parallel.tensor);
  Scenario modelled = scenario;
  if (!options.include_dp) modelled.parallel.gradient_sync = GradientSync::none;
  SolverProblem problem;
  problem.start = in_model(warm_start, modelled, options);
  ProblemMaker{modelled, options, problem}.make();
  // Without its communication data parallelism still shares the optimizer's state.
  problem.json["memory_limits_bytes"] = memory_limits_of(problem.start, scenario);
  return problem;
}

}  // namespace longhaul::planner
