#include "comm/add_numbers.hpp"

namespace longhaul::comm {

// Each loop without aliases is one that compilers turn into vector instructions.
void add_numbers(float* to, const float* a, const float* b, std::size_t count) {
  float* __restrict const sum = to;
  const float* __restrict const second = b;
  if (to == a) {
    for (std::size_t i = 0; i < count; ++i) sum[i] += second[i];
    return;
  }
  const float* __restrict const first = a;
  for (std::size_t i = 0; i < count; ++i) sum[i] = first[i] + second[i];
}

}  // namespace longhaul::comm
