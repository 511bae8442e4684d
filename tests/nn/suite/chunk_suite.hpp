#pragma once

#include <map>
#include <string>

#include "chunk_pipeline.hpp"
#include "naive_model.hpp"
#include "nn/layers/chunk.hpp"
#include "tensor_ops_suite.hpp"

/// Layers and chunks on any TensorOps; instantiated as TensorOpsSuite is.
namespace longhaul::nn {

/// Small and odd, with grouped heads and two sequences.
[[nodiscard]] ModelShape tiny_model(int layers);

class ChunkSuite : public ::testing::TestWithParam<TensorOpsUnderTest> {
protected:
  void SetUp() override;

  [[nodiscard]] TensorOps& math() { return *math_; }
  [[nodiscard]] DeviceMemory& memory() { return *memory_; }
  [[nodiscard]] std::unique_ptr<Chunk> chunk(const ModelShape& shape, LayerRange layers,
                                             Recompute recompute = Recompute::off,
                                             std::uint64_t seed = 7);
  /// The chunk of all layers.
  [[nodiscard]] std::unique_ptr<Chunk> whole(const ModelShape& shape,
                                             Recompute recompute = Recompute::off);
  /// Larger weights, and norms that are not all 1, so that every term of a gradient shows.
  void spread_weights(Chunk& chunk);
  [[nodiscard]] naive::Weights weights(const Chunk& chunk);
  [[nodiscard]] std::map<std::string, naive::Numbers> gradients(const Chunk& chunk);
  [[nodiscard]] Buffer random(std::size_t count, std::uint64_t seed);
  [[nodiscard]] naive::Numbers read(ArrayView view);
  /// Chunks of so many layers each; every block in `parts`.
  [[nodiscard]] Pipeline pipeline(const ModelShape& shape, const std::vector<int>& cuts, int parts,
                                  Recompute recompute);
  [[nodiscard]] Outcome outcome(const Pipeline& pipeline);
  /// Three microbatches, one after the other.
  [[nodiscard]] Outcome run(const ModelShape& shape, const std::vector<int>& cuts, int parts,
                            Recompute recompute, BackwardRun how);
  /// A microbatch of the model, the same in every test.
  [[nodiscard]] static naive::Tokens tokens(const ModelShape& shape, int microbatch);
  [[nodiscard]] static naive::Tokens targets(const ModelShape& shape, int microbatch);
  /// Against what is exact: rounding of a few layers in a row.
  [[nodiscard]] double tolerance() const {
    return math_->working_type() == NumberType::f32 ? 3e-6 : 3e-2;
  }

private:
  std::unique_ptr<TensorOps> math_;
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace longhaul::nn
