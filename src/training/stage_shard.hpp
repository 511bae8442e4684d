#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "nn/layers/chunk.hpp"
#include "nn/layers/optimizer.hpp"

namespace longhaul::training {

/// The part of a stage that a rank's optimizer steps: all of it, or with ZeRO-1 the rank's shard.
struct ShardRange {
  std::size_t first = 0, count = 0;  ///< numbers of Chunk::all_weights()
};

/// A stage of the model on one rank: its weights (in two chunks where two copies of the model meet
/// on a device), what the stage's collectives take and bring, and the optimizer's state of what the
/// rank holds. Calls follow the blocks: see each.
class StageShard {
public:
  /// How the stage's gradients become the sum over all that hold it.
  enum class Sum : std::uint8_t { alone, all_reduce, zero1 };
  struct Group {
    Sum sum = Sum::alone;
    std::size_t members = 1, place = 0;
    bool steps = false;  ///< its collectives are messages (StepTensors)
  };
  StageShard(nn::TensorOps& math, nn::DeviceMemory& memory, StageId stage,
             std::vector<nn::Chunk*> chunks, const Group& group,
             const nn::OptimizerOptions& optimizer);

  [[nodiscard]] StageId stage() const { return stage_; }
  [[nodiscard]] const nn::Chunk& chunk() const { return *chunks_.front(); }
  [[nodiscard]] ShardRange held() const { return held_; }
  [[nodiscard]] Sum sum() const { return group_.sum; }
  [[nodiscard]] bool in_steps() const { return group_.steps; }

  /// Before the first block: puts the rank's shard of weights where the all-gather takes it.
  void begin_iteration();
  /// Before the first block that reads weights; nothing where they are in place.
  void place_weights();
  /// After the stage's last W or B here: the rank's part of the sum.
  void sum_own_gradients();

  [[nodiscard]] comm::Exchange weights_exchange();
  void weights_came() { weights_wait_ = true; }
  [[nodiscard]] comm::Exchange gradients_exchange();

  /// Where collectives that are messages work: all numbers, a shard for each member.
  [[nodiscard]] nn::ArrayView weights_in_steps() const { return gathered_.view(); }
  [[nodiscard]] nn::ArrayView gradients_in_steps() const {
    return brought_ ? brought_.view() : summed_.view();
  }
  /// After the last message of the iteration: the sum is in its place.
  void gradients_came();

  /// The sum, of what the rank holds.
  [[nodiscard]] nn::ArrayView gradient() const;
  [[nodiscard]] nn::ArrayView master() const;
  [[nodiscard]] nn::ArrayView mean() const { return optimizer_->mean(); }      ///< AdamW alone
  [[nodiscard]] nn::ArrayView square() const { return optimizer_->square(); }  ///< AdamW alone
  /// After the iteration. `step` counts from 1.
  void step(int step);
  /// Master weights were set: the weights of all chunks follow them.
  void weights_from_masters();
  /// For tests: a weight that this rank holds becomes another.
  void perturb();

private:
  [[nodiscard]] std::size_t count() const { return chunk().all_weights().count; }
  [[nodiscard]] std::size_t share() const;  ///< of a member, with ZeRO-1
  void copy_to_other_chunks();

  nn::TensorOps& math_;
  StageId stage_;
  std::vector<nn::Chunk*> chunks_;
  Group group_;
  ShardRange held_;
  std::optional<nn::Optimizer> optimizer_;  ///< of what is held
  nn::Buffer brought_, summed_;             ///< f32: to and from the sum of gradients
  nn::Buffer own_weights_, gathered_;       ///< ZeRO-1
  bool weights_wait_ = false;               ///< gathered, and not in place
};

}  // namespace longhaul::training
