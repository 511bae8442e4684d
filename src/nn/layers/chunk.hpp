#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/layers/shape.hpp"
#include "nn/memory.hpp"

namespace longhaul::nn {

/// One tensor of weights. Names say which layer of the model it is of, whatever chunk holds it:
/// "layer 3 attention.qkv", "embedding.table", "head.output".
struct Parameter {
  std::string name;
  std::size_t count = 0;
  ArrayView weights;   ///< of the working type
  ArrayView gradient;  ///< f32; what W blocks add to
  ArrayView master;    ///< f32; the same memory as `weights` where these are f32
};

/// Part `part` of `parts` of a block: its layers, cut into stretches as equal as can be. Blocks of
/// forward and recompute go through parts in order, those of backward from the last layers on:
/// part 0 first, or where they are `mirrored` the last part, so that part k is of the same layers
/// forward and backward.
struct BlockPart {
  int part = 0, parts = 1;
  bool mirrored = false;

  [[nodiscard]] bool is_first() const { return part == (mirrored ? parts - 1 : 0); }
  [[nodiscard]] bool is_last() const { return part == (mirrored ? 0 : parts - 1); }
};

/// A stretch of the numbers of Chunk::all_weights().
struct NumberRange {
  std::size_t first = 0, count = 0;
};

/// A parameter among the numbers of Chunk::all_weights(): a matrix of its first dimension by all
/// others, or a vector, which has one column.
struct ParameterPlace {
  std::string name;
  std::size_t first = 0, rows = 0, columns = 1;

  [[nodiscard]] bool is_matrix() const { return columns > 1; }
  [[nodiscard]] std::size_t count() const { return rows * columns; }
};
struct ParameterPlaces {
  std::vector<ParameterPlace> places;
  std::size_t numbers = 0;  ///< of all_weights()
};
/// Of a chunk of these layers, without making one. Throws Error as Chunk does.
[[nodiscard]] ParameterPlaces parameter_places(const ModelShape& shape, LayerRange layers);

/// What is kept of a microbatch for its way back: all of F, its input alone, or nothing, as it is
/// not passed back.
enum class Recompute : std::uint8_t { off, on, forward_only };

/// The layers of one chunk on one device: weights, gradients, and what each microbatch in flight
/// keeps. Blocks of a microbatch follow each other as a schedule's validity demands; microbatches
/// interleave freely. Whatever a block takes of the device's memory it takes from `memory`, and
/// what is not needed any more is given back: at the end of D or W, of B, or, with Recompute::on,
/// of F all but its input, until recompute() makes it again. With Recompute::forward_only a
/// microbatch is forgotten when its F ends, and there are no gradients and no masters (the weights
/// themselves where they are f32).
class Chunk {
public:
  /// Weights come from `seed` and their name alone: the same for every way to cut the model. The
  /// gradient is zero. Throws Error where the shape has no such layers or numbers do not fit
  /// (heads that do not divide hidden, kv_heads that do not divide heads, odd head size).
  Chunk(TensorOps& math, DeviceMemory& memory, const ModelShape& shape, LayerRange layers,
        Recompute recompute, std::uint64_t seed);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  [[nodiscard]] bool holds_embedding() const;
  [[nodiscard]] bool holds_head() const;

  /// Tokens (where this chunk holds the embedding) and targets (where it holds the head) of a
  /// microbatch; i32, one a token. Before its F. Copied.
  void set_tokens(MicrobatchId microbatch, std::span<const std::int32_t> tokens);
  void set_targets(MicrobatchId microbatch, std::span<const std::int32_t> targets);

  /// F. `input` [boundary] is moved in and kept as long as needed (empty with the embedding). The
  /// last part returns the output [boundary]; empty with the head, which adds `scale` times the
  /// microbatch's loss (sum over tokens) to loss().
  [[nodiscard]] Buffer forward(MicrobatchId microbatch, BlockPart part, Buffer input);
  /// R.
  void recompute(MicrobatchId microbatch, BlockPart part);
  /// D. `gradient` of the output is moved in (empty with the head); the last part returns that of
  /// the input (empty with the embedding).
  [[nodiscard]] Buffer backward_input(MicrobatchId microbatch, BlockPart part, Buffer gradient);
  /// W, after D.
  void backward_weight(MicrobatchId microbatch, BlockPart part);
  /// B: D and W layer by layer, so that it keeps less.
  [[nodiscard]] Buffer backward(MicrobatchId microbatch, BlockPart part, Buffer gradient);

  /// Forgets a microbatch that was forwarded and is not to be passed back; with Recompute::off.
  void drop(MicrobatchId microbatch);

  /// The factor of losses: 1 / (tokens of all microbatches and replicas).
  void set_loss_scale(float scale);
  /// Since the last begin_iteration(); waits for the device. 0 without the head.
  [[nodiscard]] float loss();
  /// Sequences of the microbatches from now on, 1 or more. Nothing may be in flight.
  void set_batch(int sequences);
  /// Zeroes gradients, where there are any, and loss. Nothing may be in flight.
  void begin_iteration();
  [[nodiscard]] std::span<const Parameter> parameters() const;
  /// Weights and gradients, all parameters side by side in one piece each, in the order of
  /// parameters(): what collectives sum and gather. Each begins at a multiple of 64 numbers; what
  /// lies between is 0 and stays 0.
  [[nodiscard]] ArrayView all_weights() const;
  [[nodiscard]] ArrayView all_gradients() const;
  [[nodiscard]] ArrayView all_masters() const;
  /// The weights of the layers of a part of forward, or of one of backward that is mirrored.
  [[nodiscard]] NumberRange weights_of(BlockPart part) const;
  /// Microbatches of which anything is kept.
  [[nodiscard]] int in_flight() const;

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace longhaul::nn
