#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/device.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "training/chunk_blocks.hpp"
#include "training/stage_shard.hpp"

namespace longhaul::training {

/// The real work of one rank for one plan: its chunks, the tensors between its blocks, what its
/// collectives sum, its optimizer. Blocks run through run(); the messages and collectives of its
/// TensorDataPlane read and fill the tensors.
class LayerWork final : public engine::BlockWork {
public:
  /// `plan` was lowered from `schedule`; all outlive this. Throws Error where a chunk would be
  /// empty, or replicas would train apart, and where memory does not hold the weights.
  LayerWork(const Plan& plan, const Schedule& schedule, const Scenario& scenario, Rank self,
            nn::TensorOps& math, nn::DeviceMemory& memory, TrainingModel model);

  /// Gradients are zero and weights ready to be gathered. While no block runs.
  void begin_iteration(int iteration);
  void run(OpId block) override;
  void ended(OpId block) override { tensors().settle(block); }
  /// After the last op of the iteration: everything is in place for the optimizer.
  void end_iteration();

  [[nodiscard]] Tensors& tensors() { return blocks_.tensors(); }
  /// The stage of a collective of this rank, which is one op.
  [[nodiscard]] StageShard& stage_of(OpId collective);
  [[nodiscard]] StageShard& stage_of(ChunkId chunk);
  [[nodiscard]] std::vector<StageShard>& stages() { return stages_; }
  [[nodiscard]] nn::TensorOps& math() { return math_; }
  [[nodiscard]] const TrainingModel& model() const { return blocks_.model(); }
  /// This rank's part of the iteration's loss; waits for the device.
  [[nodiscard]] double loss() { return blocks_.loss(); }
  /// Bytes that a block of this rank took (above 0) or gave back, in the last iteration: what is
  /// kept for other blocks; tensors between two blocks are not in it.
  [[nodiscard]] const std::vector<std::int64_t>& block_bytes() const { return block_bytes_; }
  [[nodiscard]] OpRange ops() const { return ops_; }

private:
  void make_stages();
  [[nodiscard]] StageShard::Group group_of(StageId stage) const;
  void follow_collectives();
  void follow_steps();
  [[nodiscard]] std::size_t local(OpId id) const { return index(id) - ops_.first; }

  const Plan& plan_;
  const Schedule& schedule_;
  Rank self_;
  nn::TensorOps& math_;
  nn::DeviceMemory& memory_;
  OpRange ops_;
  ChunkBlocks blocks_;
  int iteration_ = 0;
  std::vector<StageShard> stages_;  ///< ascending
  /// By block: the stages whose weights it waits for, and whose last gradients it makes.
  std::unordered_map<OpId, std::vector<StageShard*>> waits_for_, completes_;
  std::vector<StageShard*> completed_before_;  ///< reduced here, and no block adds to them
  std::vector<std::int64_t> block_bytes_;      ///< of this rank's ops
};

}  // namespace longhaul::training
