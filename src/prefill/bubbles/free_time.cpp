#include "prefill/bubbles/free_time.hpp"

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
    if (bubble.length() >= least_ && begin + bubble.end > forgotten_)
      gpu.gaps.push_back({begin + bubble.start, begin + bubble.end});
  return true;
}

void FreeTime::drop_forgotten(Gpu& gpu) const {
  while (gpu.head < gpu.gaps.size() && gpu.gaps[gpu.head].end <= forgotten_) ++gpu.head;
  if (gpu.head == gpu.gaps.size()) {
    gpu.gaps.clear();
    gpu.head = 0;
    // A bubble ends before the second end of a period after its begin.
    if (period_ > Duration{})
      gpu.iteration =
          std::max(gpu.iteration, std::min(forgotten_ / period_ - 1, range_.iterations));
  } else if (gpu.head > 64 && 2 * gpu.head > gpu.gaps.size()) {
    gpu.gaps.erase(gpu.gaps.begin(), gpu.gaps.begin() + static_cast<std::ptrdiff_t>(gpu.head));
    gpu.head = 0;
  }
}

std::optional<Duration> FreeTime::earliest(std::int32_t rank, Duration from, Duration length,
                                           Duration guard, Duration limit) {
  Gpu& gpu = gpus_[at(rank)];
  drop_forgotten(gpu);
  const auto head = gpu.gaps.begin() + static_cast<std::ptrdiff_t>(gpu.head);
  const auto first = std::ranges::lower_bound(head, gpu.gaps.end(), from, {}, &FreeGap::end);
  std::optional<Duration> found;
  for (auto i = static_cast<std::size_t>(first - gpu.gaps.begin());; ++i) {
    bool is_over = false;
    while (i == gpu.gaps.size() && !is_over)
      is_over = period_ * gpu.iteration > limit || !add_iteration(gpu);
    if (is_over) break;
    const FreeGap& gap = gpu.gaps[i];
    const Duration start = std::max(gap.start, from);
    if (start > limit) break;
    if (start + length > (gap.ends_bubble ? gap.end - guard : gap.end)) continue;
    found = start;
    break;
  }
  set_first_free(at(rank));
  return found;
}

Duration FreeTime::gap_end(std::int32_t rank, Duration start, Duration guard) const {
  const Gpu& gpu = gpus_[at(rank)];
  auto gap = std::ranges::upper_bound(gpu.gaps.begin() + static_cast<std::ptrdiff_t>(gpu.head),
                                      gpu.gaps.end(), start, {}, &FreeGap::start);
  --gap;
  return gap->ends_bubble ? gap->end - guard : gap->end;
}

std::optional<SplitGap> FreeTime::take(std::int32_t rank, Duration start, Duration length) {
  if (length == Duration{}) return std::nullopt;  // a stage of less than a nanosecond
  Gpu& gpu = gpus_[at(rank)];
  const auto begin = gpu.gaps.begin() + static_cast<std::ptrdiff_t>(gpu.head);
  auto gap = std::ranges::upper_bound(begin, gpu.gaps.end(), start, {}, &FreeGap::start);
  LONGHAUL_ASSERT(gap != begin, "nothing is free at {} ns", start.count());
  --gap;
  LONGHAUL_ASSERT(gap->start <= start && start + length <= gap->end, "{} ns from {} ns is not free",
                  length.count(), start.count());
  SplitGap split{.whole = *gap};
  const FreeGap before{gap->start, start, false};
  const FreeGap after{start + length, gap->end, gap->ends_bubble};
  const auto is_kept = [&](const FreeGap& rest) {
    return rest.end - rest.start >= least_ && rest.end > rest.start;
  };
  if (is_kept(before)) split.before = before;
  if (is_kept(after)) split.after = after;
  if (split.after)
    *gap = after;
  else
    gap = gpu.gaps.erase(gap);
  if (split.before) gpu.gaps.insert(gap, before);
  last_end_ = std::max(last_end_, start + length);
  set_first_free(at(rank));
  return split;
}

void FreeTime::set_first_free(std::size_t rank) {
  const Gpu& gpu = gpus_[rank];
  first_free_[rank] =
      gpu.head < gpu.gaps.size() ? gpu.gaps[gpu.head].start : period_ * gpu.iteration;
}

}  // namespace longhaul::prefill
