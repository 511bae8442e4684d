#include <algorithm>
#include <utility>

#include "collective/iteration/lower_iteration.hpp"
#include "collective/overlap/pieces.hpp"
#include "collective/overlap/rewrites.hpp"
#include "schedule/block_operators.hpp"

namespace longhaul::collective {
namespace {

/// The matrix product of a communication, and the side on which it stands.
struct Partner {
  OperationId operation{};
  bool makes = false;  ///< what is moved
};

class InPieces {
public:
  InPieces(const IterationPlan& plan, StageWork& work, int pieces)
      : plan_{plan},
        work_{work},
        pieces_{pieces},
        ranges_{schedule::operators_of_chunks(*plan.schedule, *plan.scenario)} {}

  void run(DeviceId stage) {
    const auto positions = work_.positions();
    const auto by_position = [&](OperationId each) { return positions[each]; };
    std::vector<std::pair<CommunicationId, bool>> chosen;
    std::vector<OperationId> taken;
    for (const CommunicationId id : work_.issue) {
      const Communication& each = work_.communications[id];
      const bool makes = each.kind != CollectiveKind::all_gather;
      const std::vector<OperationId>& side = makes ? each.needs : each.needed_by;
      if (side.empty()) continue;
      const OperationId partner = makes ? *std::ranges::max_element(side, {}, by_position)
                                        : *std::ranges::min_element(side, {}, by_position);
      if (!is_product(partner) || std::ranges::find(taken, partner) != taken.end()) continue;
      taken.push_back(partner);
      chosen.emplace_back(id, makes);
    }
    for (const auto& [id, makes] : chosen) {
      const Members members = work_.communications[id].members;
      const auto ranks = groups_of(*plan_.scenario, stage, members).front().size();
      const int pieces = std::min(pieces_ > 0 ? pieces_ : static_cast<int>(ranks), kMostPieces);
      if (makes)
        cut_with_producer(plan_, work_, id, pieces);
      else
        cut_with_operation(plan_, work_, id, pieces);
    }
  }

private:
  static constexpr int kMostPieces = 255;

  [[nodiscard]] bool is_product(OperationId id) const {
    const Operation& own = work_.operations[id];
    if (own.place < 0) return false;
    const Operator& of = (*plan_.scenario->operators.all)[ranges_[own.chunk].first + at(own.place)];
    return of.kind == OperatorKind::matmul;
  }

  const IterationPlan& plan_;
  StageWork& work_;
  int pieces_;
  IndexedVector<ChunkId, schedule::OperatorRange> ranges_;
};

}  // namespace

IterationPlan in_pieces(IterationPlan plan, int pieces) {
  for (const DeviceId stage : plan.stages.ids()) {
    StageWork work = plan.stages[stage];
    InPieces{plan, work, pieces}.run(stage);
    plan.stages[stage] = std::move(work);
  }
  return serialized(std::move(plan));
}

}  // namespace longhaul::collective
