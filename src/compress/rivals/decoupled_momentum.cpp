#include "compress/rivals/decoupled_momentum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/error.hpp"

namespace longhaul::compress {
namespace {

using CosineRows = std::array<std::array<float, kDctChunk>, kDctChunk>;

/// Row k has the k-th cosine at each place.
const CosineRows& cosine_rows() {
  static const CosineRows kRows = [] {
    CosineRows rows{};
    constexpr auto kSize = static_cast<double>(kDctChunk);
    for (std::size_t k = 0; k < kDctChunk; ++k)
      for (std::size_t i = 0; i < kDctChunk; ++i) {
        const double angle =
            std::numbers::pi / kSize * (static_cast<double>(i) + 0.5) * static_cast<double>(k);
        rows[k][i] = static_cast<float>(std::sqrt((k == 0 ? 1 : 2) / kSize) * std::cos(angle));
      }
    return rows;
  }();
  return kRows;
}

/// The places of the largest magnitudes, ascending; ties: the lowest.
std::vector<std::uint32_t> largest_places(std::span<const float> numbers, std::size_t wanted) {
  std::vector<std::uint32_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return std::fabs(numbers[a]) > std::fabs(numbers[b]);
  });
  order.resize(wanted);
  std::ranges::sort(order);
  return order;
}

}  // namespace

void cosine_transform(std::span<const float> numbers, std::span<float> coefficients) {
  for (std::size_t k = 0; k < kDctChunk; ++k)
    coefficients[k] = std::inner_product(numbers.begin(), numbers.begin() + kDctChunk,
                                         cosine_rows()[k].begin(), 0.0F);
}

void inverse_cosine_transform(std::span<const float> coefficients, std::span<float> numbers) {
  std::fill_n(numbers.begin(), kDctChunk, 0.0F);
  for (std::size_t k = 0; k < kDctChunk; ++k)
    for (std::size_t i = 0; coefficients[k] != 0 && i < kDctChunk; ++i)
      numbers[i] += coefficients[k] * cosine_rows()[k][i];
}

DecoupledMomentum::DecoupledMomentum(int kept, float decay, std::size_t count)
    : kept_{static_cast<std::size_t>(kept)},
      decay_{decay},
      count_{count},
      momenta_((count + kDctChunk - 1) / kDctChunk * kDctChunk) {
  if (kept < 1 || kept_ > kDctChunk)
    fail("demo: {} coefficients of {} cannot be kept. Give 1 to {}.", kept, kDctChunk, kDctChunk);
  if (!(decay >= 0 && decay <= 1)) fail("demo: the decay is {}. Give one from 0 to 1.", decay);
}

SparseSet DecoupledMomentum::take(std::span<const float> gradient) {
  LONGHAUL_ASSERT(gradient.size() == count_, "{} of {}", gradient.size(), count_);
  for (std::size_t i = 0; i < count_; ++i) momenta_[i] = decay_ * momenta_[i] + gradient[i];
  SparseSet sent{static_cast<std::int64_t>(momenta_.size()), 1, {}, {}};
  std::array<float, kDctChunk> coefficients{}, numbers{};
  for (std::size_t begin = 0; begin < momenta_.size(); begin += kDctChunk) {
    const std::span<float> chunk{momenta_.data() + begin, kDctChunk};
    cosine_transform(chunk, coefficients);
    std::array<float, kDctChunk> kept{};
    for (const std::uint32_t place : largest_places(coefficients, kept_)) {
      sent.blocks.push_back(static_cast<std::uint32_t>(begin) + place);
      sent.values.push_back(kept[place] = coefficients[place]);
    }
    inverse_cosine_transform(kept, numbers);
    for (std::size_t i = 0; i < kDctChunk; ++i) chunk[i] -= numbers[i];
  }
  return sent;
}

void DecoupledMomentum::restore(std::vector<float> momenta) {
  if (momenta.size() != momenta_.size())
    fail("demo: what is kept has {} numbers instead of {}. Begin anew.", momenta.size(),
         momenta_.size());
  momenta_ = std::move(momenta);
}

std::vector<float> numbers_of(const SparseSet& coefficients, std::size_t count) {
  std::vector<float> dense(static_cast<std::size_t>(coefficients.count));
  add_to(dense, coefficients);
  std::array<float, kDctChunk> numbers{};
  for (std::size_t begin = 0; begin < dense.size(); begin += kDctChunk) {
    const std::span<float> chunk{dense.data() + begin, kDctChunk};
    inverse_cosine_transform(chunk, numbers);
    std::ranges::copy(numbers, chunk.begin());
  }
  dense.resize(count);
  return dense;
}

void demo_step(std::span<float> weights, std::span<const float> numbers, float rate) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (numbers[i] != 0) weights[i] -= std::copysign(rate, numbers[i]);
}

}  // namespace longhaul::compress
