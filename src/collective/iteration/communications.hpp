#pragma once

#include <vector>

#include "base/result.hpp"
#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// Adds the collectives of the iteration that `parallel` of its scenario asks for: what they move,
/// what they need and who needs it. When they run an overlap decides; without one each begins as
/// soon as it can. Refused for estimates of them, which hold nothing.
[[nodiscard]] Result<IterationPlan> with_communications(IterationPlan plan);

// Its parts, of one stage.
/// All-reduces of the outputs of attention and MLP and of their inputs' gradients; with sequence
/// parallelism gathers before and scatters after them, and in the backward a second gather of the
/// inputs for the wgrads. Known by the operators' names: "qkv" and "gate_up" (or "up") begin a part
/// of a layer, "output" and "down" end it. The vector is what crosses a stage's boundary, of all
/// tensor ranks together.
void add_tensor_communications(const IterationPlan& plan, DeviceId stage, StageWork& work);
/// Gathers of units and scatters of their gradients (ZeRO-3), sums of shards over the copies.
void add_sharded_communications(const IterationPlan& plan, StageWork& work);
/// Sums of gradients that every replica has whole: all-reduces, or ZeRO-1's and 2's scatters and
/// gathers of weights.
void add_replica_communications(const IterationPlan& plan, DeviceId stage, StageWork& work);

/// Consecutive operations in the order of the compute lane that need the weights of one unit, in
/// one block.
struct UnitUse {
  std::int32_t unit = -1;
  BlockKind work = BlockKind::F;  ///< F, R or D
  MicrobatchId microbatch;
  std::vector<OperationId> operations;
};
/// In the order in which the stage uses its units.
[[nodiscard]] std::vector<UnitUse> unit_uses(const StageWork& work);

/// By OperationId: does it make gradients of weights? A W does, and the D of an operator that has
/// weights and no W, as of a normalization.
[[nodiscard]] IndexedVector<OperationId, bool> gradient_makers(const StageWork& work);

/// The place in the order of operations after which a communication can begin at the earliest, as
/// far as the order tells; -1: from the start. One that waits for a message of another stage begins
/// with the first operation that needs it: the message may come at any time before.
[[nodiscard]] std::int64_t earliest_after(
    const Communication& communication, const IndexedVector<OperationId, std::uint32_t>& positions);

/// How many ranks take part in a communication of a stage.
[[nodiscard]] int count_of(Members members, const Parallel& parallel);

}  // namespace longhaul::collective
