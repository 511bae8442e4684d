#include "planner/overlap/overlap_decisions.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "collective/iteration/communications.hpp"
#include "collective/iteration/iteration_memory.hpp"
#include "collective/iteration/iteration_of.hpp"
#include "collective/partition/workload_chain.hpp"
#include "planner/collectives/collective_times.hpp"

namespace longhaul::planner {

using collective::CommunicationClass;
using collective::Grouping;
using collective::IterationPlan;
using collective::Partition;
using collective::Substitution;

Result<OverlapVariant> overlap_variant(const Schedule& schedule, const Scenario& scenario,
                                       Arrangement arrangement, CopySums sums) {
  Result<IterationPlan> operations = collective::iteration_of(schedule, scenario, arrangement);
  if (!operations) return operations.refusal();
  Result<IterationPlan> plan = collective::with_communications(*std::move(operations));
  if (!plan) return plan.refusal();
  if (auto why = collective::why_no_unit_fits(*plan)) return *std::move(why);
  OverlapVariant variant{*std::move(plan), {}, {}, {}};
  if (sums == CopySums::of_units)
    for (collective::StageWork& work : variant.plan.stages) collective::sum_by_units(work);
  variant.classes = collective::communication_classes(variant.plan);
  variant.levels = collective::levels_of_shard(scenario, DeviceId{0});
  variant.bound = bound_of_overlaps(variant.plan);
  return variant;
}

namespace {

IterationPlan ordered(IterationPlan plan, const OverlapDecisions& decisions) {
  switch (decisions.order) {
    case GradientOrder::scheduled: break;
    case GradientOrder::dgrads_first: return collective::dgrads_first(std::move(plan));
    case GradientOrder::wgrads_first:
      for (collective::StageWork& work : plan.stages)
        collective::put_wgrads_first(work, decisions.units);
  }
  return plan;
}

IterationPlan issued(IterationPlan plan, const OverlapDecisions& decisions) {
  if (plan.scenario->parallel.gradient_sync != GradientSync::zero3)
    return collective::eager(std::move(plan));
  if (plan.scenario->parallel.sharding.prefetch != decisions.ahead) {
    auto scenario = std::make_shared<Scenario>(*plan.scenario);
    scenario->parallel.sharding.prefetch = decisions.ahead;
    plan.scenario = std::move(scenario);
  }
  return collective::prefetched(std::move(plan), decisions.lanes);
}

}  // namespace

IterationPlan decided(const OverlapVariant& variant, const OverlapDecisions& decisions) {
  IterationPlan plan = variant.plan;
  plan = issued(ordered(std::move(plan), decisions), decisions);
  for (std::size_t c = 0; c < variant.classes.size() && c < decisions.partitions.size(); ++c) {
    if (decisions.partitions[c] == collective::Partition{}) continue;
    for (const collective::CommunicationRef& each : variant.classes[c].all) {
      collective::StageWork& work = plan.stages[each.stage];
      collective::partition_communication(plan, work, each.communication, decisions.partitions[c],
                                          variant.levels);
    }
  }
  return plan;
}

std::string decisions_text(const OverlapDecisions& decisions, const OverlapVariant& variant) {
  const Parallel& parallel = variant.plan.scenario->parallel;
  std::vector<std::string> parts;
  if (const auto& group = parallel.microbatch_group)
    parts.push_back(fmt::format("{} forward and {} backward microbatches together", group->forward,
                                group->backward));
  if (parallel.gradient_sync == GradientSync::zero3) {
    parts.push_back(parallel.sharding.unit_layers
                        ? fmt::format("units of {} layers", *parallel.sharding.unit_layers)
                        : "units of an operator");
    parts.push_back(decisions.ahead ? fmt::format("{} ahead", *decisions.ahead)
                                    : "ahead as memory allows");
    if (decisions.lanes == collective::ShardedLanes::one) parts.emplace_back("one lane");
  }
  if (decisions.order != GradientOrder::scheduled)
    parts.push_back(decisions.units == OverlapDecisions{}.units
                        ? to_string(decisions.order)
                        : fmt::format("{} in some units", to_string(decisions.order)));
  std::map<std::string, std::size_t> classes;
  for (const collective::Partition& each : decisions.partitions)
    if (each != collective::Partition{}) ++classes[collective::to_text(each)];
  for (const auto& [text, count] : classes)
    parts.push_back(fmt::format("{} of {} kinds {}", count, decisions.partitions.size(), text));
  return fmt::format("{}", fmt::join(parts, "; "));
}

namespace {

/// Operators that are cut with it: a chain of one is what pieces are anyway.
constexpr int kLongestChain = 3;

bool has_chain(const IterationPlan& plan, const CommunicationClass& own) {
  return std::ranges::any_of(own.all, [&](const collective::CommunicationRef& each) {
    const collective::StageWork& work = plan.stages[each.stage];
    const collective::Communication& communication = work.communications[each.communication];
    if (communication.kind != CollectiveKind::all_gather) return false;
    const auto user = collective::partner_of(plan, work, communication);
    return user &&
           collective::chain_from(plan, work, *user, kLongestChain, communication.traffic).size() >
               1;
  });
}

}  // namespace

std::vector<Partition> partition_options(const OverlapVariant& variant,
                                         const CommunicationClass& own) {
  const Scenario& scenario = *variant.plan.scenario;
  const collective::CommunicationRef& first = own.all.front();
  const collective::Communication& communication =
      variant.plan.stages[first.stage].communications[first.communication];
  std::vector<Partition> options{{}};
  const auto add = [&](const Partition& partition) {
    if (collective::applies_to(partition, communication, variant.levels))
      options.push_back(partition);
  };
  const bool is_of_chain = has_chain(variant.plan, own);
  for (int pieces = 1; pieces <= scenario.pieces.most; ++pieces) {
    for (const Grouping grouping : every<Grouping>())
      if (pieces > 1 || grouping != Grouping::flat) add({.grouping = grouping, .pieces = pieces});
    if (pieces > 1 && is_of_chain) add({.pieces = pieces, .chain = kLongestChain});
  }
  for (const Grouping grouping : {Grouping::far_first, Grouping::near_first})
    add({.grouping = grouping, .group_parts = grouping == Grouping::far_first ? 2 : 3});
  const bool is_sum = communication.kind == CollectiveKind::all_reduce;
  if (is_sum) add({.substitution = Substitution::scatter_and_gather});
  const auto group = collective::groups_of(scenario, first.stage, communication.members).front();
  const Result<std::vector<int>> levels = mesh_of_levels(group, scenario);
  if (!levels || levels->size() < 2) return options;
  Partition mesh;
  mesh.mesh.sizes = *levels;
  mesh.mesh.order = usual_order(CollectiveKind::reduce_scatter, static_cast<int>(levels->size()));
  mesh.mesh.algorithms.assign(levels->size(), plan::CollectiveAlgorithm::ring);
  for (const int pieces : {1, 4}) {
    mesh.shard_pieces = pieces;
    add(mesh);
    if (!is_sum) continue;
    mesh.substitution = Substitution::scatter_and_gather;
    add(mesh);
    mesh.substitution = Substitution::none;
  }
  return options;
}

Partition grouped_start(const std::vector<Partition>& options) {
  const auto found = std::ranges::find_if(options, [](const Partition& each) {
    return each.grouping != Grouping::flat && each.pieces == 1 && each.group_parts == 0;
  });
  if (found != options.end()) return *found;
  const auto mesh = std::ranges::find_if(options, [](const Partition& each) {
    return !each.mesh.sizes.empty() && each.shard_pieces > 1 &&
           each.substitution == Substitution::none;
  });
  return mesh == options.end() ? Partition{} : *mesh;
}

}  // namespace longhaul::planner
