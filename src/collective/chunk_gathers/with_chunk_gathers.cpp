#include <algorithm>
#include <map>
#include <utility>

#include "collective/chunk_gathers/chunk_gathers.hpp"
#include "collective/iteration/communications.hpp"
#include "collective/iteration/iteration_memory.hpp"
#include "collective/iteration/iteration_of.hpp"

namespace longhaul::collective {
namespace {

/// Of one stage.
class GatheredChunks {
public:
  GatheredChunks(const Parallel& parallel, StageWork& work)
      : parallel_{parallel}, work_{work}, positions_{work.positions()} {
    for (const OperationId id : work.order) {
      const Operation& operation = work.operations[id];
      if (number(operation.microbatch) < 0) continue;
      if (blocks_.empty() || operation.block != last_block_) blocks_.emplace_back();
      last_block_ = operation.block;
      blocks_.back().push_back(id);
    }
    for (const WeightUnit& unit : work.units) {
      weights_[unit.chunk] += unit.weights;
      gradients_[unit.chunk] += unit.gradients;
    }
  }

  void run(const std::vector<ChunkGather>& gathers) {
    for (const ChunkGather& each : gathers) add_gather(each);
    for (const auto& [chunk, size] : gradients_)
      if (size > Bytes{}) add_scatter(chunk, size);
    for (const CommunicationId id : work_.communications.ids()) {
      Communication& each = work_.communications[id];
      if (!moments_.contains(id))
        moments_[id] = {earliest_after(each, positions_) + 1, each.input >= 0 ? 2 : 0};
      each.queue = each.kind == CollectiveKind::all_gather && each.traffic == Traffic::fsdp
                       ? kCountOf<Traffic>
                       : static_cast<int>(each.traffic);
    }
    std::ranges::stable_sort(work_.issue, {}, [&](CommunicationId id) { return moments_[id]; });
  }

private:
  void add_gather(const ChunkGather& own) {
    if (weights_[own.chunk] == Bytes{}) return;
    Communication gather{.traffic = Traffic::fsdp,
                         .kind = CollectiveKind::all_gather,
                         .members = Members::shard,
                         .size = weights_[own.chunk],
                         .chunk = own.chunk,
                         .holds = Holds::weights};
    for (std::size_t b = own.first; b <= own.last; ++b)
      for (const OperationId id : blocks_[b])
        if (work_.operations[id].chunk == own.chunk) gather.needed_by.push_back(id);
    if (own.issue > 0) gather.after = {blocks_[own.issue - 1].back()};
    const OperationId start = blocks_[own.issue].front();
    moments_[work_.add(std::move(gather))] = {positions_[start], 1};
  }

  /// Of all microbatches together, then over the copies.
  void add_scatter(ChunkId chunk, Bytes size) {
    const IndexedVector<OperationId, bool> makes = gradient_makers(work_);
    std::vector<OperationId> makers, steps;
    for (const OperationId id : work_.order) {
      const Operation& operation = work_.operations[id];
      if (operation.chunk != chunk) continue;
      if (number(operation.microbatch) < 0)
        steps.push_back(id);
      else if (makes[id])
        makers.push_back(id);
    }
    const bool has_copies = count_of(Members::copies, parallel_) > 1;
    const CommunicationId scatter =
        work_.add(Communication{.traffic = Traffic::fsdp,
                                .kind = CollectiveKind::reduce_scatter,
                                .members = Members::shard,
                                .size = size,
                                .chunk = chunk,
                                .holds = Holds::gradients,
                                .needs = makers,
                                .needed_by = has_copies ? std::vector<OperationId>{} : steps});
    if (!has_copies) return;
    work_.add(Communication{.traffic = Traffic::dp,
                            .kind = CollectiveKind::all_reduce,
                            .members = Members::copies,
                            .size = size,
                            .chunk = chunk,
                            .needs = makers,
                            .needed_by = steps,
                            .follows = {scatter}});
  }

  const Parallel& parallel_;
  StageWork& work_;
  IndexedVector<OperationId, std::uint32_t> positions_;
  std::vector<std::vector<OperationId>> blocks_;  ///< by position in the row
  std::uint32_t last_block_ = 0;
  std::map<ChunkId, Bytes> weights_, gradients_;
  std::map<CommunicationId, std::pair<std::int64_t, int>> moments_;
};

}  // namespace

Result<IterationPlan> with_chunk_gathers(const Schedule& schedule, const Scenario& scenario,
                                         const ChunkGathers& gathers, Arrangement arrangement) {
  Result<IterationPlan> made = iteration_of(schedule, scenario, arrangement);
  if (!made) return made;
  IterationPlan plan = *std::move(made);
  for (const DeviceId stage : plan.stages.ids()) {
    StageWork& work = plan.stages[stage];
    if (scenario.parallel.tensor > 1) add_tensor_communications(plan, stage, work);
    GatheredChunks{scenario.parallel, work}.run(gathers[stage]);
  }
  return plan;
}

}  // namespace longhaul::collective
