#include "planner/cluster/free_gpus.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

/// The fastest of those with at most so many GPUs; nullptr: each has more.
const GpuRate* at_most(std::span<const GpuRate> rates, int gpus) {
  const auto above = std::ranges::upper_bound(rates, gpus, {}, &GpuRate::gpus);
  return above == rates.begin() ? nullptr : &*std::prev(above);
}

}  // namespace

FreeGpus::FreeGpus(int gpus, std::int64_t first, Duration slot)
    : slot_{slot}, parts_{Part{first, gpus}} {}

std::optional<GpuPlan> FreeGpus::fill(std::span<const GpuRate> rates, double iterations,
                                      Duration deadline) const {
  // More GPUs never do less: a slot's number only rises with `most`.
  std::optional<GpuPlan> found;
  std::size_t low = 0;
  for (std::size_t high = rates.size(); low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    std::optional<GpuPlan> plan = fill_with(rates[middle].gpus, rates, iterations, deadline);
    if (plan) {
      found = std::move(plan);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return found;
}

std::optional<GpuPlan> FreeGpus::fill_with(int most, std::span<const GpuRate> rates,
                                           double iterations, Duration deadline) const {
  GpuPlan plan;
  std::int64_t end = (deadline + slot_ - Duration{1}) / slot_;  // of the part before
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (part->begin >= end) continue;
    if (const GpuRate* const held = at_most(rates, std::min(most, part->gpus))) {
      const Duration last = std::min(end * slot_, deadline);
      const double needed = iterations / held->rate;  // seconds, back from `last`
      if (needed <= seconds(last - part->begin * slot_)) {
        const auto begin =
            static_cast<std::int64_t>(std::floor((seconds(last) - needed) / seconds(slot_)));
        plan.push_back({std::max(begin, part->begin), end, held->gpus});
        std::ranges::reverse(plan);
        return plan;
      }
      plan.push_back({part->begin, end, held->gpus});
      iterations -= held->rate * seconds(last - part->begin * slot_);
    }
    end = part->begin;
  }
  return std::nullopt;
}

std::size_t FreeGpus::cut(std::int64_t slot) {
  const auto after = std::ranges::upper_bound(parts_, slot, {}, &Part::begin);
  const auto index = static_cast<std::size_t>(after - parts_.begin());
  const Part before = *std::prev(after);
  if (before.begin == slot) return index - 1;
  parts_.insert(after, Part{slot, before.gpus});
  return index;
}

void FreeGpus::take(const GpuPlan& plan) {
  for (const GpuSpan& span : plan) {
    const std::size_t begin = cut(span.begin);
    const std::size_t end = cut(span.end);
    for (std::size_t i = begin; i < end; ++i) {
      parts_[i].gpus -= span.gpus;
      LONGHAUL_ASSERT(parts_[i].gpus >= 0, "slot {}: {} GPUs too many", parts_[i].begin,
                      -parts_[i].gpus);
    }
  }
}

}  // namespace longhaul::planner
