#include "planner/solver_problem.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "plan/lower.hpp"
#include "planner/relaxation.hpp"
#include "planner/stage_times.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/memory.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

using Json = nlohmann::json;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Collects the model piece by piece.
class ProblemMaker {
public:
  ProblemMaker(const Scenario& scenario, const SolverOptions& options, SolverProblem& problem)
      : options_{options},
        problem_{problem},
        start_{problem.start},
        scenario_{scenario},
        plan_{lower(start_, scenario)},
        times_{simulate(plan_)},
        relaxation_{relax(start_, scenario)},
        heads_{stage_times(relaxation_, relaxation_.replicas.front(), MemoryLimit::kept)},
        costs_{start_, scenario},
        memory_{start_, scenario} {}

  void make() {
    for (const OpTime& time : times_)
      problem_.start_makespan = std::max(problem_.start_makespan, time.end);
    add_blocks();
    add_dependencies();
    add_messages();
    add_collectives();
    add_memory();
    Json& json = problem_.json;
    json["schema_version"] = 1;
    json["devices"] = start_.devices;
    json["microbatch_order"] = options_.microbatch_order;
    json["memory_limit_bytes"] = relaxation_.limit.count();
    json["time_limit_s"] = std::chrono::duration<double>(options_.time_limit).count();
    json["threads"] = options_.threads;
    json["start_makespan_ns"] = problem_.start_makespan.count();
    json["lower_bound_ns"] = lower_bound(start_, scenario_).lower_bound.count();
    json["exact"] = problem_.exact;
  }

private:
  [[nodiscard]] bool is_of_replica_0(OpId id) const {
    return plan_.ranks[index(plan_.rank_of(id))].replica == 0;
  }
  template <typename Visit>
  void for_ops(OpKind kind, Visit visit) const {
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      if (plan_.ops[i].kind == kind) visit(OpId{static_cast<std::uint32_t>(i)}, plan_.ops[i]);
    }
  }

  void add_blocks() {
    std::map<Block, OpTime> played;
    for_ops(OpKind::compute, [&](OpId id, const Op& op) {
      if (is_of_replica_0(id)) played[op.block()] = times_[index(id)];
    });
    for (int chunk = 0; chunk < start_.chunks; ++chunk) {
      for (int m = start_.copy_of(chunk); m < start_.microbatches; m += start_.copies) {
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
    index_of_[block] = static_cast<int>(problem_.blocks.size());
    problem_.blocks.push_back(block);
    const Duration length = costs_.duration(block);
    const auto [head, tail] = window(block, length);
    problem_.json["blocks"].push_back({{"device", start_.device_of_chunk[at(block.chunk)]},
                                       {"kind", name_of(block.kind)},
                                       {"chunk", block.chunk},
                                       {"microbatch", block.microbatch},
                                       {"duration_ns", length.count()},
                                       {"start_ns", start.count()},
                                       {"head_ns", head.count()},
                                       {"tail_ns", tail.count()}});
  }

  void add_fusion(int chunk, int microbatch, bool fused) {
    Json& fusions = problem_.json["fusions"];
    if (fusions.is_null()) fusions = Json::array();
    if (!options_.fuse || !fusing_saves_time(costs_, chunk)) return;
    fusions.push_back(
        {{"gradient", index_of(BlockKind::D, chunk, microbatch)},
         {"weight", index_of(BlockKind::W, chunk, microbatch)},
         {"duration_ns", costs_.duration({BlockKind::B, 0, 1, chunk, microbatch}).count()},
         {"fused", fused}});
  }

  /// From the start of the iteration to the block's start, and from there to the end, at least.
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

  [[nodiscard]] int index_of(BlockKind kind, int chunk, int microbatch) const {
    const auto found = index_of_.find({kind, 0, 1, chunk, microbatch});
    return found == index_of_.end() ? -1 : found->second;
  }
  /// What takes a gradient: the R that waits for it, or the D.
  [[nodiscard]] int taker_of_gradient(int chunk, int microbatch) const {
    const int recompute = index_of(BlockKind::R, chunk, microbatch);
    const bool waits = start_.recompute_timing == RecomputeTiming::on_arrival;
    return recompute >= 0 && waits ? recompute : index_of(BlockKind::D, chunk, microbatch);
  }
  /// What a block passes its output to, and whether a message carries it there.
  struct Taker {
    int block = -1;
    bool remote = false;
  };
  [[nodiscard]] Taker taker(const Block& block) const {
    const auto device = [&](int chunk) { return start_.device_of_chunk[at(chunk)]; };
    if (block.kind == BlockKind::F && !start_.is_last(block.chunk))
      return {index_of(BlockKind::F, block.chunk + 1, block.microbatch),
              device(block.chunk) != device(block.chunk + 1)};
    if (block.kind == BlockKind::D && !start_.is_first(block.chunk))
      return {taker_of_gradient(block.chunk - 1, block.microbatch),
              device(block.chunk) != device(block.chunk - 1)};
    return {};
  }

  void add_dependencies() {
    Json& after = problem_.json["after"] = Json::array();
    for (std::size_t i = 0; i < problem_.blocks.size(); ++i) {
      const Block& block = problem_.blocks[i];
      const auto needs = [&](BlockKind kind) {
        const int before = index_of(kind, block.chunk, block.microbatch);
        if (before >= 0) after.push_back({before, i});
      };
      if (block.kind == BlockKind::R || block.kind == BlockKind::D) needs(BlockKind::F);
      if (block.kind == BlockKind::D) needs(BlockKind::R);
      if (block.kind == BlockKind::W) needs(BlockKind::D);
      const Taker to = taker(block);
      if (to.block >= 0 && !to.remote) after.push_back({i, to.block});
    }
  }

  /// Replicas follow one order: a message takes as long as in the slowest of them, and where they
  /// share a resource, as all of theirs one behind the other.
  struct Way {
    Duration transfer{}, sum{}, latency{};
    std::vector<ResourceId> resources;  ///< of replica 0
    bool shared = false;
  };
  void add_messages() {
    std::map<int, Way> ways;  // by producer
    for_ops(OpKind::send, [&](OpId id, const Op& op) {
      const BlockKind kind = op.block_kind == BlockKind::B ? BlockKind::D : op.block_kind;
      Way& way = ways[index_of(kind, op.chunk, op.microbatch)];
      const Duration latency = plan_.ops[op.match].duration;
      const auto resources = plan_.resources_of(id);
      if (is_of_replica_0(id)) {
        way = {op.duration, op.duration, latency, {resources.begin(), resources.end()}, false};
        return;
      }
      problem_.exact &= op.duration == way.transfer && latency == way.latency;
      way.transfer = std::max(way.transfer, op.duration);
      way.latency = std::max(way.latency, latency);
      way.sum += op.duration;
      for (const ResourceId resource : resources)
        way.shared |= std::ranges::find(way.resources, resource) != way.resources.end();
    });
    Json& messages = problem_.json["messages"] = Json::array();
    for (const auto& [producer, way] : ways) {
      const Taker to = taker(problem_.blocks[at(producer)]);
      Json names = Json::array();
      for (const ResourceId resource : way.resources)
        names.push_back(plan_.resources[index(resource)].name);
      const Duration transfer = way.shared ? way.sum : way.transfer;
      problem_.exact &= !way.shared || transfer == Duration::zero();
      messages.push_back({{"from", producer},
                          {"to", to.block},
                          {"transfer_ns", transfer.count()},
                          {"latency_ns", way.latency.count()},
                          {"resources", names}});
    }
  }

  void add_collectives() {
    Json& collectives = problem_.json["collectives"] = Json::array();
    std::set<std::uint32_t> seen;
    for_ops(OpKind::collective, [&](OpId, const Op& op) {
      if (!seen.insert(op.match).second) return;
      std::set<int> devices;
      for (const OpId member : plan_.collectives[op.match])
        devices.insert(plan_.ranks[index(plan_.rank_of(member))].device);
      const bool gather = op.collective == CollectiveKind::all_gather;
      Json blocks = Json::array();
      for (const auto& [block, i] : index_of_) {
        const bool concerned = block.kind == (gather ? BlockKind::F : BlockKind::W);
        if (concerned && start_.stage_of(block.chunk) == start_.stage_of(op.chunk))
          blocks.push_back(i);
      }
      collectives.push_back({{"gather", gather},
                             {"devices", devices},
                             {"duration_ns", op.duration.count()},
                             {"blocks", blocks}});
    });
  }

  /// Memory in portions, each held from the start of one block to the end of another.
  void add_memory() {
    Json& held = problem_.json["held"] = Json::array();
    const auto hold = [&](int from, int until, Bytes bytes) {
      if (bytes > Bytes{})
        held.push_back({{"from", from}, {"until", until}, {"bytes", bytes.count()}});
    };
    for (const auto& [block, i] : index_of_) {
      if (block.kind != BlockKind::D) continue;
      const auto effect = [&](BlockKind kind) {
        return memory_.effect({kind, 0, 1, block.chunk, block.microbatch});
      };
      const auto of = [&](BlockKind kind) { return index_of(kind, block.chunk, block.microbatch); };
      const Bytes by_gradient = -effect(BlockKind::D).at_end;
      const Bytes taken = effect(BlockKind::F).at_start;
      const Bytes with_gradient = std::min(taken, by_gradient);
      hold(of(BlockKind::F), i, with_gradient);
      hold(of(BlockKind::F), of(BlockKind::W), taken - with_gradient);
      if (of(BlockKind::R) < 0) continue;
      const Bytes again = effect(BlockKind::R).at_start;
      hold(of(BlockKind::R), i, by_gradient - with_gradient);
      hold(of(BlockKind::R), of(BlockKind::W), again - (by_gradient - with_gradient));
    }
  }

  const SolverOptions& options_;
  SolverProblem& problem_;
  const Schedule& start_;
  const Scenario& scenario_;
  Plan plan_;
  OpTimes times_;
  Relaxation relaxation_;
  std::vector<StageTimes> heads_;
  BlockCosts costs_;
  ActivationModel memory_;
  std::map<Block, int> index_of_;
};

}  // namespace

SolverProblem make_problem(const Scenario& scenario, const Schedule& warm_start,
                           const SolverOptions& options) {
  Scenario modelled = scenario;
  if (!options.include_dp) modelled.parallel.gradient_sync = GradientSync::none;
  SolverProblem problem;
  problem.start = in_model(warm_start, modelled, options);
  ProblemMaker{modelled, options, problem}.make();
  return problem;
}

}  // namespace longhaul
