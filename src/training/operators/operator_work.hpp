#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "collective/iteration/lower_iteration.hpp"
#include "engine/device.hpp"
#include "engine/payloads/data_plane.hpp"
#include "training/operators/weight_bundles.hpp"
#include "training/step_tensors.hpp"
#include "training/tensors.hpp"

namespace longhaul::training {

/// The operators of one rank in an iteration with its collectives, and the numbers of these: real
/// tensor parallelism, sharded weights, replicas. An operation computes its part when it runs; a
/// collective takes what the rank brings when its first message there begins, and what it brought
/// is put in place when the first operation that needs it runs. What a communication moves is read
/// off the IterationPlan, whatever overlap ordered it.
///
/// Operations are run on a device's thread, the rest on the engine's.
class OperatorWork final : public engine::BlockWork {
public:
  /// `lowered` was made of `plan`; all outlive this. Throws Error as check_operators() does.
  /// `step_math` and its memory are for messages alone.
  OperatorWork(const collective::IterationPlan& plan, const collective::LoweredIteration& lowered,
               Rank self, nn::TensorOps& math, nn::DeviceMemory& memory, nn::TensorOps& step_math,
               nn::DeviceMemory& step_memory, const TrainingModel& model);

  void begin_iteration(int iteration);
  void run(OpId block) override;
  void ended(OpId /*block*/) override {}
  /// After the last op of the iteration: WeightBundles::gradients() is there.
  void end_iteration();
  /// This rank's part of the loss: that of all tensor ranks together is one of them where they
  /// compute the same tokens.
  [[nodiscard]] double loss();
  [[nodiscard]] WeightBundles& weights() { return *weights_; }
  [[nodiscard]] const TensorPlace& tensor_place() const { return place_; }

  // For the data plane.
  [[nodiscard]] engine::Payload make(OpId send);
  [[nodiscard]] engine::Payload room(OpId recv);
  void deliver(OpId recv, engine::Payload payload);
  /// The numbers of a message that this rank sends or receives.
  [[nodiscard]] nn::ArrayView view_of(OpId message, const engine::Payload& payload) const;
  /// The arithmetic of messages.
  [[nodiscard]] nn::TensorOps& step_math() const { return step_math_; }

private:
  using Communications = std::vector<CommunicationVector*>;

  [[nodiscard]] OperatorChunk& chunk(const collective::Operation& operation) {
    return *chunks_.at(operation.chunk);
  }
  [[nodiscard]] CommunicationVector& vector_of(OpId message);
  void make_chunks();
  void make_vectors(const collective::LoweredIteration& lowered);
  void begin(CommunicationVector& vector);
  void take(CommunicationVector& vector);
  void fill_activations(CommunicationVector& vector);
  void take_activations(const CommunicationVector& vector);
  void prepare(const collective::Operation& operation);
  void compute(collective::OperationId id);
  [[nodiscard]] nn::Buffer output_of(ChunkId of, MicrobatchId microbatch);
  [[nodiscard]] nn::Buffer handed_over(const TensorKey& key);
  [[nodiscard]] nn::MicrobatchText text_of(MicrobatchId microbatch) const;

  const collective::IterationPlan& plan_;
  const Plan& lowered_;
  const collective::StageWork& work_;
  Rank self_;
  std::uint32_t first_operation_;
  nn::TensorOps& math_;
  nn::DeviceMemory& memory_;
  nn::TensorOps& step_math_;
  TrainingModel model_;
  TensorPlace place_;
  int iteration_ = 0;
  OpId running_{};
  ChunksByOperators chunks_;
  VectorsById vectors_;
  std::map<std::size_t, CommunicationVector*> by_collective_;
  IndexedVector<collective::OperationId, Communications> awaited_;
  std::map<collective::OperationId, CommunicationVector*> sum_after_;  ///< between tensor ranks
  std::unique_ptr<WeightBundles> weights_;
  Tensors tensors_;
  StepTensors steps_;
  std::recursive_mutex mutex_;  ///< of vectors and what passes between chunks
};

}  // namespace longhaul::training
