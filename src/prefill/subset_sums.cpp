#include "prefill/subset_sums.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <numeric>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

constexpr std::int64_t kMostGrains = 1 << 16;
constexpr std::size_t kFillGrains = 4096;

}  // namespace

SubsetSums::SubsetSums(std::span<const Duration> lengths, Duration most) {
  std::int64_t divisor = 0;
  for (const Duration length : lengths) divisor = std::gcd(divisor, length.count());
  const std::int64_t coarse = (most.count() + kMostGrains - 1) / kMostGrains;
  grain_ = Duration{std::max<std::int64_t>(1, std::max(divisor, coarse))};
  if (divisor > 0 && divisor < coarse) error_ = grain_ - Duration{1};
  const auto grains = to_size(most / grain_) + 1;
  items_.assign(grains, -1);
  items_[0] = 0;
  std::vector<std::size_t> steps;
  for (const Duration length : lengths)
    if (length <= most) steps.push_back(to_size(length / grain_));
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  is_dense_ = !steps.empty() && steps.front() == 0;
  for (std::size_t sum = 1; sum < grains; ++sum)
    for (const std::size_t step : steps) {
      if (step > sum || is_dense_) break;
      if (items_[sum - step] >= 0) items_[sum] = std::max(items_[sum], items_[sum - step] + 1);
    }
}

Duration SubsetSums::largest(Duration room) const {
  if (room <= Duration{}) return Duration{};
  if (is_dense_) return room;
  // A smaller sum of more lengths may be the larger one when each is up to a grain longer.
  const Duration most_error = error_ * *std::ranges::max_element(items_);
  Duration best{};
  for (auto sum = static_cast<std::int64_t>(std::min(to_size(room / grain_), items_.size() - 1));
       sum >= 0 && grain_ * sum + most_error >= best; --sum) {
    const std::int64_t items = items_[to_size(sum)];
    if (items >= 0) best = std::max(best, grain_ * sum + error_ * items);
    if (items >= 0 && error_ == Duration{}) break;
  }
  return std::min(best, room);
}

Fill fullest(std::span<const Duration> lengths, Duration room) {
  Fill fill;
  const Duration grain = std::max(Duration{1}, room / static_cast<std::int64_t>(kFillGrains));
  const auto grains = to_size(room / grain);
  std::bitset<kFillGrains * 2> reached;
  std::array<std::int32_t, kFillGrains * 2> last{};  // of each sum: the length that first gave it
  reached[0] = true;
  // Rounded down: a sum of the right number of grains may be too long, and is checked.
  const auto step_of = [&](Duration length) {
    return std::max<std::size_t>(1, to_size(length / grain));
  };
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::size_t step = step_of(lengths[i]);
    if (lengths[i] > room || step > grains) continue;
    auto fresh = (reached << step) & ~reached;
    for (std::size_t sum = fresh._Find_first(); sum <= grains && sum < fresh.size();
         sum = fresh._Find_next(sum)) {
      last[sum] = static_cast<std::int32_t>(i);
      reached[sum] = true;
    }
  }
  for (std::size_t most = grains; most > 0; --most) {
    if (!reached[most]) continue;
    Fill found;
    for (std::size_t sum = most; sum > 0; sum -= step_of(lengths[found.chosen.back()])) {
      const auto i = static_cast<std::size_t>(last[sum]);
      found.chosen.push_back(i);
      found.sum += lengths[i];
    }
    if (found.sum > room) continue;
    fill = std::move(found);
    break;
  }
  std::ranges::sort(fill.chosen);
  return fill;
}

}  // namespace longhaul::prefill
