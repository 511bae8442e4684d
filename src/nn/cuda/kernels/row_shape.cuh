#pragma once

#include "nn/cuda/kernels/number_types.cuh"

/// Rows that one block goes through, more than once: short ones stay in registers.
namespace longhaul::nn {

/// Calls f(held, i) for the block's packs of kVector numbers of a row of `width`: i is the first
/// number, `held` which of this thread's packs it is, a constant where kHeld > 0 packs of each
/// thread cover the row.
template <int kVector, int kHeld, typename F>
__device__ inline void each_pack(int width, F&& f) {
  if constexpr (kHeld > 0) {
#pragma unroll
    for (int held = 0; held < kHeld; ++held) {
      const int i = (held * kThreads + this_thread()) * kVector;
      if (i < width) f(held, i);
    }
  } else {
    for (int i = this_thread() * kVector; i < width; i += kThreads * kVector) f(0, i);
  }
}

/// A row that is read once where kHeld packs of each thread cover it, and each time where not.
template <int kVector, int kHeld, typename T>
struct Row {
  const T* from;
  Numbers<kVector> held[kHeld > 0 ? kHeld : 1];

  __device__ explicit Row(const T* address) : from{address} {}
  __device__ void fill(int width) {
    if constexpr (kHeld > 0)
      each_pack<kVector, kHeld>(width, [&](int k, int i) { held[k] = read<kVector>(from + i); });
  }
  __device__ Numbers<kVector> at(int k, int i) const {
    if constexpr (kHeld > 0) return held[k];
    return read<kVector>(from + i);
  }
};

/// to + i = f(held, i) for each pack. A row in registers is finished before the first of it is
/// written: no load waits for a store.
template <int kVector, int kHeld, typename T, typename F>
__device__ inline void write_row(int width, T* to, F&& f) {
  if constexpr (kHeld > 0) {
    Numbers<kVector> results[kHeld];
    each_pack<kVector, kHeld>(width, [&](int held, int i) { results[held] = f(held, i); });
    each_pack<kVector, kHeld>(width, [&](int held, int i) { write(to + i, results[held]); });
  } else {
    each_pack<kVector, kHeld>(width, [&](int held, int i) { write(to + i, f(held, i)); });
  }
}

/// f(Constant<kVector>, Constant<kHeld>) for rows of `width` numbers; `aligned`: their packs of 8
/// are.
template <typename F>
void with_row_shape(int width, bool aligned, F&& f) {
  if (!aligned) return f(Constant<1>{}, Constant<0>{});
  if (width <= 8 * kThreads) return f(Constant<8>{}, Constant<1>{});
  if (width <= 16 * kThreads) return f(Constant<8>{}, Constant<2>{});
  if (width <= 32 * kThreads) return f(Constant<8>{}, Constant<4>{});
  return f(Constant<8>{}, Constant<0>{});
}

}  // namespace longhaul::nn
