#include <map>
#include <utility>

#include "collective/iteration/communications.hpp"

namespace longhaul::collective {
namespace {

class Sharded {
public:
  Sharded(const Parallel& parallel, StageWork& work)
      : parallel_{parallel}, work_{work}, makes_gradients_{gradient_makers(work)} {}

  void run() {
    if (parallel_.shard > 1) {
      add_gathers();
      add_scatters();
    }
    if (count_of(Members::copies, parallel_) > 1) add_sums();
    for (const OperationId id : work_.order) {
      const Operation& operation = work_.operations[id];
      if (number(operation.microbatch) >= 0) continue;
      for (const CommunicationId gradients : summed_[operation.chunk])
        work_.communications[gradients].needed_by.push_back(id);
    }
  }

private:
  /// Is what the use before gathered still there?
  [[nodiscard]] bool is_kept(const std::vector<UnitUse>& uses, std::size_t use) const {
    if (parallel_.sharding.regather == Regather::once) return gather_of_.contains(uses[use].unit);
    if (parallel_.sharding.regather == Regather::always || use == 0) return false;
    const UnitUse& before = uses[use - 1];
    return before.unit == uses[use].unit && before.work != BlockKind::D;
  }

  void add_gathers() {
    const std::vector<UnitUse> uses = unit_uses(work_);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const WeightUnit& unit = work_.units[at(uses[i].unit)];
      if (unit.weights == Bytes{}) continue;
      if (!is_kept(uses, i)) {
        Communication gather{.traffic = Traffic::fsdp,
                             .kind = CollectiveKind::all_gather,
                             .members = Members::shard,
                             .size = unit.weights,
                             .chunk = unit.chunk,
                             .microbatch = uses[i].microbatch,
                             .unit = uses[i].unit,
                             .holds = Holds::weights};
        gather_of_.insert_or_assign(uses[i].unit, work_.add(std::move(gather)));
      }
      std::vector<OperationId>& waiting =
          work_.communications[gather_of_.at(uses[i].unit)].needed_by;
      waiting.insert(waiting.end(), uses[i].operations.begin(), uses[i].operations.end());
    }
  }

  void add_scatters() {
    std::map<std::pair<std::int32_t, MicrobatchId>, CommunicationId> known;
    for (const OperationId id : work_.order) {
      const Operation& operation = work_.operations[id];
      if (!makes_gradients_[id] || operation.unit < 0 || !operation.has_weights) continue;
      const WeightUnit& unit = work_.units[at(operation.unit)];
      if (unit.gradients == Bytes{}) continue;
      const auto [scatter, is_new] =
          known.try_emplace({operation.unit, operation.microbatch}, CommunicationId{});
      if (is_new) {
        scatter->second = work_.add(Communication{.traffic = Traffic::fsdp,
                                                  .kind = CollectiveKind::reduce_scatter,
                                                  .members = Members::shard,
                                                  .size = unit.gradients,
                                                  .chunk = unit.chunk,
                                                  .microbatch = operation.microbatch,
                                                  .unit = operation.unit,
                                                  .holds = Holds::gradients});
        summed_[unit.chunk].push_back(scatter->second);
      }
      work_.communications[scatter->second].needs.push_back(id);
    }
  }

  /// Of each chunk's shards, when all of its gradients are scattered.
  void add_sums() {
    std::map<ChunkId, Bytes> gradients;
    for (const WeightUnit& unit : work_.units) gradients[unit.chunk] += unit.gradients;
    for (const auto& [chunk, size] : gradients) {
      if (size == Bytes{}) continue;
      Communication sum{.traffic = Traffic::dp,
                        .kind = CollectiveKind::all_reduce,
                        .members = Members::copies,
                        .size = size,
                        .chunk = chunk,
                        .follows = summed_[chunk]};
      for (const OperationId id : work_.order) {
        const Operation& operation = work_.operations[id];
        if (operation.chunk == chunk && makes_gradients_[id] && number(operation.microbatch) >= 0)
          sum.needs.push_back(id);
      }
      summed_[chunk] = {work_.add(std::move(sum))};
    }
  }

  const Parallel& parallel_;
  StageWork& work_;
  IndexedVector<OperationId, bool> makes_gradients_;
  std::map<std::int32_t, CommunicationId> gather_of_;       ///< by unit: the last so far
  std::map<ChunkId, std::vector<CommunicationId>> summed_;  ///< what the optimizer waits for
};

}  // namespace

void add_sharded_communications(const IterationPlan& plan, StageWork& work) {
  Sharded{plan.scenario->parallel, work}.run();
}

}  // namespace longhaul::collective
