#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "nn/layers/optimizer.hpp"
#include "training/layer_work.hpp"
#include "training/operators/communication_vectors.hpp"
#include "training/parameter_map.hpp"

namespace longhaul::training {

/// Weights that are gathered and whose gradients are scattered together, and the part of them that
/// the rank holds and steps: all, or its shard.
struct WeightBundle {
  ChunkId chunk{};
  std::vector<int> places;
  std::size_t count = 0;  ///< numbers of all places
  ShardRange held;        ///< of these
  std::size_t first = 0;  ///< of what is held, among all that the rank holds
};

using ChunksByOperators = std::map<ChunkId, std::unique_ptr<OperatorChunk>>;
using VectorsById = std::map<collective::CommunicationId, CommunicationVector>;

/// Weights and gradients of a rank: what it holds of them, what its communications bring and take,
/// and the optimizer. Gathered weights are there from the gather on; before, and in each new
/// iteration, there are none (NaN).
class WeightBundles {
public:
  /// All outlive this; takes memory for vectors of weights and gradients.
  WeightBundles(const collective::StageWork& work, ChunksByOperators& chunks, VectorsById& vectors,
                nn::TensorOps& math, nn::DeviceMemory& memory, const TrainingModel& model);

  void begin_iteration();
  /// Where an operation adds the gradients of its operator's weights.
  [[nodiscard]] nn::ArrayView gradient_of(collective::OperationId id);
  /// Fills in what the rank brings, by the arithmetic of the collectives.
  void fill(CommunicationVector& vector, nn::TensorOps& math) const;
  /// Puts gathered weights where operators find them, and where a second gather begins, which is
  /// `math`'s.
  void take(const CommunicationVector& vector, nn::TensorOps& math);
  /// After the last message: sums up what is held.
  void end_iteration();
  /// `step` counts from 1.
  void step(int step);
  /// Makes one of the weights that it holds another: a fault, on purpose.
  void perturb();

  /// What is held, as numbers of the whole model (nn::Chunk::all_weights()).
  [[nodiscard]] const std::vector<ShardRange>& held() const { return held_; }
  /// The tensors of which it holds anything, among the numbers of the whole model.
  [[nodiscard]] const std::vector<ParameterExtent>& parameters() const { return parameters_; }
  [[nodiscard]] nn::ArrayView gradients() const { return gradients_.view(); }
  [[nodiscard]] nn::ArrayView masters() const { return masters_.view(); }
  /// Stretches of gradients() of weights that all tensor ranks hold. With sequence parallelism each
  /// has those of its tokens, and they are to be summed.
  [[nodiscard]] const std::vector<ShardRange>& whole_on_tensor_ranks() const { return whole_; }

private:
  struct Source {
    const CommunicationVector* from;  ///< nullptr: `local`
    nn::ArrayView local;
    std::size_t first, to, count;  ///< of the vector; of what is held of the bundle
  };
  [[nodiscard]] std::size_t count_of(ChunkId chunk, const std::vector<int>& places) const;
  void make_bundles();
  void add_bundle(ChunkId chunk, std::vector<int> places, int members, int own);
  void take_memory();
  void find_sources();
  void add_sources(const WeightBundle& bundle, const CommunicationVector& vector,
                   std::vector<Source>& to) const;
  void set_masters(const TrainingModel& model);
  void note_held(const WeightBundle& bundle, const std::map<std::string, std::size_t>& firsts);
  [[nodiscard]] bool is_scattered(const CommunicationVector& vector) const;
  [[nodiscard]] const CommunicationVector& final_of(const CommunicationVector& vector) const;
  static void sum(nn::TensorOps& math, const std::vector<Source>& sources, nn::ArrayView to);
  void place_weights(ChunkId chunk, const std::vector<int>& places, nn::ArrayView numbers);
  [[nodiscard]] ChunkId chunk_of(const CommunicationVector& vector) const {
    return work_.communications[vector.id].chunk;
  }

  const collective::StageWork& work_;
  ChunksByOperators& chunks_;
  VectorsById& vectors_;
  nn::TensorOps& math_;
  nn::DeviceMemory& memory_;
  std::vector<WeightBundle> bundles_;  ///< by chunk
  /// By bundle: terms of the gradient before shards are summed over copies, and in the end.
  std::vector<std::vector<Source>> terms_, final_terms_;
  std::map<std::pair<ChunkId, int>, nn::Buffer> local_;  ///< gradients that no one else adds to
  std::map<collective::OperationId, nn::ArrayView> gradient_of_;
  nn::Buffer masters_, gradients_;
  std::vector<ShardRange> held_, whole_;
  std::vector<ParameterExtent> parameters_;
  std::optional<nn::Optimizer> optimizer_;
};

}  // namespace longhaul::training
