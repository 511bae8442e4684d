#include "training/replay/replay_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace longhaul::training {
namespace {

constexpr std::size_t kReplayGroup = 128;
constexpr float kReplayNothing = 1e-30F;
constexpr double kReplayMostSteps = 127;

/// In double precision, where a quotient of an fp32 number and 127 is near enough to a number of 16
/// bits only if it is one.
float scale_of_steps(std::span<const float> group) {
  float largest = 0;
  for (const float value : group) largest = std::max(largest, std::abs(value));
  if (largest < kReplayNothing) return 0;
  int exponent = 0;
  const double digits =
      std::ceil(std::frexp(static_cast<double>(largest) / kReplayMostSteps, &exponent) * 0x1p16);
  const double scale = std::ldexp(digits, exponent - 16);
  if (scale * kReplayMostSteps > static_cast<double>(std::numeric_limits<float>::max()))
    return static_cast<float>(std::ldexp(digits - 1, exponent - 16));
  return static_cast<float>(scale);
}

}  // namespace

std::vector<float> ReplaySet::kept() const {
  std::vector<float> values;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (has[i] != 0) values.push_back(numbers[i]);
  return values;
}

ReplaySet sum_of_sets(std::span<const ReplaySet> sets) {
  LONGHAUL_ASSERT(!sets.empty(), "no sets");
  ReplaySet sum{sets.front().numbers.size()};
  for (const ReplaySet& set : sets) {
    LONGHAUL_ASSERT(set.numbers.size() == sum.numbers.size(), "{} and {}", set.numbers.size(),
                    sum.numbers.size());
    for (std::size_t i = 0; i < sum.numbers.size(); ++i) {
      if (set.has[i] == 0) continue;
      sum.numbers[i] = sum.has[i] != 0 ? sum.numbers[i] + set.numbers[i] : set.numbers[i];
      sum.has[i] = 1;
    }
  }
  return sum;
}

float rounded_to(const ShortFloat& format, float value) {
  int exponent = 0;
  const auto exact = static_cast<double>(value);
  static_cast<void>(std::frexp(exact, &exponent));
  const int unit = std::max(exponent - format.digits, format.least);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(exact, -unit)), unit);
  return static_cast<float>(std::clamp(rounded, -format.largest, format.largest));
}

void round_to_steps(std::span<float> values) {
  for (std::size_t begin = 0; begin < values.size(); begin += kReplayGroup) {
    const std::span<float> group =
        values.subspan(begin, std::min(kReplayGroup, values.size() - begin));
    const float scale = scale_of_steps(group);
    for (float& value : group) {
      if (scale == 0) {
        value = 0;
        continue;
      }
      const float steps = std::nearbyint(value / scale);
      value = std::clamp(steps, -127.0F, 127.0F) * scale;
    }
  }
}

void round_kept(std::span<float> values, SetValues format) {
  switch (format) {
    case SetValues::f32: return;
    case SetValues::bf16:
      for (float& value : values) value = rounded_to(kBrain, value);
      return;
    case SetValues::int8: return round_to_steps(values);
  }
}

}  // namespace longhaul::training
