#include "collective/partition/workload_chain.hpp"

#include <algorithm>
#include <utility>

#include "schedule/block_operators.hpp"

namespace longhaul::collective {
namespace {

using Dimension = WorkloadDimension;

/// The one operation of the same block that takes its result next, where nothing else joins in.
std::optional<OperationId> next_in_chain(const StageWork& work, OperationId id) {
  const auto place = std::ranges::find(work.order, id);
  if (place == work.order.end() || place + 1 == work.order.end()) return std::nullopt;
  const OperationId next = *(place + 1);
  const Operation& own = work.operations[id];
  const Operation& operation = work.operations[next];
  if (operation.block != own.block || operation.work != own.work || operation.pieces > 1)
    return std::nullopt;
  if (std::ranges::find(operation.needs, id) == operation.needs.end()) return std::nullopt;
  const bool waits = std::ranges::any_of(work.communications, [&](const Communication& each) {
    return !each.needed_by.empty() && each.needed_by.front() == next;
  });
  if (waits) return std::nullopt;
  return next;
}

}  // namespace

std::vector<WorkloadCut> workload_cuts(const Operator& of, BlockKind work) {
  using Part = WorkloadPart;
  using Type = DimensionType;
  const WorkloadCut tokens{Dimension::a, Type::other, Part::rows, Part::rows};
  if (of.kind != OperatorKind::matmul) {
    const bool joins_rows = of.kind != OperatorKind::elementwise || of.name == "swiglu";
    return {tokens,
            {Dimension::b, joins_rows ? Type::none : Type::other, Part::columns, Part::columns}};
  }
  const WorkloadCut summed{Dimension::b, Type::contraction, Part::columns, Part::summand};
  const WorkloadCut whole{Dimension::c, Type::other, Part::whole, Part::columns};
  switch (work) {
    case BlockKind::D:
      return {tokens,
              {Dimension::b, whole.type, whole.takes, whole.makes},
              {Dimension::c, summed.type, summed.takes, summed.makes}};
    case BlockKind::W:
      return {{Dimension::a, Type::contraction, Part::rows, Part::summand},
              {Dimension::b, Type::other, Part::whole, Part::rows},
              {Dimension::c, Type::other, Part::whole, Part::columns}};
    default: return {tokens, summed, whole};
  }
}

bool agree(const WorkloadCut& before, const WorkloadCut& next) {
  return before.makes == next.takes &&
         (next.takes == WorkloadPart::rows || next.takes == WorkloadPart::columns);
}

const Operator* operator_of(const IterationPlan& plan, const Operation& operation) {
  if (operation.place < 0) return nullptr;
  const auto ranges = schedule::operators_of_chunks(*plan.schedule, *plan.scenario);
  return &(*plan.scenario->operators.all)[ranges[operation.chunk].first + at(operation.place)];
}

std::vector<WorkloadChain> workload_chains(const IterationPlan& plan, const StageWork& work,
                                           OperationId first, Duration enough) {
  std::vector<WorkloadChain> chains;
  const auto cuts_of = [&](OperationId id) {
    const Operator* const own = operator_of(plan, work.operations[id]);
    return own == nullptr ? std::vector<WorkloadCut>{}
                          : workload_cuts(*own, work.operations[id].work);
  };
  for (const WorkloadCut& cut : cuts_of(first)) {
    if (cut.type == DimensionType::none) continue;
    WorkloadChain chain{cut, {first}};
    Duration cost = work.operations[first].duration;
    for (WorkloadCut latest = cut; cost < enough && latest.type == DimensionType::other;) {
      const std::optional<OperationId> next = next_in_chain(work, chain.operations.back());
      if (!next) break;
      const auto cuts = cuts_of(*next);
      const auto fits = std::ranges::find_if(cuts, [&](const WorkloadCut& each) {
        return each.type == DimensionType::other && agree(latest, each);
      });
      if (fits == cuts.end()) break;
      latest = *fits;
      chain.operations.push_back(*next);
      cost += work.operations[*next].duration;
    }
    chains.push_back(std::move(chain));
  }
  return chains;
}

std::optional<OperationId> partner_of(const IterationPlan& plan, const StageWork& work,
                                      const Communication& communication) {
  const bool brings = communication.kind == CollectiveKind::all_gather;
  const std::vector<OperationId>& side = brings ? communication.needed_by : communication.needs;
  if (side.empty()) return std::nullopt;
  const auto positions = work.positions();
  const auto rank = [&](OperationId id) {
    const Operator* const of = operator_of(plan, work.operations[id]);
    const bool is_product = of != nullptr && of->kind == OperatorKind::matmul;
    const auto place = std::int64_t{positions[id]};
    return std::pair{!is_product, brings ? place : -place};
  };
  return *std::ranges::min_element(side, {}, rank);
}

bool moves_dimension(Traffic traffic, WorkloadDimension dimension) {
  return dimension != (traffic == Traffic::tp ? Dimension::c : Dimension::a);
}

std::vector<OperationId> chain_from(const IterationPlan& plan, const StageWork& work,
                                    OperationId first, int most, Traffic traffic) {
  std::vector<OperationId> longest{first};
  if (most < 2) return longest;
  for (WorkloadChain& chain : workload_chains(plan, work, first, Duration::max()))
    if (chain.first.type == DimensionType::other &&
        moves_dimension(traffic, chain.first.dimension) && chain.operations.size() > longest.size())
      longest = std::move(chain.operations);
  if (longest.size() > at(most)) longest.resize(at(most));
  return longest;
}

}  // namespace longhaul::collective
