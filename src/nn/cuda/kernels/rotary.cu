#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/number_types.cuh"

namespace longhaul::nn {
namespace {

struct Turning {
  const float* turns;
  unsigned pairs;  ///< of a head: head_size / 2
  unsigned heads;  ///< that turn: those of Q and of K
  unsigned head_size;
  unsigned sequence;
  std::size_t width;
  float sign;  ///< of the sine: -1 turns back
};

/// A thread turns kVector pairs that lie side by side; reads and writes each number once.
template <int kVector>
__global__ void __launch_bounds__(kThreads) turn_heads(Turning of, std::size_t vectors, Bf16* qkv) {
  const std::size_t number = thread_of_all();
  if (number >= vectors) return;
  const unsigned vectors_of_head = of.pairs / kVector;
  const unsigned vectors_of_token = vectors_of_head * of.heads;
  const auto token = static_cast<unsigned>(number / vectors_of_token);
  const auto in_token = static_cast<unsigned>(number % vectors_of_token);
  const unsigned head = in_token / vectors_of_head;
  const unsigned pair = in_token % vectors_of_head * kVector;
  Bf16* const low = qkv + token * of.width + head * of.head_size + pair;
  Bf16* const high = low + of.pairs;
  const float* const turn =
      of.turns + 2 * (static_cast<std::size_t>(token % of.sequence) * of.pairs + pair);
  Numbers<kVector> a = read<kVector>(static_cast<const Bf16*>(low));
  Numbers<kVector> b = read<kVector>(static_cast<const Bf16*>(high));
  Numbers<2 * kVector> angles;
  if constexpr (kVector == 8) angles = read<16>(turn);
  if constexpr (kVector == 1) angles = {{turn[0], turn[1]}};
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    const float cosine = angles.at[2 * k], sine = of.sign * angles.at[2 * k + 1];
    const float x = a.at[k], y = b.at[k];
    a.at[k] = x * cosine - y * sine;
    b.at[k] = y * cosine + x * sine;
  }
  write(low, a);
  write(high, b);
}

}  // namespace

void rotary(cudaStream_t stream, const AttentionShape& shape, ArrayView turns, Direction direction,
            ArrayView qkv) {
  const Turning of{numbers<float>(turns),
                   static_cast<unsigned>(shape.head_size / 2),
                   static_cast<unsigned>(shape.heads + shape.kv_heads),
                   static_cast<unsigned>(shape.head_size),
                   static_cast<unsigned>(shape.sequence),
                   shape.width(),
                   direction == Direction::forward ? 1.0F : -1.0F};
  // Q, K and V of a token begin at a multiple of 16 bytes where each head's half does.
  with_vector(of.pairs % 8 == 0 && aligned(qkv, turns), [&](auto vector) {
    const std::size_t vectors =
        shape.tokens() * of.heads * (of.pairs / static_cast<unsigned>(vector.value));
    cuda::launch(turn_heads<vector.value>,
                 {cuda::blocks_for(vectors, kThreads), kThreads, 0, stream}, of, vectors,
                 numbers<Bf16>(qkv));
  });
}

}  // namespace longhaul::nn
