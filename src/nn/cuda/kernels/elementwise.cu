#include "nn/counter_random.hpp"
#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/number_types.cuh"
#include "nn/cuda/kernels/numbers.cuh"

namespace longhaul::nn {
namespace {

template <int kVector, typename From, typename To>
__global__ void convert_numbers(const From* from, std::size_t count, To* to) {
  each_vector<kVector>(
      count, [&](auto vector, std::size_t i) { write(to + i, read<vector.value>(from + i)); });
}

template <int kVector, typename T>
__global__ void add_numbers(const T* a, const T* b, std::size_t count, T* sum) {
  each_vector<kVector>(count, [&](auto vector, std::size_t i) {
    Numbers<vector.value> total = read<vector.value>(a + i);
    const Numbers<vector.value> more = read<vector.value>(b + i);
#pragma unroll
    for (int k = 0; k < vector.value; ++k) total.at[k] += more.at[k];
    write(sum + i, total);
  });
}

/// The launch goes over all numbers in turns, several vectors of a thread in flight at once.
template <int kVector, typename T>
__global__ void add_in_turns(const T* a, const T* b, std::size_t count, T* sum) {
  constexpr std::size_t kAtOnce = 4;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x * kVector;
  std::size_t i = thread_of_all() * kVector;
  for (; i + (kAtOnce - 1) * step + kVector <= count; i += kAtOnce * step) {
    Numbers<kVector> total[kAtOnce], more[kAtOnce];
#pragma unroll
    for (std::size_t turn = 0; turn < kAtOnce; ++turn) {
      total[turn] = read<kVector>(a + i + turn * step);
      more[turn] = read<kVector>(b + i + turn * step);
    }
#pragma unroll
    for (std::size_t turn = 0; turn < kAtOnce; ++turn) {
#pragma unroll
      for (int k = 0; k < kVector; ++k) total[turn].at[k] += more[turn].at[k];
      write(sum + i + turn * step, total[turn]);
    }
  }
  for (; i < count; i += step)
    for (std::size_t k = i; k < i + kVector && k < count; ++k) {
      Numbers<1> total = read<1>(a + k);
      total.at[0] += read<1>(b + k).at[0];
      write(sum + k, total);
    }
}

template <int kVector, typename T>
__global__ void fill_numbers(std::uint64_t seed, float bound, std::size_t count, T* to) {
  each_vector<kVector>(count, [&](auto vector, std::size_t i) {
    Numbers<vector.value> numbers;
#pragma unroll
    for (int k = 0; k < vector.value; ++k)
      numbers.at[k] = bound * counter_random(seed, i + static_cast<std::size_t>(k));
    write(to + i, numbers);
  });
}

}  // namespace

void convert(cudaStream_t stream, ArrayView from, ArrayView to) {
  with_type(from, [&](auto* source) {
    with_type(to, [&](auto* target) {
      with_vector(aligned(from, to), [&](auto vector) {
        using From = std::remove_pointer_t<decltype(source)>;
        using To = std::remove_pointer_t<decltype(target)>;
        cuda::launch(convert_numbers<vector.value, From, To>,
                     {vector_blocks(from.count, vector.value), kThreads, 0, stream}, source,
                     from.count, target);
      });
    });
  });
}

void add(cudaStream_t stream, ArrayView a, ArrayView b, ArrayView sum) {
  with_type(sum, [&](auto* target) {
    with_vector(aligned(a, b, sum), [&](auto vector) {
      using T = std::remove_pointer_t<decltype(target)>;
      cuda::launch(add_numbers<vector.value, T>,
                   {vector_blocks(sum.count, vector.value), kThreads, 0, stream}, numbers<T>(a),
                   numbers<T>(b), sum.count, target);
    });
  });
}

void add_on_few(cudaStream_t stream, unsigned blocks, ArrayView a, ArrayView b, ArrayView sum) {
  constexpr unsigned kThreadsOfFew = 512;
  with_type(sum, [&](auto* target) {
    with_vector(aligned(a, b, sum), [&](auto vector) {
      using T = std::remove_pointer_t<decltype(target)>;
      cuda::launch(add_in_turns<vector.value, T>, {blocks, kThreadsOfFew, 0, stream}, numbers<T>(a),
                   numbers<T>(b), sum.count, target);
    });
  });
}

void fill_random(cudaStream_t stream, std::uint64_t seed, float bound, ArrayView what) {
  with_type(what, [&](auto* target) {
    with_vector(aligned(what), [&](auto vector) {
      using T = std::remove_pointer_t<decltype(target)>;
      cuda::launch(fill_numbers<vector.value, T>,
                   {vector_blocks(what.count, vector.value), kThreads, 0, stream}, seed, bound,
                   what.count, target);
    });
  });
}

}  // namespace longhaul::nn
