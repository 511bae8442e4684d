#include "compress/rivals/outer_steps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/kept_share.hpp"

namespace longhaul::compress {
namespace {

constexpr float kMostInt4 = 7;

}  // namespace

OuterSteps::OuterSteps(const OuterSettings& settings, std::span<const float> weights)
    : settings_{settings},
      anchor_{weights.begin(), weights.end()},
      momenta_(settings.momentum > 0 ? weights.size() : 0) {}

void OuterSteps::merge(std::span<const float> mean, std::span<float> weights) {
  LONGHAUL_ASSERT(mean.size() == anchor_.size(), "{} of {}", mean.size(), anchor_.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    float step = mean[i];
    if (!momenta_.empty()) {
      momenta_[i] = settings_.momentum * momenta_[i] + mean[i];
      step += settings_.momentum * momenta_[i];
    }
    anchor_[i] -= settings_.rate * step;
    weights[i] = anchor_[i];
  }
}

void OuterSteps::set_momenta(std::vector<float> momenta) {
  if (momenta.size() != momenta_.size())
    fail("an outer momentum of {} numbers is kept, of {}. Begin anew.", momenta.size(),
         momenta_.size());
  momenta_ = std::move(momenta);
}

float int4_step(std::span<const float> group) {
  float largest = 0;
  for (const float number : group) largest = std::max(largest, std::fabs(number));
  return largest / kMostInt4;
}

int int4_steps(float number, float step) {
  if (step <= 0) return 0;
  return static_cast<int>(std::clamp(std::nearbyint(number / step), -kMostInt4, kMostInt4));
}

void round_to_int4(std::span<float> numbers) {
  for (std::size_t begin = 0; begin < numbers.size(); begin += kInt4Group) {
    const auto group = numbers.subspan(begin, std::min(kInt4Group, numbers.size() - begin));
    const float step = int4_step(group);
    for (float& number : group) number = static_cast<float>(int4_steps(number, step)) * step;
  }
}

SparseOuterGradient::SparseOuterGradient(double keep, float decay, std::vector<TensorChunk> chunks,
                                         std::size_t count)
    : keep_{keep}, decay_{decay}, chunks_{std::move(chunks)}, residual_(count) {
  if (!is_kept_share(keep))
    fail("sparseloco: {} of the numbers cannot be sent. Give a share above 0 and at most 1.", keep);
  if (!(decay >= 0 && decay <= 1))
    fail("sparseloco: the decay of what is left is {}. Give one from 0 to 1.", decay);
}

SparseSet SparseOuterGradient::take(std::span<const float> outer_gradient) {
  LONGHAUL_ASSERT(outer_gradient.size() == residual_.size(), "{} of {}", outer_gradient.size(),
                  residual_.size());
  for (std::size_t i = 0; i < residual_.size(); ++i)
    residual_[i] = residual_[i] * decay_ + outer_gradient[i];
  SparseSet sent{static_cast<std::int64_t>(residual_.size()), 1, {}, {}};
  std::vector<float> numbers;
  for (const TensorChunk& chunk : chunks_) {
    numbers.resize(chunk.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = residual_[chunk.place(i)];
    for (const std::uint32_t place : largest_places(numbers, kept_of_chunk(chunk.size(), keep_)))
      sent.blocks.push_back(static_cast<std::uint32_t>(chunk.place(place)));
  }
  std::ranges::sort(sent.blocks);
  for (const std::uint32_t place : sent.blocks)
    sent.values.push_back(std::exchange(residual_[place], 0.0F));
  const std::vector<float> exact = sent.values;
  round_to_two_bits(sent.values);
  for (std::size_t i = 0; i < exact.size(); ++i)
    residual_[sent.blocks[i]] += exact[i] - sent.values[i];
  return sent;
}

void SparseOuterGradient::restore(std::vector<float> residual) {
  if (residual.size() != residual_.size())
    fail("sparseloco: what is kept has {} numbers instead of {}. Begin anew.", residual.size(),
         residual_.size());
  residual_ = std::move(residual);
}

void round_to_two_bits(std::span<float> numbers) {
  double mean = 0;
  for (const float number : numbers) mean += std::fabs(static_cast<double>(number));
  mean /= static_cast<double>(std::max<std::size_t>(1, numbers.size()));
  double below = 0, above = 0;
  std::size_t small = 0;
  for (const float number : numbers) {
    const double magnitude = std::fabs(static_cast<double>(number));
    const bool is_small = magnitude < mean;
    small += is_small ? 1 : 0;
    (is_small ? below : above) += magnitude;
  }
  const std::size_t large = numbers.size() - small;
  const float low = small == 0 ? 0 : static_cast<float>(below / static_cast<double>(small));
  const float high = large == 0 ? 0 : static_cast<float>(above / static_cast<double>(large));
  for (float& number : numbers) {
    const bool is_small = std::fabs(static_cast<double>(number)) < mean;
    number = std::copysign(is_small ? low : high, number);
  }
}

}  // namespace longhaul::compress
