#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "collective/iteration/communications.hpp"
#include "schedule/block_operators.hpp"

namespace longhaul::collective {
namespace {

/// The part that an operator plays where the layers are cut over tensor ranks.
enum class TensorRole : std::uint8_t { none, begins, ends };

TensorRole role_of(std::string_view name) {
  if (name == "qkv" || name == "gate_up" || name == "up") return TensorRole::begins;
  if (name == "output" || name == "down") return TensorRole::ends;
  return TensorRole::none;
}

/// How many messages of tensor ranks make the whole activation.
int parts_of_message(const Parallel& parallel) {
  return parallel.p2p == P2pKind::full ? 1 : parallel.tensor;
}

class TensorParallel {
public:
  TensorParallel(const IterationPlan& plan, DeviceId stage, StageWork& work)
      : sequence_{plan.scenario->parallel.sharding.sequence_parallel},
        size_{plan.scenario->costs.message[index(stage)] *
              parts_of_message(plan.scenario->parallel)},
        work_{work},
        all_{*plan.scenario->operators.all},
        ranges_{schedule::operators_of_chunks(*plan.schedule, *plan.scenario)} {}

  void run() {
    if (size_ == Bytes{}) return;
    for (const OperationId id : work_.order) {
      const Operation& operation = work_.operations[id];
      if (operation.place < 0) continue;
      if (operation.work == BlockKind::W)
        w_of_[{operation.chunk, operation.microbatch, operation.place}].push_back(id);
      else
        flow_[{operation.work, operation.chunk, operation.microbatch}].push_back(id);
    }
    for (const OperationId id : work_.operations.ids())
      for (const OperationId before : work_.operations[id].needs) users_[before].push_back(id);
    for (const auto& [block, operations] : flow_) add_block(operations);
    for (Communication& each : work_.communications)
      for (const OperationId before : each.needs)
        if (const auto sum = sum_of_.find(before);
            sum != sum_of_.end() && each.kind == CollectiveKind::all_gather)
          each.follows.push_back(sum->second);
  }

private:
  using Block = std::tuple<BlockKind, ChunkId, MicrobatchId>;
  using Place = std::tuple<ChunkId, MicrobatchId, std::int32_t>;

  [[nodiscard]] TensorRole role(const Operation& operation) const {
    return role_of(all_[ranges_[operation.chunk].first + at(operation.place)].name);
  }

  /// Of one block without its wgrads: each hands over to the next.
  void add_block(const std::vector<OperationId>& operations) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = work_.operations[operations[i]];
      const bool forward = operation.work != BlockKind::D;
      const TensorRole own = role(operation);
      if (own == TensorRole::none) continue;
      const bool opens = (own == TensorRole::begins) == forward;
      if (opens && sequence_) add_gather(operations, i);
      if (!opens) add_sum(operations, i);
      if (!forward && own == TensorRole::begins && sequence_) add_second_gather(operations[i]);
    }
  }

  [[nodiscard]] Communication of(OperationId id, CollectiveKind kind) const {
    const Operation& operation = work_.operations[id];
    return {.traffic = Traffic::tp,
            .kind = kind,
            .members = Members::tensor,
            .size = size_,
            .chunk = operation.chunk,
            .microbatch = operation.microbatch};
  }

  /// Of a forward's input, or of the gradient of an output, which the wgrad takes too.
  void add_gather(const std::vector<OperationId>& operations, std::size_t i) {
    Communication gather = of(operations[i], CollectiveKind::all_gather);
    if (i > 0) {
      gather.needs.push_back(operations[i - 1]);
    } else {
      gather.needs = work_.operations[operations[i]].needs;
      gather.input = work_.operations[operations[i]].input;
    }
    gather.needed_by.push_back(operations[i]);
    if (work_.operations[operations[i]].work == BlockKind::D) need_in_wgrad(operations[i], gather);
    work_.add(std::move(gather));
  }

  /// Of an output, or of the gradient of an input.
  void add_sum(const std::vector<OperationId>& operations, std::size_t i) {
    Communication sum =
        of(operations[i], sequence_ ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce);
    sum.needs.push_back(operations[i]);
    if (i + 1 < operations.size()) {
      sum.needed_by.push_back(operations[i + 1]);
      work_.add(std::move(sum));
      return;
    }
    sum.needed_by = users_[operations[i]];
    sum.completes = static_cast<std::int32_t>(work_.operations[operations[i]].block);
    sum_of_.emplace(operations[i], work_.add(std::move(sum)));
  }

  /// The forward keeps its part of the input alone.
  void add_second_gather(OperationId dgrad) {
    Communication gather = of(dgrad, CollectiveKind::all_gather);
    need_in_wgrad(dgrad, gather);
    gather.at_start_of = dgrad;
    if (!gather.needed_by.empty()) work_.add(std::move(gather));
  }

  void need_in_wgrad(OperationId dgrad, Communication& gather) const {
    const Operation& operation = work_.operations[dgrad];
    const auto found = w_of_.find({operation.chunk, operation.microbatch, operation.place});
    if (found == w_of_.end()) return;
    gather.needed_by.insert(gather.needed_by.end(), found->second.begin(), found->second.end());
  }

  bool sequence_;
  Bytes size_;
  StageWork& work_;
  const std::vector<Operator>& all_;
  IndexedVector<ChunkId, schedule::OperatorRange> ranges_;
  std::map<Block, std::vector<OperationId>> flow_;
  std::map<Place, std::vector<OperationId>> w_of_;
  std::map<OperationId, std::vector<OperationId>> users_;
  std::map<OperationId, CommunicationId>
      sum_of_;  ///< of the last operation of a block: of its result
};

}  // namespace

void add_tensor_communications(const IterationPlan& plan, DeviceId stage, StageWork& work) {
  TensorParallel{plan, stage, work}.run();
}

}  // namespace longhaul::collective
