#include "planner/cluster/free_gpus.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace longhaul::planner {

bool lies_within(const SiteGpus& place, std::span<const int> sites) {
  for (std::size_t site = 0; site < sites.size(); ++site)
    if (place[site] > sites[site]) return false;
  return true;
}

FreeGpus::FreeGpus(std::vector<int> sites, std::int64_t first, Duration slot)
    : slot_{slot}, sites_{sites.size()}, begins_{first}, free_{std::move(sites)} {}

int FreeGpus::fastest(const GpuChoices& choices, int most, std::span<const int> free) const {
  const auto& [rates, places] = choices;
  if (places.empty()) {
    const int held = std::min(most, free.front());
    const auto above = std::ranges::upper_bound(rates, held, {}, &GpuRate::gpus);
    return static_cast<int>(above - rates.begin()) - 1;
  }
  int best = -1;
  for (std::size_t choice = 0; choice < rates.size() && rates[choice].gpus <= most; ++choice)
    if (lies_within(places[choice], free) &&
        (best < 0 || rates[choice].rate > rates[static_cast<std::size_t>(best)].rate))
      best = static_cast<int>(choice);
  return best;
}

std::optional<GpuPlan> FreeGpus::fill(const GpuChoices& choices, double iterations,
                                      Duration deadline) const {
  // More GPUs never do less: a slot's rate only rises with `most`.
  std::optional<GpuPlan> found;
  std::size_t low = 0;
  for (std::size_t high = choices.rates.size(); low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    std::optional<GpuPlan> plan =
        fill_with(choices.rates[middle].gpus, choices, iterations, deadline);
    if (plan) {
      found = std::move(plan);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return found;
}

std::optional<GpuPlan> FreeGpus::fill_with(int most, const GpuChoices& choices, double iterations,
                                           Duration deadline) const {
  GpuPlan plan;
  std::int64_t end = (deadline + slot_ - Duration{1}) / slot_;  // of the part before
  for (std::size_t part = begins_.size(); part-- > 0;) {
    const std::int64_t first = begins_[part];
    if (first >= end) continue;
    const int choice = fastest(choices, most, free_in(part));
    if (choice >= 0) {
      const GpuRate& held = choices.rates[static_cast<std::size_t>(choice)];
      const Duration last = std::min(end * slot_, deadline);
      const double needed = iterations / held.rate;  // seconds, back from `last`
      if (needed <= seconds(last - first * slot_)) {
        const auto begin =
            static_cast<std::int64_t>(std::floor((seconds(last) - needed) / seconds(slot_)));
        plan.push_back({std::max(begin, first), end, held.gpus, choice});
        std::ranges::reverse(plan);
        return plan;
      }
      plan.push_back({first, end, held.gpus, choice});
      iterations -= held.rate * seconds(last - first * slot_);
    }
    end = first;
  }
  return std::nullopt;
}

std::size_t FreeGpus::cut(std::int64_t slot) {
  const auto after = std::ranges::upper_bound(begins_, slot);
  const auto index = static_cast<std::size_t>(after - begins_.begin());
  if (begins_[index - 1] == slot) return index - 1;
  begins_.insert(after, slot);
  const std::vector<int> before(free_in(index - 1).begin(), free_in(index - 1).end());
  free_.insert(free_.begin() + static_cast<std::ptrdiff_t>(index * sites_), before.begin(),
               before.end());
  return index;
}

void FreeGpus::take(const GpuPlan& plan, const GpuChoices& choices) {
  for (const GpuSpan& span : plan) {
    const std::size_t begin = cut(span.begin);
    const std::size_t end = cut(span.end);
    for (std::size_t part = begin; part < end; ++part)
      for (std::size_t site = 0; site < sites_; ++site) {
        int& left = free_[part * sites_ + site];
        left -= choices.places.empty()
                    ? span.gpus
                    : choices.places[static_cast<std::size_t>(span.choice)][site];
        LONGHAUL_ASSERT(left >= 0, "slot {}: {} GPUs too many", begins_[part], -left);
      }
  }
}

}  // namespace longhaul::planner
