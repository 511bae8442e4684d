#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "collective/iteration/iteration_of.hpp"
#include "collective/iteration/weight_units.hpp"
#include "schedule/block_operators.hpp"

namespace longhaul::collective {
namespace {

/// Walks one compute lane, block by block.
class StageOperations {
public:
  StageOperations(const IterationPlan& plan, DeviceId stage)
      : plan_{*plan.base},
        schedule_{*plan.schedule},
        all_{*plan.scenario->operators.all},
        ranges_{schedule::operators_of_chunks(*plan.schedule, *plan.scenario)},
        units_{weight_units(plan, stage)},
        lane_{compute_lane(*plan.base, plan.scenario->rank(ReplicaId{0}, stage))} {
    work_.units = units_.units;
  }

  [[nodiscard]] StageWork run() {
    for (std::uint32_t first = 0; first < lane_.count;) {
      std::uint32_t end = first + 1;
      while (end < lane_.count && same_block(op_at(first), op_at(end))) ++end;
      add_block(first, end);
      first = end;
    }
    return std::move(work_);
  }

private:
  using Key = std::tuple<BlockKind, ChunkId, MicrobatchId, std::int32_t>;  ///< with the place

  [[nodiscard]] const Op& op_at(std::uint32_t position) const {
    return plan_.ops[index(lane_.first) + position];
  }
  [[nodiscard]] static bool same_block(const Op& a, const Op& b) {
    return !is_optimizer_step(a) && !is_optimizer_step(b) && a.block() == b.block();
  }
  [[nodiscard]] std::span<const Operator> operators_of(ChunkId chunk) const {
    return std::span{all_}.subspan(ranges_[chunk].first, ranges_[chunk].count);
  }

  void add_block(std::uint32_t first, std::uint32_t end) {
    const Op& op = op_at(first);
    std::vector<schedule::BlockOperator> listed;
    if (!is_optimizer_step(op) && op.match != 0)
      listed = schedule::block_operators(operators_of(op.chunk), op.block_kind);
    for (std::uint32_t position = first; position < end; ++position) {
      Operation operation;
      operation.position = position;
      operation.block = first;
      operation.chunk = op.chunk;
      operation.microbatch = op.microbatch;
      operation.duration = op_at(position).duration;
      operation.work = op.block_kind == BlockKind::B ? BlockKind::D : op.block_kind;
      if (position - first < listed.size()) take_operator(operation, listed[position - first]);
      add_needs(operation, first, op);
      const OperationId id = work_.add(operation);
      work_.order.push_back(id);
      by_place_.insert_or_assign(
          Key{operation.work, operation.chunk, operation.microbatch, operation.place}, id);
      last_of_.insert_or_assign(Key{operation.work, operation.chunk, operation.microbatch, -1}, id);
    }
    blocks_.try_emplace({op.block_kind, op.chunk, op.microbatch}, first);
  }

  void take_operator(Operation& operation, const schedule::BlockOperator& listed) const {
    operation.work = listed.work;
    operation.place = listed.place;
    const Operator& own = operators_of(operation.chunk)[at(listed.place)];
    operation.has_weights = own.weights > Bytes{};
    operation.unit = units_.unit_of[operation.chunk][at(listed.place)];
  }

  [[nodiscard]] std::optional<OperationId> found(const std::map<Key, OperationId>& in,
                                                 BlockKind work, const Operation& operation,
                                                 ChunkId chunk, std::int32_t place) const {
    const auto known = in.find(Key{work, chunk, operation.microbatch, place});
    if (known == in.end()) return std::nullopt;
    return known->second;
  }

  void add_needs(Operation& operation, std::uint32_t first, const Op& block) const {
    if (is_optimizer_step(block)) return;
    const bool forward = operation.work == BlockKind::F || operation.work == BlockKind::R;
    const auto need = [&](std::optional<OperationId> before) {
      if (before) operation.needs.push_back(*before);
    };
    if (!forward) {
      const auto again =
          found(by_place_, BlockKind::R, operation, operation.chunk, operation.place);
      need(again ? again
                 : found(by_place_, BlockKind::F, operation, operation.chunk, operation.place));
      return add_gradient(operation, first);
    }
    if (const auto before = found(last_of_, operation.work, operation, operation.chunk, -1))
      return need(before);
    if (operation.work == BlockKind::R)
      return need(found(last_of_, BlockKind::F, operation, operation.chunk, -1));
    if (schedule_.is_first(operation.chunk)) return;
    need(found(last_of_, BlockKind::F, operation, ChunkId{operation.chunk - 1}, -1));
    operation.input = static_cast<std::int32_t>(first);
  }

  /// The gradient of the operator's output.
  void add_gradient(Operation& operation, std::uint32_t first) const {
    const auto places = static_cast<std::int32_t>(ranges_[operation.chunk].count);
    for (std::int32_t place = operation.place + 1; operation.place >= 0 && place < places;
         ++place) {
      if (const auto later = found(by_place_, BlockKind::D, operation, operation.chunk, place)) {
        operation.needs.push_back(*later);
        return;
      }
    }
    const bool last = schedule_.is_last(operation.chunk);
    const auto handed =
        last ? found(last_of_, BlockKind::F, operation, operation.chunk, -1)
             : found(last_of_, BlockKind::D, operation, ChunkId{operation.chunk + 1}, -1);
    if (handed) operation.needs.push_back(*handed);
    if (last) return;
    // A W of its own takes what came with its D.
    const auto d = blocks_.find({BlockKind::D, operation.chunk, operation.microbatch});
    operation.input = static_cast<std::int32_t>(d == blocks_.end() ? first : d->second);
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const std::vector<Operator>& all_;
  IndexedVector<ChunkId, schedule::OperatorRange> ranges_;
  UnitsOfStage units_;
  const Lane& lane_;
  StageWork work_;
  std::map<Key, OperationId> by_place_, last_of_;
  std::map<std::tuple<BlockKind, ChunkId, MicrobatchId>, std::uint32_t> blocks_;
};

}  // namespace

const Lane& compute_lane(const Plan& plan, Rank rank) {
  const auto found = std::ranges::lower_bound(plan.lanes, rank, {}, &Lane::rank);
  LONGHAUL_ASSERT(found != plan.lanes.end() && found->kind == OpKind::compute,
                  "rank {} of {} has no compute lane", number(rank), plan.schedule);
  return *found;
}

StageWork operations_of_stage(const IterationPlan& plan, DeviceId stage) {
  return StageOperations{plan, stage}.run();
}

}  // namespace longhaul::collective
