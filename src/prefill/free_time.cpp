#include "prefill/free_time.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::prefill {

FreeTime::FreeTime(const IterationBubbles& iteration, FillRange range, Duration least)
    : period_{iteration.period},
      least_{least},
      range_{range},
      gpus_(to_size(iteration.gpus)),
      first_free_(to_size(iteration.gpus)) {
  for (const Bubble& bubble : iteration.bubbles) gpus_[at(bubble.rank)].bubbles.push_back(bubble);
  for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
    Gpu& gpu = gpus_[rank];
    if (range_.from_zero && !gpu.bubbles.empty() && gpu.bubbles.back().end > period_) {
      const Duration end = gpu.bubbles.back().end - period_;
      if (end >= least_) gpu.gaps.push_back({Duration{}, end});
    }
    set_first_free(rank);
  }
}

bool FreeTime::add_iteration(Gpu& gpu) const {
  if (gpu.bubbles.empty() || gpu.iteration >= range_.iterations) return false;
  const Duration begin = period_ * gpu.iteration++;
  for (const Bubble& bubble : gpu.bubbles)
    if (bubble.length() >= least_) gpu.gaps.push_back({begin + bubble.start, begin + bubble.end});
  return true;
}

std::optional<Duration> FreeTime::earliest(std::int32_t rank, Duration from, Duration length,
                                           Duration guard, Duration limit) {
  Gpu& gpu = gpus_[at(rank)];
  for (std::size_t i = gpu.head;; ++i) {
    while (i == gpu.gaps.size()) {
      if (period_ * gpu.iteration > limit || !add_iteration(gpu)) return std::nullopt;
    }
    const Gap& gap = gpu.gaps[i];
    const Duration start = std::max(gap.start, from);
    if (start > limit) return std::nullopt;
    if (start + length <= (gap.ends_bubble ? gap.end - guard : gap.end)) return start;
  }
}

Duration FreeTime::gap_end(std::int32_t rank, Duration start, Duration guard) const {
  const Gpu& gpu = gpus_[at(rank)];
  auto gap = std::ranges::upper_bound(gpu.gaps.begin() + static_cast<std::ptrdiff_t>(gpu.head),
                                      gpu.gaps.end(), start, {}, &Gap::start);
  --gap;
  return gap->ends_bubble ? gap->end - guard : gap->end;
}

void FreeTime::forget(std::int32_t rank, Duration before) {
  Gpu& gpu = gpus_[at(rank)];
  while (gpu.head < gpu.gaps.size() && gpu.gaps[gpu.head].end <= before) ++gpu.head;
  if (gpu.head > 64 && 2 * gpu.head > gpu.gaps.size()) {
    gpu.gaps.erase(gpu.gaps.begin(), gpu.gaps.begin() + static_cast<std::ptrdiff_t>(gpu.head));
    gpu.head = 0;
  }
  set_first_free(at(rank));
}

void FreeTime::take(std::int32_t rank, Duration start, Duration length) {
  if (length == Duration{}) return;  // a stage of less than a nanosecond
  Gpu& gpu = gpus_[at(rank)];
  const auto begin = gpu.gaps.begin() + static_cast<std::ptrdiff_t>(gpu.head);
  auto gap = std::ranges::upper_bound(begin, gpu.gaps.end(), start, {}, &Gap::start);
  LONGHAUL_ASSERT(gap != begin, "nothing is free at {} ns", start.count());
  --gap;
  LONGHAUL_ASSERT(gap->start <= start && start + length <= gap->end, "{} ns from {} ns is not free",
                  length.count(), start.count());
  const Gap before{gap->start, start, false};
  const Gap after{start + length, gap->end, gap->ends_bubble};
  const bool keeps_before = before.end - before.start >= least_ && before.end > before.start;
  const bool keeps_after = after.end - after.start >= least_ && after.end > after.start;
  if (keeps_after)
    *gap = after;
  else
    gap = gpu.gaps.erase(gap);
  if (keeps_before) gpu.gaps.insert(gap, before);
  last_end_ = std::max(last_end_, start + length);
  set_first_free(at(rank));
}

void FreeTime::set_first_free(std::size_t rank) {
  const Gpu& gpu = gpus_[rank];
  first_free_[rank] =
      gpu.head < gpu.gaps.size() ? gpu.gaps[gpu.head].start : period_ * gpu.iteration;
}

}  // namespace longhaul::prefill
