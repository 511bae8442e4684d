#pragma once

#include <map>
#include <string_view>

#include "base/index.hpp"
#include "nn/layers/layer.hpp"
#include "nn/layers/weights.hpp"

namespace longhaul::nn {

/// A microbatch in flight. Counters are of layers done, from the first on forward and from the last
/// on backward.
struct InFlight {
  Buffer tokens, targets;
  Buffer input;    ///< with Recompute::on, from F to R
  Buffer passing;  ///< from part to part
  int forwarded = 0, remade = 0, passed_back = 0, weighed = 0;
};

enum class Pass : std::uint8_t { forward, recompute };

/// The members of a Chunk (pimpl).
struct Chunk::Parts {
  TensorOps& math;
  DeviceMemory& memory;
  ModelShape shape;
  LayerRange range;
  Recompute recompute;
  std::vector<std::unique_ptr<Layer>> layers;
  Weights weights;
  Buffer losses;  ///< what counts, and what recomputation makes once more
  float loss_scale = 1;
  std::map<int, InFlight> microbatches;

  Parts(TensorOps& on, DeviceMemory& from, const ModelShape& model, LayerRange holds, Recompute how,
        std::uint64_t seed);

  [[nodiscard]] int count() const { return range.count; }
  /// Layers that are done when `part` begins; asserts that it is its turn.
  [[nodiscard]] int begin(BlockPart part, int done, std::string_view block,
                          MicrobatchId microbatch) const;
  /// Layers that are done before it, and after it.
  [[nodiscard]] int done_before(BlockPart part) const {
    return part.mirrored ? count() - (part.part + 1) * count() / part.parts
                         : part.part * count() / part.parts;
  }
  [[nodiscard]] int end(BlockPart part) const {
    return part.mirrored ? count() - part.part * count() / part.parts
                         : (part.part + 1) * count() / part.parts;
  }

  [[nodiscard]] BlockContext work(std::string_view block, MicrobatchId microbatch,
                                  const InFlight& data) const {
    return {math,
            memory,
            block,
            microbatch,
            data.tokens.view(),
            data.targets.view(),
            loss_scale,
            losses.view().part(block == "R" ? 1 : 0, 1)};
  }
  [[nodiscard]] InFlight& in_flight_at(std::string_view block, MicrobatchId microbatch);
  [[nodiscard]] Layer& from_the_end(int layer) { return *layers[at(count() - 1 - layer)]; }
  /// Layers that are done; takes the gradient in.
  [[nodiscard]] int begin_backward(std::string_view block, InFlight& data, MicrobatchId microbatch,
                                   BlockPart part, Buffer gradient) const;
  void set(Buffer InFlight::*which, MicrobatchId microbatch, std::span<const std::int32_t> numbers,
           std::int32_t lowest);
  void forward_layers(const BlockContext& work, InFlight& data, int first, int past, Pass pass);
};

}  // namespace longhaul::nn
