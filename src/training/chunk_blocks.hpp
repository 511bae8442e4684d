#pragma once

#include <map>
#include <memory>
#include <set>

#include "nn/layers/chunk.hpp"
#include "nn/layers/optimizer.hpp"
#include "nn/layers/text.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "training/tensors.hpp"

namespace longhaul::training {

/// The tensors and operations of real blocks.
struct TrainingModel {
  nn::ModelShape shape;
  std::uint64_t seed = 1;  ///< of the first weights
  nn::OptimizerOptions optimizer;
  nn::TextSource text;
  double tokens = 0;  ///< of an iteration, of all replicas; 0: all have as many as this one
};

/// The chunks of one rank, and the blocks of a plan on them with the tensors between.
class ChunkBlocks {
public:
  /// `plan` was lowered from `schedule`; all outlive this. Losses are divided by the tokens of
  /// an iteration. Throws Error where a chunk would be empty
  /// and where memory does not hold the weights.
  ChunkBlocks(const Plan& plan, const Schedule& schedule, const Scenario& scenario, Rank self,
              nn::TensorOps& math, nn::DeviceMemory& memory, TrainingModel model);

  using Chunks = std::map<ChunkId, std::unique_ptr<nn::Chunk>>;
  [[nodiscard]] const Chunks& chunks() const { return chunks_; }
  [[nodiscard]] Tensors& tensors() { return tensors_; }
  [[nodiscard]] const TrainingModel& model() const { return model_; }

  /// Sequences of this rank's microbatches from now on, and `tokens` of an iteration of all
  /// replicas. Of a rank that has all layers; while no microbatch is under way.
  void set_batch(int sequences, double tokens);
  /// Gradients and losses are zero. While no block runs.
  void begin_iteration();
  /// The block's calls, with the text of `iteration`.
  void run(OpId block, int iteration);
  /// This rank's part of the iteration's loss; waits for the device.
  [[nodiscard]] double loss();

private:
  [[nodiscard]] nn::BlockPart part_of(const Block& block) const;
  [[nodiscard]] nn::Buffer forward(OpId id, const Block& block, int iteration);
  [[nodiscard]] nn::Buffer backward(OpId id, const Block& block);

  const Plan& plan_;
  const Schedule& schedule_;
  Rank self_;
  TrainingModel model_;
  Tensors tensors_;
  Chunks chunks_;
  std::set<ChunkId> mirrored_;  ///< the last part comes first backward
};

}  // namespace longhaul::training
